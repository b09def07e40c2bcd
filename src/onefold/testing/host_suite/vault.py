"""testing.host_suite.vault - the module that the checks of a host deliver to, and the port it owes to.

For: one event that can do everything a decision may: count, decline, owe, set a wake, fail at a chosen place.
Never: a rule of its own that a check would have to know; time or chance but what it is handed.
Was wrong once: a module for each check. What two of them did in one actor at once was never asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Literal

from onefold.kernel import port
from onefold.kernel.module import Module
from onefold.kernel.port import Port, Step
from onefold.kernel.words import Answer, Decision, Dropped, Owed

Mood = Literal["", "raises", "idles", "cursed"]
Fault = Literal["", "decide", "evolve", "wake", "facts", "reply", "owed", "key"]
LARGE = 3 << 20  # past every ceiling for one row


@dataclass(frozen=True)
class Act:
    """What the actor `vault` is asked to do, once for each `id`.

    add: to its total; declined where the total would fall below nought. owe: names to owe to the courier,
    "=" standing for the event's own id. wake: ms from now; below nought takes the wake back. mood: how its
    alarm will behave. fault: where this fold fails. long: characters of the reply and of what is owed.
    """

    id: str
    vault: str = "a"
    add: int = 0
    owe: tuple[str, ...] = ()
    wake: int | None = None
    mood: Mood = ""
    fault: Fault = ""
    long: int = 0


@dataclass(frozen=True)
class Added:
    by: int
    at: datetime


@dataclass(frozen=True)
class Promised:
    name: str
    parcel: int


@dataclass(frozen=True)
class Planned:
    wake: datetime | None
    mood: Mood


@dataclass(frozen=True)
class Heard:
    name: str
    word: str


@dataclass(frozen=True)
class Rang:
    at: datetime


@dataclass(frozen=True)
class Cursed:
    """A fact whose evolve raises, or which is too long for its row."""

    text: str


@dataclass(frozen=True)
class Vault:
    total: int = 0
    owed: tuple[str, ...] = ()
    heard: tuple[str, ...] = ()
    rung: int = 0
    wake: datetime | None = None
    mood: Mood = ""


@dataclass(frozen=True)
class Summed:
    vault: Vault


@dataclass(frozen=True)
class Total:
    total: int
    text: str = ""


@dataclass(frozen=True)
class Short:
    by: int


@dataclass(frozen=True)
class Parcel:
    total: int
    text: str = ""


@dataclass(frozen=True)
class Slip:
    word: str


Fact = Added | Promised | Planned | Heard | Rang | Cursed | Summed
Reply = Total | Short


def decide(vault: Vault, event: Act, now: datetime) -> Decision[Fact, Reply]:
    if event.fault == "decide":
        raise RuntimeError("it was told to")
    total = vault.total + event.add
    if total < 0:
        return Decision(reply=Short(-total))
    facts: list[Fact] = []
    if event.add:
        facts.append(Added(event.add, now))
    owed: list[Owed] = []
    for name in event.owe:
        key = event.id if name == "=" else name
        facts.append(Promised(key, total))
        owed.append(Owed("courier", key, Parcel(total, "x" * event.long)))
    if event.wake is not None:
        wake = None if event.wake < 0 else now + timedelta(milliseconds=event.wake)
        facts.append(Planned(wake, event.mood))
    text = "x" * event.long
    match event.fault:
        case "evolve":
            facts.append(Cursed(""))
        case "wake":
            facts.append(Planned(now, "cursed"))
        case "facts":
            facts.append(Cursed("x" * LARGE))
        case "reply":
            text = "x" * LARGE
        case "owed":
            owed.append(Owed("courier", event.id, Parcel(total, "x" * LARGE)))
        case "key":
            owed += [Owed("courier", event.id, Parcel(0)), Owed("courier", event.id, Parcel(1))]
        case _:
            pass
    return Decision(facts=facts, owed=owed, reply=Total(total, text))


def on_answer(vault: Vault, answer: Answer[Slip | Dropped], now: datetime) -> Decision[Fact, None]:
    word = answer.body.word if isinstance(answer.body, Slip) else f"dropped: {answer.body.reason}"
    _, chained, then = word.partition("then ")
    owed = [Owed("courier", then, Parcel(vault.total))] if chained else []
    return Decision(facts=[Heard(answer.key, word)], owed=owed)


def on_alarm(vault: Vault, now: datetime) -> Decision[Fact, None]:
    if vault.mood == "raises":
        raise RuntimeError("the alarm was told to")
    return Decision() if vault.mood == "idles" else Decision(facts=[Rang(now)])


def evolve(vault: Vault, fact: Fact) -> Vault:
    match fact:
        case Added(by=by):
            return replace(vault, total=vault.total + by)
        case Promised(name=name):
            return replace(vault, owed=(*vault.owed, name))
        case Planned(wake=wake, mood=mood):
            return replace(vault, wake=wake, mood=mood)
        case Heard(name=name, word=word):
            return replace(vault, heard=(*vault.heard, f"{name}: {word}"))
        case Rang():
            return replace(vault, rung=vault.rung + 1, wake=None)
        case Cursed(text=text):
            if not text:
                raise RuntimeError("evolve was told to")
            return vault
        case Summed(vault=summed):
            return summed


def view(vault: Vault) -> Vault:
    return vault


def summed(vault: Vault) -> Summed:
    return Summed(vault)


def wake(vault: Vault) -> datetime | None:
    if vault.mood == "cursed":
        raise RuntimeError("wake was told to")
    return vault.wake


def make(name: str = "vault", *, snapshot_every: int | None = None, **other: Any) -> Module[Any, Any, Any, Any, Any]:
    """The module; `other` takes the place of a part of it."""
    parts: dict[str, Any] = {
        "initial": Vault(),
        "key": lambda event: event.vault,
        "decide": decide,
        "evolve": evolve,
        "view": view,
        "on_answer": on_answer,
        "on_alarm": on_alarm,
        "wake": wake,
    }
    if snapshot_every is not None:
        parts |= {"snapshot": summed, "snapshot_every": snapshot_every}
    return Module(name, **{**parts, **other})


VAULT = make()


class Courier:
    """The other side of the port: it notes each call, honours keys, and fails where it is told to.

    failing: raised one a call. words: what it answers, in order; "ok" when there are no more. hook: called
    first, with the step, as each call begins.
    """

    def __init__(self) -> None:
        self.calls: list[tuple[str, Parcel, int]] = []  # the key, what came under it, which attempt
        self.failing: list[Exception] = []
        self.words: list[str] = []
        self.hook: Any = None

    @property
    def keys(self) -> set[str]:
        return {key for key, _, _ in self.calls}

    def take(self, step: Step, body: Parcel) -> Slip:
        self.calls.append((step.key, body, step.attempt))
        if self.hook is not None:
            self.hook(step)
        if self.failing:
            raise self.failing.pop(0)
        return Slip(self.words.pop(0) if self.words else "ok")

    def down(self, times: int) -> None:
        """Fail the next `times` calls."""
        self.failing = [ConnectionError("down") for _ in range(times)]

    def dedupes(self) -> Port[Parcel, Slip]:
        @port.dedupes("courier")
        async def courier(step: Step, body: Parcel) -> Slip:
            return self.take(step, body)

        return courier

    def lookup(self, found: Sequence[str]) -> Port[Parcel, Slip]:
        """`found`: what `find` answers, one a call; nothing once they are used up."""
        left = list(found)

        async def find(step: Step, body: Parcel) -> Slip | None:
            return Slip(left.pop(0)) if left else None

        @port.lookup("courier", find=find)
        async def courier(step: Step, body: Parcel) -> Slip:
            return self.take(step, body)

        return courier

    def neither(self) -> Port[Parcel, Slip]:
        @port.neither("courier")
        async def courier(step: Step, body: Parcel) -> Slip:
            return self.take(step, body)

        return courier
