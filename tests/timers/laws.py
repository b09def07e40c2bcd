"""What holds of a schedule whatever happened to it: read off its history and off what its owner was given."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from onefold.timers import Tick, TickId
from onefold.timers.facts import Ended, Scheduled, Superseded, TickAcked, TickSealed, TickSent, TickVoid
from onefold.timers.planning import spread
from tests.timers.home import Home, Owner


def check_history(facts: Sequence[Any]) -> None:
    """One tick at a time, sealed once, generations rising, and nothing after the end but what had left before."""
    generation, held, ended = -1, None, False
    sealed: list[TickId] = []
    for fact in facts:
        match fact:
            case Scheduled():
                assert fact.generation == generation + 1
                generation, held = fact.generation, None
            case Superseded():
                assert (fact.old, fact.new) == (generation, generation + 1)
            case TickSealed(tick=tick):
                assert held is None, f"{tick} was sealed while {held} was in hand"
                assert not ended
                assert tick.generation == generation
                assert tick not in sealed
                held = tick
                sealed.append(tick)
            case TickSent(tick=tick) | TickVoid(tick=tick):
                assert tick in sealed
                held = None if isinstance(fact, TickVoid) and tick == held else held
            case TickAcked(tick=tick):
                assert tick == held
                held = None
            case Ended():
                assert not ended
                ended, held = True, None
            case _:
                pass
    instants = [(tick.generation, tick.due_at) for tick in sealed]
    assert instants == sorted(instants)
    settled = [fact.tick for fact in facts if isinstance(fact, TickSent | TickVoid)]
    assert len(settled) == len(set(settled)), "what became of a tick was told twice"


def check_owner(owner: Owner, facts: Sequence[Any]) -> None:
    """No tick is early, none has two contents, each was sealed; repeats come under the same key."""
    sealed = {fact.tick for fact in facts if isinstance(fact, TickSealed)}
    first: dict[TickId, tuple[Tick, str]] = {}
    for tick, key, moment in zip(owner.ticks, owner.keys, owner.at, strict=True):
        assert tick.id in sealed
        assert tick.due_at == tick.id.due_at
        assert moment >= tick.due_at + timedelta(milliseconds=spread(tick.id)), f"{tick.id} was early"
        assert first.setdefault(tick.id, (tick, key)) == (tick, key)
    assert len({key for _, key in first.values()}) == len(first)


async def check_alarm(home: Home) -> None:
    """The row is never later than what the schedule wants, and once at rest it is exactly that."""
    for resident in home.stage.host._core.node._residents.values():
        wake = resident.module.wake(resident.durable) if resident.module.wake is not None else None
        owed = [item.next_at for item in resident.owed.values() if item.next_at is not None]
        if wake is not None:
            assert resident.alarm.at is not None
            assert resident.alarm.at <= round(wake.timestamp() * 1000)
        if owed:
            assert resident.alarm.at is not None
