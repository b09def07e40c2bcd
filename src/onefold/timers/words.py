"""timers.words - what a schedule hears, what it answers, and the ticks it mints.

For: events, replies, `Tick`, `TickId`, `schedule_id`, and `Timer`, which is what a read shows.
Never: behaviour beyond saying what a value may be. What is wrong is refused before a fold exists.
Was wrong once: a tick named by a running number. After a restart from a copy two instants had one name, and the
owner took the second for a repeat of the first. A tick is named by its schedule, generation and instant.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, TypeAlias

from onefold.almanac import At, Every
from onefold.kernel.words import Owed
from onefold.terms.codec import Json
from onefold.terms.errors import BadArguments, Fault
from onefold.terms.ids import check_text, join
from onefold.terms.instant import moment, text, up
from onefold.terms.limits import MAX_INT

Trigger: TypeAlias = At | Every

OWNER_CHARS: Final = 12
"""The part of a schedule's id that says whose it is, so that an owner's schedules stand together in every list."""

SCHEDULE: Final = re.compile(r"[0-9a-f]{52}", re.ASCII)


def schedule_id(owner: str, key: str) -> str:
    """The id of the schedule that an owner calls `key`: a hash of both, so creating it twice names one schedule.

    52 hex digits; the first 12 are of the owner alone. Raises: BadArguments for empty text, NUL, over 512 bytes.
    """
    both = join(check_text(owner, "owner"), check_text(key, "key"))
    return owner_part(owner) + _hash(f"schedule/{both}")[:40]


def owner_part(owner: str) -> str:
    """What all ids of an owner's schedules begin with."""
    return _hash(f"owner/{join(check_text(owner, 'owner'))}")[:OWNER_CHARS]


def _hash(told: str) -> str:
    return hashlib.sha256(told.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class TickId:
    """One tick: its schedule, the generation it was minted under, and the exact instant it was due.

    Raises: BadArguments. `due_at` is a whole millisecond.
    """

    schedule: str
    generation: int
    due_at: datetime

    def __post_init__(self) -> None:
        _check_schedule(self.schedule)
        if type(self.generation) is not int or not 0 <= self.generation <= MAX_INT:
            raise BadArguments([Fault("generation", "must be a whole number from 0", self.generation)])
        object.__setattr__(self, "due_at", _whole(self.due_at, "due_at"))

    def __str__(self) -> str:
        """As text, which is also its owed key: schedule/generation/instant."""
        return Owed.join(self.schedule, str(self.generation), text(up(self.due_at)))


@dataclass(frozen=True, slots=True)
class Tick:
    """What leaves through the port. `id` is the same however often it is sent; key your work on it."""

    id: TickId
    owner: str
    key: str
    due_at: datetime
    payload: Json


# --- events ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Create:
    """Begin a schedule. The same again changes nothing; anything else under its owner and key is a Conflict."""

    id: str
    owner: str
    key: str
    trigger: Trigger
    payload: Json = None
    ends_at: datetime | None = None

    def __post_init__(self) -> None:
        check_text(self.owner, "owner")
        check_text(self.key, "key")
        _check_ends_at(self)

    @property
    def schedule(self) -> str:
        return schedule_id(self.owner, self.key)


@dataclass(frozen=True, slots=True)
class Supersede:
    """Change a schedule, on purpose: trigger, payload and end are replaced, and a tick not yet sent is void."""

    id: str
    schedule: str
    trigger: Trigger
    payload: Json = None
    ends_at: datetime | None = None

    def __post_init__(self) -> None:
        _check_schedule(self.schedule)
        _check_ends_at(self)


@dataclass(frozen=True, slots=True)
class End:
    """No further tick, for good."""

    id: str
    schedule: str

    def __post_init__(self) -> None:
        _check_schedule(self.schedule)


@dataclass(frozen=True, slots=True)
class Ack:
    """The owner is done with a tick, perhaps hours later. Never fails: an unknown or repeated one changes nothing."""

    id: str
    tick: TickId

    @property
    def schedule(self) -> str:
        return self.tick.schedule


Event: TypeAlias = Create | Supersede | End | Ack


# --- replies --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Scheduled:
    """The schedule stands. `next_due`: the pending instant; None while a tick is held."""

    schedule: str
    generation: int
    next_due: datetime | None


@dataclass(frozen=True, slots=True)
class Conflict:
    """There is another schedule under this owner and key; it differs in `field`. Change it by Supersede."""

    schedule: str
    field: str


@dataclass(frozen=True, slots=True)
class Ended:
    """It is over: it was ended, or no instant is left."""


@dataclass(frozen=True, slots=True)
class Acked:
    """The tick is acknowledged, now or before."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """No such schedule, or a tick that is not the one in hand: of an older generation, or never minted."""


Reply: TypeAlias = Scheduled | Conflict | Ended | Acked | Unknown


# --- what a read shows ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Timer:
    """A schedule as it is. `next_due`: the pending instant. `held`: the tick that is not acknowledged yet."""

    schedule: str
    owner: str
    key: str
    generation: int
    trigger: Trigger
    payload: Json
    ends_at: datetime | None
    next_due: datetime | None
    held: TickId | None
    ended: bool


def _check_schedule(schedule: object) -> None:
    if not isinstance(schedule, str) or not SCHEDULE.fullmatch(schedule):
        raise BadArguments(
            [Fault("schedule", "is not the id of a schedule; schedule_id(owner, key) gives it", schedule)]
        )


def _check_ends_at(event: Create | Supersede) -> None:
    """An end is a whole millisecond too: the first that is not before what was said."""
    if event.ends_at is not None:
        object.__setattr__(event, "ends_at", _whole(event.ends_at, "ends_at"))


def _whole(given: object, what: str) -> datetime:
    if not isinstance(given, datetime):
        raise BadArguments([Fault(what, "is not an aware datetime", repr(given))])
    if given.tzinfo is UTC and given.microsecond % 1000 == 0:
        return given
    return moment(up(given, what=what))
