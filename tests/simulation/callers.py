"""Callers that all want the same few actors, while disks fail and processes end; each call kept as its caller saw it.

For: `histories(...)`: one seeded run over one store, and what each actor's callers saw.
Never: judges them (`onefold.testing.linear` does); waits for luck: a run is its seed.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from onefold.terms.errors import HostError, OnefoldError, OutcomeUnknown
from onefold.testing import Killed
from onefold.testing.host_suite.ground import Fit, Ground, OpenWorld
from onefold.testing.host_suite.vault import Act
from onefold.testing.linear import Call, Contradiction, Model, Recorder, judged, once
from tests.simulation.register import ACCOUNT, REGISTER, Cas, Swap, account, register

KEYS = ("a", "b", "c")
CALLERS = 5
CALLS = 22  # of each caller
LIVES = 5  # of which the last has no faults
POINTS = ("statement", "before-commit", "after-commit", "before-reply")
SPINS = 300  # turns of the loop before threads are given real time
LONGEST = 20_000  # turns of the loop in one life, after which whoever was told nothing never will be
MODELS: Mapping[str, Model[Any]] = {"register": register, "account": account}


@dataclass
class Seen:
    """What callers saw, by actor, and how often what was met."""

    recorders: dict[tuple[str, str], Recorder] = field(default_factory=dict)
    met: dict[str, int] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)  # what nobody should be told

    def recorder(self, kind: str, key: str) -> Recorder:
        return self.recorders.setdefault((kind, key), Recorder())

    def count(self, what: str) -> None:
        self.met[what] = self.met.get(what, 0) + 1


@dataclass(frozen=True)
class Deed:
    """One event, and what it is to the model."""

    kind: str
    key: str
    id: str
    event: Any
    what: tuple[Any, ...]


class Caller:
    """Makes one call after another; tries again what it was not told, and now and then what was done long ago."""

    def __init__(self, name: str, chance: random.Random, ground: Ground, seen: Seen, deeds: list[Deed]) -> None:
        self.left = CALLS
        self._name = name
        self._chance = chance
        self._ground = ground
        self._seen = seen
        self._deeds = deeds
        self._untold: Deed | None = None

    async def calls(self) -> None:
        """Until there are none left, or the process ends."""
        while self.left > 0 or self._untold is not None:
            self.left -= 1
            kind, key = self._chance.choice(tuple(MODELS)), self._chance.choice(KEYS)
            roll = self._chance.random()
            if self._untold is not None:
                self._seen.count("tried again")
                await self._do(self._untold)
            elif roll < 0.35:
                await self.read(kind, key)
            elif roll < 0.5 and self._deeds:
                self._seen.count("repeated")
                await self._do(self._chance.choice(self._deeds))
            else:
                self._deeds.append(self._new(kind, key))
                await self._do(self._deeds[-1])
            if self._chance.random() < 0.2:
                await asyncio.sleep(0)

    async def read(self, kind: str, key: str) -> None:
        call = self._seen.recorder(kind, key).made(("read",))
        module = REGISTER if kind == "register" else ACCOUNT
        try:
            found: Any = await self._ground.read(key, module=module)
        except BaseException as fault:
            call.refused()  # a read changes nothing: what it would have shown is nobody's business
            if not isinstance(fault, HostError | Killed):
                raise
        else:
            call.ok(found if kind == "register" else found.total)

    async def _do(self, deed: Deed) -> None:
        call = self._seen.recorder(deed.kind, deed.key).made(deed.what, id=deed.id)
        self._untold = deed
        try:
            reply = await self._ground.deliver(deed.event, module=REGISTER if deed.kind == "register" else ACCOUNT)
        except (OutcomeUnknown, Killed):
            self._seen.count("unknown")
        except HostError:
            self._seen.count("refused")
            call.refused()
        except OnefoldError as fault:
            self._seen.faults.append(f"{deed.id} was told {fault!r}")
        else:
            call.ok(reply)
            self._untold = None
        if self._untold is not None and self._chance.random() < 0.3:
            self._untold = None  # given up on: it may have happened, or happen yet

    def _new(self, kind: str, key: str) -> Deed:
        id = f"{self._name} {self.left}"
        value = 1 + len(self._deeds)  # each once
        if kind == "account":
            by = value if self._chance.random() < 0.6 else -value
            return Deed(kind, key, id, Act(id, key, add=by), ("add", by))
        if self._chance.random() < 0.5:
            return Deed(kind, key, id, Swap(id, key, value), ("swap", value))
        known = [deed.what[-1] for deed in self._deeds[-4:] if deed.kind == kind and deed.key == key]
        expected = self._chance.choice([0, *known])
        return Deed(kind, key, id, Cas(id, key, expected, value), ("cas", expected, value))


async def histories(open_world: OpenWorld, seed: int, *, fit: Fit | None = None, failing: float = 0.01) -> Seen:
    """One run: callers over a few lives of a host that keeps two actors in memory. `failing`: how often the disk does."""
    chance = random.Random(seed)
    ground = Ground(open_world, fit)
    ground.parts = (REGISTER, ACCOUNT)
    ground.keep(2)
    seen, deeds = Seen(), list[Deed]()
    callers = [Caller(f"c{n}", random.Random(f"{seed} {n}"), ground, seen, deeds) for n in range(CALLERS)]
    loop = asyncio.get_running_loop()
    before = loop.get_exception_handler()
    loop.set_exception_handler(lambda loop, context: None)  # a kill ends a callback, and is meant to
    try:
        for life in range(LIVES):
            await ground.open()
            if life < LIVES - 1:
                arm(ground, chance, failing)
            if not await _live(ground, callers, seen):
                break
            seen.count("killed")
        for kind in MODELS:
            for key in KEYS:
                await callers[0].read(kind, key)
    finally:
        ground.live_on()
        await ground.abandoned()
        loop.set_exception_handler(before)
    return seen


def arm(ground: Ground, chance: random.Random, failing: float) -> None:
    """The process ends at some point of this life; until then the disk fails now and then."""
    ground.kill_at(chance.choice(POINTS), hit=chance.randrange(1, 60))
    kill = ground.failpoint

    def both(name: str) -> None:
        kill(name)
        if name in POINTS[:3] and chance.random() < failing:
            raise OSError(5, "the test's disk is tired")

    ground.failpoint = both


async def _live(ground: Ground, callers: list[Caller], seen: Seen) -> bool:
    """Let everybody call until nobody has anything left; whether the process ended before that."""
    tasks = [asyncio.get_running_loop().create_task(caller.calls()) for caller in callers]
    turns = 0
    while not ground.killed and not all(task.done() for task in tasks):
        turns += 1
        if turns > LONGEST:
            seen.faults.append("somebody was never told")
            break
        await asyncio.sleep(0 if turns < SPINS else 0.0005)
    killed = ground.killed
    seen.met["evicted"] = seen.met.get("evicted", 0) + ground.host._core.node.evictions
    if killed:
        await ground.let_die()
        ground.live_on()
    for task in tasks:
        task.cancel()
    for told in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(told, BaseException) and not isinstance(told, asyncio.CancelledError | Killed):
            raise told
    return killed


def not_linear(seen: Seen) -> str | None:
    """What is not linear in these histories, actor by actor; None when all of them are."""
    for (kind, key), recorder in seen.recorders.items():
        calls: tuple[Call, ...] = recorder.history
        try:
            verdict = judged(once(calls), 0, MODELS[kind])
        except Contradiction as two:
            return f"{kind} {key}: {two}"
        if not verdict:
            return f"{kind} {key}: {verdict}"
    return None
