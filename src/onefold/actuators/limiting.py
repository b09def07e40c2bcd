"""actuators.limiting - which of the runs that wait for a limit begins next. Pure.

For: the actor of one limit: who waits, who goes, who began lately; higher priorities first, then in the order they came.
Never: begins a run by itself: it owes that, and the run may say that it has ended meanwhile.
Was wrong once: the places counted by who had asked. A run that was cancelled before it asked kept its place for ever.

The limits are those of the code that runs now. While somebody waits it looks each hour, should they have changed.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from onefold.actuators.limits import Limits
from onefold.kernel.module import Module
from onefold.kernel.words import NOTHING, Answer, Decision, Owed
from onefold.terms.duration import HOUR
from onefold.terms.instant import down, moment

KIND = "run.limits"
ADMIT = "run.admit"
RING = 1_000
"""Runs let in by one turn: more would not fit into its row. The alarm goes on with the rest."""
NO_LIMITS = Limits()


@dataclass(frozen=True, order=True)
class Waiter:
    """A run that waits, in the order in which they are let in. after: the negative of its priority. since: when it
    came; due: not before (ms)."""

    after: int
    since: int
    seq: int
    id: str
    run: str
    principal: str | None
    due: int = 0


@dataclass(frozen=True)
class Asked:
    """A run wants to begin. id: of the run and of how often it was reopened."""

    id: str
    program: str
    group: str
    run: str
    principal: str | None
    priority: int
    since: int


@dataclass(frozen=True)
class Left:
    """A run has ended or is parked: its place is free."""

    id: str
    program: str
    group: str


@dataclass(frozen=True)
class Queued:
    program: str
    waiter: Waiter


@dataclass(frozen=True)
class LetIn:
    """keep: of so many the instants are kept, for the rate."""

    id: str
    at: int
    keep: int = 0


@dataclass(frozen=True)
class Gone:
    id: str


@dataclass(frozen=True)
class Looked:
    at: int


@dataclass(frozen=True)
class Limit:
    """waiting: sorted. began: when the last ones did (ms)."""

    program: str = ""
    waiting: tuple[Waiter, ...] = ()
    going: tuple[str, ...] = ()
    began: tuple[int, ...] = ()
    seq: int = 0
    looked: int = 0


@dataclass(frozen=True)
class Kept:
    """The snapshot."""

    limit: Limit


@dataclass(frozen=True)
class Admission:
    """Body of the port `run.admit`: let this run begin, or, with `by`, cancel it, since that run stands for it."""

    program: str
    principal: str | None
    run: str
    by: str | None = None


Word = Queued | LetIn | Gone | Looked | Kept
LimitModule = Module[Limit, Asked | Left, Word, None, Limit]


def evolve(limit: Limit, fact: Word) -> Limit:
    match fact:
        case Queued(program, waiter):
            waiting = list(limit.waiting)
            insort(waiting, waiter)
            return replace(limit, program=program, waiting=tuple(waiting), seq=max(limit.seq, waiter.seq))
        case LetIn(id, at, keep):
            began = (*limit.began, at)[-keep:] if keep else ()
            going = (*limit.going, id)
            return replace(limit, waiting=_without(limit.waiting, id), going=going, began=began, looked=at)
        case Gone(id):
            going = tuple(one for one in limit.going if one != id)
            return replace(limit, waiting=_without(limit.waiting, id), going=going)
        case Looked(at):
            return replace(limit, looked=at)
        case Kept(kept):
            return kept


def _without(waiting: tuple[Waiter, ...], id: str) -> tuple[Waiter, ...]:
    return tuple(one for one in waiting if one.id != id)


def key_of(program: str, group: str) -> str:
    """The key of a limit's actor. group: of the runs that agree on `per`; "" without."""
    return f"{program}/{group}" if group else program


