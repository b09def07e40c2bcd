"""An actor that one node claimed is not its slot's owner's any more, whatever that one has heard of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import datetime, timedelta

import pytest

import onefold
from bench.contenders.counting import Total, counter, event_bytes, notice
from onefold.fleet.words import Claimed
from onefold.host.fleet import Fleet
from onefold.terms.ids import SLOTS, ActorId, slot_of
from tests.postgres import fresh_database

Apps = tuple[onefold.App, onefold.App]
SOON = timedelta(milliseconds=300)
PATIENCE_S = 20  # a lease is two seconds; an alarm that is left to the next slow beat is half a minute late


@dataclass(frozen=True)
class Arm:
    id: str
    key: str


@dataclass(frozen=True)
class Armed:
    until: datetime | None


@dataclass(frozen=True)
class Bell:
    until: datetime | None = None
    rung: int = 0


def decide(bell: Bell, event: Arm, now: datetime) -> onefold.Decision[Armed, int]:
    return onefold.Decision(facts=[Armed(now + SOON)], reply=bell.rung)


def on_alarm(bell: Bell, now: datetime) -> onefold.Decision[Armed, None]:
    return onefold.Decision(facts=[Armed(None)])


def evolve(bell: Bell, fact: Armed) -> Bell:
    return Bell(fact.until, bell.rung + (fact.until is None))


def view(bell: Bell) -> Bell:
    return bell


def wake(bell: Bell) -> datetime | None:
    return bell.until


bells = onefold.Module(
    "bells",
    initial=Bell(),
    key=lambda event: event.key,
    decide=decide,
    evolve=evolve,
    view=view,
    on_alarm=on_alarm,
    wake=wake,
)


@pytest.fixture
async def apps(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Apps]:
    """Two nodes of one fleet, each with slots of its own."""
    monkeypatch.setenv("ONEFOLD_SECRET", "a secret of this test")
    url = fresh_database()
    async with AsyncExitStack() as stack:
        one, two = [
            await stack.enter_async_context(
                onefold.App(counter, notice, bells, store=url, node={"name": name, "lease": "2 seconds"})
            )
            for name in ("one", "two")
        ]
        while not fleet(two).membership.standing.held_slots():
            await fleet(one).membership.look()
            await fleet(two).membership.look()
        yield one, two


def fleet(app: onefold.App) -> Fleet:
    assert app.host.fleet is not None
    return app.host.fleet


async def add(app: onefold.App, who: int, tag: str) -> None:
    await app.host.deliver_raw("counter", event_bytes(tag, who, 0), caller=app.caller)


async def count(app: onefold.App, who: int) -> int:
    total = await app.read(counter, f"c{who}")
    assert isinstance(total, Total)
    return total.count


def two_of_a_slot(app: onefold.App) -> tuple[int, int]:
    """Two counters of one slot that this node owns."""
    slots, met = set(fleet(app).membership.standing.held_slots()), dict[int, int]()
    for who in range(SLOTS * SLOTS):
        slot = slot_of(ActorId("counter", None, f"c{who}"), SLOTS)
        if slot in slots and met.setdefault(slot, who) != who:
            return met[slot], who
    raise AssertionError("no two")


async def test_its_slots_owner_learns_of_it_with_the_new_epoch_of_the_slot(
    apps: Apps, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The owner's beat does not come and nobody tells it: all it hears is that a commit of its slot was refused."""
    one, two = apps
    claimed, beside = two_of_a_slot(two)
    task = fleet(two).membership._task
    assert task is not None
    task.cancel()
    monkeypatch.setattr(fleet(one).router, "tell", lambda peer: None)
    for who in (claimed, beside):
        await add(two, who, "before")
    assert isinstance(await one.fleet.claim(f"counter/c{claimed}"), Claimed)
    await add(one, claimed, "first")
    await add(two, beside, "behind the claim")  # refused once, and decided again under the slot's new epoch
    await add(two, claimed, "second")
    await add(one, claimed, "third")
    assert await count(one, claimed) == 4
    assert await count(two, beside) == 2


async def test_its_alarm_rings_where_its_slot_is_once_the_node_that_claimed_it_is_dead(apps: Apps) -> None:
    """Its slot's owner looks at alarms of the slot, and has met this one while it was another's."""
    one, two = apps
    slots = set(fleet(two).membership.standing.held_slots())
    key = next(f"k{n}" for n in range(SLOTS * SLOTS) if slot_of(ActorId("bells", None, f"k{n}"), SLOTS) in slots)
    assert isinstance(await one.fleet.claim(f"bells/{key}"), Claimed)
    await fleet(two).membership.look()
    await one.deliver(bells, Arm("a", key))
    await one.host.abandon()
    async with asyncio.timeout(PATIENCE_S):
        while True:
            bell = await two.read(bells, key)
            assert isinstance(bell, Bell)
            if bell.rung:
                break
            await asyncio.sleep(0.05)
