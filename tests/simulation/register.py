"""A register and an account: two kinds of actors, and the models that say what each would do one call after another.

For: histories of concurrent callers. Each value that is written is written once, so that a read says whose it was.
Never: time, chance, or anything owed: what is asked is whether an actor is one thing with one history.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from onefold import Decision, Module
from onefold.testing.host_suite.vault import Short, Total, make


@dataclass(frozen=True)
class Swap:
    id: str
    register: str
    value: int


@dataclass(frozen=True)
class Cas:
    id: str
    register: str
    expected: int
    value: int


@dataclass(frozen=True)
class Written:
    value: int


@dataclass(frozen=True)
class Is:
    value: int


@dataclass(frozen=True)
class Was:
    value: int


@dataclass(frozen=True)
class Kept:
    """What was expected was not there. A decline: no fact, and it counts."""

    value: int


def decide(value: int, event: Swap | Cas, now: datetime) -> Decision[Written | Is, Was | Kept]:
    if isinstance(event, Cas) and event.expected != value:
        return Decision(reply=Kept(value))
    return Decision(facts=[Written(event.value)], reply=Was(value))


def evolve(value: int, fact: Written | Is) -> int:
    return fact.value


def view(value: int) -> int:
    return value


def snapshot(value: int) -> Is:
    return Is(value)


REGISTER: Module[Any, Any, Any, Any, Any] = Module(
    "register",
    initial=0,
    key=lambda event: event.register,
    decide=decide,
    evolve=evolve,
    view=view,
    snapshot=snapshot,
    snapshot_every=5,
)
ACCOUNT = make("account", snapshot_every=5)


def register(state: int, what: Any) -> tuple[int, Any]:
    match what:
        case ("read",):
            return state, state
        case ("swap", value):
            return value, Was(state)
        case ("cas", expected, value):
            return (value, Was(state)) if state == expected else (state, Kept(state))
        case _:
            raise AssertionError(what)


def account(state: int, what: Any) -> tuple[int, Any]:
    match what:
        case ("read",):
            return state, state
        case ("add", by):
            total = state + by
            return (total, Total(total)) if total >= 0 else (state, Short(-total))
        case _:
            raise AssertionError(what)
