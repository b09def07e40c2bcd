"""Two modules that use all of the kernel between them, and the other side of their ports.

For: `jars` (wakes, answers, drops, chains, snapshots, keys it names) and `lamps` (none of that: what it owes is
only confirmed); `Far`, which records what reached it and fails, forgets or keeps waiting as it is told.
Never: knows what the model expects.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal

from onefold import Answer, Decision, Module, Owed, Step, port
from onefold.kernel.words import Dropped

# --- what jars hear and decide ------------------------------------------------------------------


@dataclass(frozen=True)
class Jar:
    coins: int = 20
    held: tuple[tuple[str, int], ...] = ()
    wake: datetime | None = None
    jam: str = ""
    rang: int = 0


@dataclass(frozen=True)
class Put:
    id: str
    key: str
    coins: int


@dataclass(frozen=True)
class Take:
    """Coins that leave through a port. `name`: the owed key, when it is not the event's id."""

    id: str
    key: str
    coins: int
    port: str
    name: str = ""
    later: int = 0  # minutes until it may leave


@dataclass(frozen=True)
class Move:
    """A wake, superseding the one before."""

    id: str
    key: str
    minutes: int | None


@dataclass(frozen=True)
class Jam:
    """How the alarm fails from now on: it "raises", it is "idle", or ("") not at all."""

    id: str
    key: str
    how: str


@dataclass(frozen=True)
class Trip:
    """Cannot be decided."""

    id: str
    key: str


@dataclass(frozen=True)
class Added:
    coins: int


@dataclass(frozen=True)
class Taken:
    name: str
    coins: int


@dataclass(frozen=True)
class Moved:
    at: datetime | None


@dataclass(frozen=True)
class Jammed:
    how: str


@dataclass(frozen=True)
class Rang:
    at: datetime


@dataclass(frozen=True)
class Sent:
    name: str
    receipt: int


@dataclass(frozen=True)
class Back:
    name: str
    why: str


@dataclass(frozen=True)
class Kept:
    jar: Jar


@dataclass(frozen=True)
class Has:
    coins: int


@dataclass(frozen=True)
class Lacks:
    by: int


@dataclass(frozen=True)
class Pay:
    """`left` is of the state, but for a key that the module named: its bytes are always the same."""

    coins: int
    left: int


@dataclass(frozen=True)
class Receipt:
    number: int


JarEvent = Put | Take | Move | Jam | Trip
JarFact = Added | Taken | Moved | Jammed | Rang | Sent | Back | Kept
JarReply = Has | Lacks
CHAINED = 5  # coins from which a payment through "pay" is followed by a note through "ask"
EVERY = 6  # facts a snapshot


def decide(jar: Jar, event: JarEvent, now: datetime) -> Decision[JarFact, JarReply]:
    match event:
        case Put(coins=coins):
            return Decision(facts=[Added(coins)], reply=Has(jar.coins + coins))
        case Take(coins=coins) if coins > jar.coins:
            return Decision(reply=Lacks(coins - jar.coins))
        case Take(id=id, coins=coins, port=way, name=name, later=later):
            body = Pay(coins, -1 if name else jar.coins - coins)
            at = now + timedelta(minutes=later) if later else None
            owed = [Owed(way, name or id, body, at)]
            return Decision(facts=[Taken(name or id, coins)], owed=owed, reply=Has(jar.coins - coins))
        case Move(minutes=minutes):
            at = None if minutes is None else now + timedelta(minutes=minutes)
            return Decision(facts=[Moved(at)], reply=Has(jar.coins))
        case Jam(how=how):
            return Decision(facts=[Jammed(how)], reply=Has(jar.coins))
        case Trip():
            raise RuntimeError("it tripped")


def on_answer(jar: Jar, answer: Answer[Receipt | Dropped], now: datetime) -> Decision[JarFact, None]:
    match answer.body:
        case Receipt(number) if answer.port == "pay" and dict(jar.held).get(answer.key, 0) >= CHAINED:
            note = Owed("ask", Owed.join(answer.key, "note"), Pay(0, -2))
            return Decision(facts=[Sent(answer.key, number)], owed=[note])
        case Receipt(number):
            return Decision(facts=[Sent(answer.key, number)])
        case Dropped(reason):
            return Decision(facts=[Back(answer.key, reason)])


def on_alarm(jar: Jar, now: datetime) -> Decision[JarFact, None]:
    if jar.jam == "raises":
        raise RuntimeError("the alarm is jammed")
    return Decision() if jar.jam else Decision(facts=[Rang(now)])


