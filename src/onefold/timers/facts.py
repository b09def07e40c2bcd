"""timers.facts - what is decided about a schedule, and the state those facts add up to. Pure.

For: the facts, `Schedule` (the state), and `evolve`.
Never: asks which instant comes next. Zone data changes between two readings of one history, so what was planned
stands in the fact, with the release of the data it was planned with.
Was wrong once: the bytes of a tick in its fact. A payload of 100 KB was kept once more for every tick; it leaves from
the owed row, and the fact holds the tick's id.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypeAlias

from onefold.terms.codec import Json
from onefold.timers.words import TickId, Trigger


@dataclass(frozen=True, slots=True)
class Scheduled:
    """What the schedule is from here on. `digest`: SHA-256, in hex, of the payload's canonical JSON."""

    schedule: str
    owner: str
    key: str
    generation: int
    trigger: Trigger
    payload: Json
    digest: str
    ends_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Superseded:
    """One generation gave way to the next."""

    schedule: str
    old: int
    new: int


@dataclass(frozen=True, slots=True)
class Planned:
    """The pending instant; None when the one planned before fell past the end.

    at: when it was planned. local: the occurrence on the clocks of its zone, which new zone data does not rename; and
    tz: the release of the data that placed it. Both None for `At`, which is an instant already.
    """

    due_at: datetime | None
    at: datetime
    local: str | None = None
    tz: str | None = None


@dataclass(frozen=True, slots=True)
class Ended:
    """No further tick."""

    schedule: str
    generation: int


@dataclass(frozen=True, slots=True)
class TickSealed:
    """The pending instant became a tick. Its bytes stand in the owed row, once."""

    tick: TickId


@dataclass(frozen=True, slots=True)
class TickSent:
    """The port confirmed it; of an older generation too, when it had left before that was superseded."""

    tick: TickId


@dataclass(frozen=True, slots=True)
class TickAcked:
    """Its owner is done with it."""

    tick: TickId


@dataclass(frozen=True, slots=True)
class TickVoid:
    """It is not sent, or not sent again: its generation was superseded, or a person gave it up."""

    tick: TickId
    why: str


@dataclass(frozen=True, slots=True)
class Schedule:
    """One schedule. `id` is empty before the first Create.

    plan: the pending instant. tick: the one in hand, and whether it was sent. last: the tick before, done with, and
    local: the occurrence that the newest tick of this generation came from; nothing up to it is minted again.
    """

    id: str = ""
    owner: str = ""
    key: str = ""
    generation: int = 0
    trigger: Trigger | None = None
    payload: Json = None
    digest: str = ""
    ends_at: datetime | None = None
    plan: Planned | None = None
    tick: TickId | None = None
    sent: bool = False
    last: TickId | None = None
    local: str | None = None
    ended: bool = False

    @property
    def minted(self) -> datetime | None:
        """The instant of this generation's newest tick; None before the first."""
        newest = self.tick or self.last
        return newest.due_at if newest is not None and newest.generation == self.generation else None


@dataclass(frozen=True, slots=True)
class Kept:
    """The snapshot: the whole state as one fact."""

    schedule: Schedule


Fact: TypeAlias = Scheduled | Superseded | Planned | Ended | TickSealed | TickSent | TickAcked | TickVoid | Kept


def evolve(now: Schedule, fact: Fact) -> Schedule:
    """The state after one fact. What concerns a tick that is not in hand changes nothing."""
    match fact:
        case Scheduled():
            return _scheduled(now, fact)
        case Planned(due_at=due_at):
            return replace(now, plan=None if due_at is None else fact)
        case Ended():
            return replace(now, plan=None, tick=None, sent=False, last=now.tick or now.last, ended=True)
        case TickSealed(tick=tick):
            local = now.plan.local if now.plan is not None else None
            return replace(now, plan=None, tick=tick, sent=False, local=local)
        case TickSent(tick=tick):
            return replace(now, sent=True) if tick == now.tick else now
        case TickAcked(tick=tick) | TickVoid(tick=tick):
            return replace(now, tick=None, sent=False, last=tick) if tick == now.tick else now
        case Superseded():
            return now
        case Kept(schedule=schedule):
            return schedule


def _scheduled(now: Schedule, fact: Scheduled) -> Schedule:
    return Schedule(
        id=fact.schedule,
        owner=fact.owner,
        key=fact.key,
        generation=fact.generation,
        trigger=fact.trigger,
        payload=fact.payload,
        digest=fact.digest,
        ends_at=fact.ends_at,
        last=now.tick or now.last,
    )
