"""One day, the same each time, on which everything happens that must happen sometimes to a host under the model."""

from __future__ import annotations

import asyncio
import logging

import pytest

from tests.simulation.jar import Jam, Light, Move, Put, Take, lamps
from tests.simulation.play import Fault, Play, failing
from tests.sometimes import COUNTS

MET = (
    "alarm folded",
    "answer folded",
    "backlog drained",
    "conflict",
    "crash after the send",
    "crash before the commit",
    "crash between commit and reply",
    "declined",
    "disk failed",
    "dropped by a person",
    "eviction under load",
    "latch",
    "lost answer",
    "outcome unknown",
    "parked alarm",
    "parked send",
    "retry",
    "snapshot taken",
    "spurious wake",
    "uncertain send",
)


async def one_day(play: Play) -> None:
    await play.deliver((None, Put("p1", "x", 5)), (None, Put("p1", "x", 5)))
    await play.deliver((None, Put("p1", "x", 6)))
    await play.deliver((None, Take("t1", "x", 90, "pay")))
    await play.deliver((None, Move("m1", "y", 10)))
    await play.deliver((None, Move("m2", "y", 90)))
    await play.pass_time(11 * 60_000)
    await play.pass_time(90 * 60_000)
    await play.fill("anna", "x")
    for point in ("before-commit", "after-commit", "before-reply"):
        await play.deliver((None, Put(f"k {point}", "x", 1)), fault=Fault("kill", point, 1))
    for point in ("before-commit", "after-commit"):
        await play.deliver((None, Put(f"d {point}", "x", 1)), fault=Fault("disk", point, 1))
    await play.deliver((None, Put("u1", "x", 1)), fault=Fault("disk", "after-commit", 1, 2))
    await play.deliver((None, Take("t2", "x", 1, "pay")), fault=Fault("kill", "after-send", 1))
    await play.deliver((None, Take("t3", "x", 1, "wire")), fault=Fault("kill", "before-send", 1))
    await play.pass_time(10_000)
    await play.person(0, drop=True)
    await play.be("down")
    await play.deliver(*((None, Light("l1", f"lamp {n}", "pay")) for n in range(8)))
    await play.deliver((None, Jam("j1", "y", "raises")), (None, Move("m3", "y", 0)))
    await play.wear_out()
    await play.deliver((None, Light("l2", "lamp 0", "ask")))
    await play.end()


async def lost_twice(play: Play) -> None:
    """One event a turn of the loop, and every commit's answer lost: some are asked for in a commit that is lost too."""
    play.stage.failpoint = failing(Fault("disk", "after-commit", 1, 99))
    telling = []
    for n in range(12):
        light = Light(f"z{n}", f"z{n}", "pay")
        telling.append(asyncio.create_task(play.stage.host.deliver(lamps, light, caller=play.stage.caller())))
        await asyncio.sleep(0)
    await asyncio.gather(*telling, return_exceptions=True)
    play.stage.live_on()


@pytest.mark.parametrize("store", ["memory", "sqlite"])
async def test_a_day_meets_what_must_be_met(store: str, place: object, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, logger="onefold")
    before = dict(COUNTS)
    play = Play("memory:" if store == "memory" else str(place))
    await play.open()
    await one_day(play)
    await lost_twice(play)
    await play.stage.close()

    known = set(MET) - ({"lost answer", "outcome unknown"} if store == "sqlite" else set())
    assert [name for name in sorted(known) if COUNTS[name] == before.get(name, 0)] == []