def limiting(known: Mapping[str, Limits]) -> LimitModule:
    """The module. known: the limits of the actuators that have some."""

    def limits(limit: Limit) -> Limits:
        return known.get(limit.program, NO_LIMITS)

    def decide(limit: Limit, event: Asked | Left, now: datetime) -> Decision[Word, None]:
        at = down(now)
        if isinstance(event, Left):
            here = event.id in limit.going or any(one.id == event.id for one in limit.waiting)
            return _onward(limit, limits(limit), [Gone(event.id)], [], at) if here else NOTHING
        quiet = known.get(event.program, NO_LIMITS).debounce
        due = at + quiet if quiet else 0
        waiter = Waiter(-event.priority, event.since, limit.seq + 1, event.id, event.run, event.principal, due)
        facts: list[Word] = []
        owed: list[Owed] = []
        for old in limit.waiting if quiet is not None else ():
            facts.append(Gone(old.id))
            owed.append(_admit(f"replaced/{old.id}", event.program, old, event.run))
        return _onward(limit, known.get(event.program, NO_LIMITS), [*facts, Queued(event.program, waiter)], owed, at)

    def on_answer(limit: Limit, answer: Answer[bool], now: datetime) -> Decision[Word, None]:
        id = answer.key.removeprefix("admit/")
        if answer.body or id not in limit.going:
            return NOTHING
        return _onward(limit, limits(limit), [Gone(id)], [], down(now))  # it had ended before it could begin

    def on_alarm(limit: Limit, now: datetime) -> Decision[Word, None]:
        at = down(now)
        onward = _onward(limit, limits(limit), [], [], at)
        return onward if onward.facts else Decision(facts=[Looked(at)], reply=None)

    def wake(limit: Limit) -> datetime | None:
        return None if not limit.waiting else moment(_wakes(limit, limits(limit)))

    module = Module(
        "limits",
        initial=Limit(),
        key=_key,
        decide=decide,
        evolve=evolve,
        view=_view,
        on_answer=on_answer,
        on_alarm=on_alarm,
        wake=wake,
        snapshot=_snapshot,
    )
    module.name = KIND  # a name that no part of an app can have
    return module


def _key(event: Asked | Left) -> str:
    return key_of(event.program, event.group)


def _view(limit: Limit) -> Limit:
    return limit


def _snapshot(limit: Limit) -> Kept:
    return Kept(limit)


def _admit(key: str, program: str, waiter: Waiter, by: str | None = None) -> Owed:
    return Owed(ADMIT, key, Admission(program, waiter.principal, waiter.run, by))


def _onward(limit: Limit, limits: Limits, facts: list[Any], owed: list[Owed], at: int) -> Decision[Word, None]:
    """These facts, and everybody who may begin after them."""
    for fact in facts:
        limit = evolve(limit, fact)
    keep = 0 if limits.rate is None else limits.rate[0]
    for _ in range(RING):
        waiter = next((one for one in limit.waiting if one.due <= at), None)
        if waiter is None or _full(limit, limits) or _next_by_rate(limit, limits) > at:
            break
        let = LetIn(waiter.id, at, keep)
        limit = evolve(limit, let)
        facts.append(let)
        owed.append(_admit(f"admit/{waiter.id}", limit.program, waiter))
    return Decision(facts=facts, owed=owed, reply=None)


def _full(limit: Limit, limits: Limits) -> bool:
    return limits.at_once is not None and len(limit.going) >= limits.at_once


def _next_by_rate(limit: Limit, limits: Limits) -> int:
    """The first instant (ms) at which the rate lets another begin."""
    if limits.rate is None or len(limit.began) < limits.rate[0]:
        return 0
    return limit.began[-limits.rate[0]] + limits.rate[1]


def _wakes(limit: Limit, limits: Limits) -> int:
    look = limit.looked + HOUR
    if _full(limit, limits):
        return look
    return min(look, max(min(one.due for one in limit.waiting), _next_by_rate(limit, limits)))