def evolve(jar: Jar, fact: JarFact) -> Jar:
    match fact:
        case Added(coins):
            return replace(jar, coins=jar.coins + coins)
        case Taken(name, coins):
            return replace(jar, coins=jar.coins - coins, held=(*without(jar, name), (name, coins)))
        case Moved(at):
            return replace(jar, wake=at)
        case Jammed(how):
            return replace(jar, jam=how)
        case Rang():
            return replace(jar, wake=None, rang=jar.rang + 1)
        case Sent(name, _):
            return replace(jar, held=without(jar, name))
        case Back(name, _):
            return replace(jar, coins=jar.coins + dict(jar.held).get(name, 0), held=without(jar, name))
        case Kept(kept):
            return kept


def without(jar: Jar, name: str) -> tuple[tuple[str, int], ...]:
    return tuple(pair for pair in jar.held if pair[0] != name)


def view(jar: Jar) -> Jar:
    return jar


def snapshot(jar: Jar) -> Kept:
    return Kept(jar)


jars: Module[Jar, JarEvent, JarFact, JarReply, Jar] = Module(
    "jars",
    initial=Jar(),
    key=lambda event: event.key,
    decide=decide,
    evolve=evolve,
    view=view,
    on_answer=on_answer,
    on_alarm=on_alarm,
    wake=lambda jar: jar.wake,
    snapshot=snapshot,
    snapshot_every=EVERY,
)


# --- lamps: nothing but facts and what they owe --------------------------------------------------


@dataclass(frozen=True)
class Light:
    id: str
    key: str
    port: str


@dataclass(frozen=True)
class Lit:
    number: int


@dataclass(frozen=True)
class Lamp:
    lit: int = 0


def light(lamp: Lamp, event: Light, now: datetime) -> Decision[Lit, Has]:
    owed = [Owed(event.port, event.id, Pay(lamp.lit, 0))]
    return Decision(facts=[Lit(lamp.lit + 1)], owed=owed, reply=Has(lamp.lit + 1))


def shine(lamp: Lamp, fact: Lit) -> Lamp:
    return Lamp(fact.number)


def look(lamp: Lamp) -> Lamp:
    return lamp


lamps: Module[Lamp, Light, Lit, Has, Lamp] = Module(
    "lamps", initial=Lamp(), key=lambda event: event.key, decide=light, evolve=shine, view=look
)

Event = JarEvent | Light


# --- the other side ---------------------------------------------------------------------------------

Mood = Literal["well", "down", "forgetful", "slow"]


class Far:
    """The other side of the ports "pay" (dedupes), "ask" (lookup) and "wire" (neither).

    calls: (port, key, body) of everything that reached it. done: by key, the receipts given for it.
    insisted: by key, how often a person wanted it tried again. held: calls kept waiting. In the mood "forgetful" it
    does what is asked, and the answer is lost.
    """

    def __init__(self) -> None:
        self.mood: Mood = "well"
        self.calls: list[tuple[str, str, Pay]] = []
        self.done: dict[str, list[int]] = {}
        self.insisted: dict[str, int] = {}
        self.held = self.ever_held = 0
        self._free = asyncio.Event()

    def take(self, mood: Mood) -> None:
        """Be in this mood from now on; all but "slow" let go of what was kept waiting."""
        self.mood = mood
        if mood != "slow":
            self._free.set()
            self._free = asyncio.Event()

    async def act(self, way: str, step: Step, body: Pay) -> Receipt:
        self.calls.append((way, step.key, body))
        if self.mood == "slow":
            free = self._free
            self.held += 1
            self.ever_held += 1
            try:
                await free.wait()
            finally:
                self.held -= 1
        if self.mood == "down":
            raise ConnectionError("the other side is down")
        number = len(self.calls)
        self.done.setdefault(step.key, []).append(number)
        if self.mood == "forgetful":
            raise TimeoutError("the answer was lost")
        return Receipt(number)

    def parts(self) -> tuple[port.Port[Pay, Receipt], ...]:
        @port.dedupes("pay")
        async def pay(step: Step, body: Pay) -> Receipt:
            return await self.act("pay", step, body)

        async def find(step: Step, body: Pay) -> Receipt | None:
            known = self.done.get(step.key)
            return None if known is None else Receipt(known[0])

        @port.lookup("ask", find=find)
        async def ask(step: Step, body: Pay) -> Receipt:
            return await self.act("ask", step, body)

        @port.neither("wire")
        async def wire(step: Step, body: Pay) -> Receipt:
            return await self.act("wire", step, body)

        return pay, ask, wire
