"""Machines whose clocks are minutes apart: no alarm is early or late, and nobody's lease is taken for over."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import httpx2
import pytest

from onefold.fleet.planning import wishes
from tests.simulation.fleet_callers import KEYS
from tests.simulation.fleets import LEASE_MS, PATIENCE_S, Fleet, client, within

NEAR = timedelta(seconds=6)  # a machine under load; the clocks are two minutes off


@pytest.fixture
async def fleet(postgres: str, tmp_path: Path) -> AsyncIterator[Fleet]:
    async with Fleet(postgres, tmp_path) as fleet:
        yield fleet


async def slips(fleet: Fleet) -> list[str]:
    """Alarms of every node, set for soon and seen when they ring: what was early, late or somewhere else than said."""
    told: list[str] = []
    due: dict[str, datetime] = {}
    async with client(NEAR.total_seconds()) as http:
        for n, url in enumerate(fleet.urls):
            for key in KEYS:
                event = {"type": "Set", "id": f"{key}{n}", "clock": key, "after_ms": 1500}
                asked = datetime.now(UTC)
                try:
                    answer = await http.post(f"{url}/modules/clock/events", json=event)
                except httpx2.HTTPError as fault:
                    return [f"{key}{n} got no answer: {fault!r}"]
                if answer.status_code != 200:
                    return [f"{key}{n} got {answer.text}"]
                at = due[f"{key}{n}"] = datetime.fromisoformat(answer.json()["reply"]["at"])
                if not asked - NEAR < at < asked + NEAR:
                    told.append(f"{key}{n} is due at {at}, said at {asked}")
    if told:
        return told
    met: set[str] = set()

    async def all_rang() -> bool:
        for name in set(fleet.effects("ring")) - met:
            met.add(name)
            if (seen := datetime.now(UTC)) < due[name]:
                told.append(f"{name} rang at {seen}, before {due[name]}")
        return met == due.keys()

    await within(NEAR.total_seconds() + LEASE_MS / 1000, "every alarm rings", all_rang)
    return told


async def as_wished(fleet: Fleet, names: str) -> bool:
    """Whether nothing is to be handed over any more: a node that comes while another looks gets its share in two steps."""
    owners = {name: each[0] for name, each in (await fleet.owners()).items() if name.startswith("slot/")}
    return owners == wishes(frozenset(names), tuple(sorted(owners)))


async def test_an_alarm_rings_when_it_is_due_whatever_the_machines_clock_says(fleet: Fleet) -> None:
    await fleet.node("a")
    await asyncio.gather(fleet.node("b", twins=["ahead"]), fleet.node("c", twins=["behind"]))
    await fleet.settled("abc")
    await within(PATIENCE_S, "each slot is with whoever is to have it", partial(as_wished, fleet, "abc"))
    lives, owners = await fleet.lives(), await fleet.owners()
    assert await slips(fleet) == []
    assert await fleet.lives() == lives
    assert await fleet.owners() == owners  # nobody was taken for dead


async def test_that_a_node_goes_by_its_own_clock_is_noticed(fleet: Fleet) -> None:
    await fleet.node("a", twins=["by_its_own_clock"])
    await fleet.node("b", twins=["by_its_own_clock", "ahead"])
    assert await slips(fleet) != []
