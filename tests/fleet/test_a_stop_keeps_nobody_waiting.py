"""A node that is told to stop answers whoever waits for another node's actor, before its server cuts them off."""

from __future__ import annotations

import asyncio

import pytest

from onefold import Cell
from onefold.host import membership
from onefold.terms.errors import OutcomeUnknown
from onefold.terms.ids import ActorId
from tests.fleet.nodes import SECRET, Fleet, a_key, until

LONG = "1 minute"  # a turn would wait three of them


class Tally(Cell, on_demand=True):
    sum: int = 0

    def add(self) -> int:
        self.sum += 1
        return self.sum


async def test_a_turn_that_lies_in_the_box_of_a_dead_node_is_answered_when_this_one_stops(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ONEFOLD_SECRET", SECRET)
    monkeypatch.setattr(membership, "PATIENT_MS", 0)
    fleet = Fleet()
    try:
        a, b = [await fleet.start(name, Tally, lease=LONG) for name in "ab"]
        await fleet.settled()
        key = a_key(b, "Tally")
        await b.kill()
        asked = asyncio.ensure_future(a.app.cell(Tally, key).turn(Tally.add)())
        await until(lambda: a.part.router._by_mail[ActorId("Tally", None, key)])
        a.part.rest(0)
        with pytest.raises(OutcomeUnknown):
            await asyncio.wait_for(asked, 30)
    finally:
        await fleet.close()
