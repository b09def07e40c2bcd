"""The billing example in one process: its automations and effects as they are, its bank and its books beside it.

For: the engine over a store that can die at any commit, a bank that honours keys and misbehaves, a clock moved by hand.
Never: another reading of the example; what is here is what `onefold serve` would run, without the network between.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import io
import json
import random
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from datetime import datetime
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from onefold.reflex.engine import Engine
from onefold.reflex.selects import Selects
from onefold.reflex.tables import LEDGER
from onefold.reflex.templates import CelTransform
from onefold.store.contract import Answer, Body, Outcome, Party, Query, Space, Table, World
from onefold.testing import Killed

T = TypeVar("T")
EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "billing"
ROUNDS = 400  # advances after which something that still moves never rests


def part(name: str) -> ModuleType:
    """A file of the example, as its neighbours import it."""
    known = sys.modules.get(name)
    if known is not None and Path(str(known.__file__)).parent == EXAMPLE:
        return known
    spec = importlib.util.spec_from_file_location(name, EXAMPLE / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


books, bank, billing = part("books"), part("bank"), part("billing")


def definitions() -> list[dict[str, Any]]:
    """Those of both studios."""
    found: list[dict[str, Any]] = []
    for file in sorted((EXAMPLE / "reflexes").glob("*.json")):
        found.extend(json.loads(file.read_text(encoding="utf-8")))
    return found


class Fuse:
    """A process that dies at the k-th place where it could; `dead` until the next one begins."""

    def __init__(self) -> None:
        self.left: int | None = None
        self.dead = False
        self.deaths = 0

    def meet(self) -> None:
        """Raises: Killed, there and everywhere after it."""
        if self.left is not None:
            self.left -= 1
            if self.left <= 0:
                self.die()
        if self.dead:
            raise Killed("the process is gone")

    def die(self) -> None:
        self.dead, self.left = True, None
        self.deaths += 1
        raise Killed("the process is gone")

    def live_on(self) -> None:
        self.dead, self.left = False, None


class Mortal:
    """A space whose process may die before and after each commit, and at each look."""

    far = False

    def __init__(self, space: Space, fuse: Fuse) -> None:
        self.name = space.name
        self._space, self._fuse = space, fuse

    def join(self, party: Party) -> None:
        self._space.join(party)

    async def transact(self, body: Body[T]) -> Outcome[T]:
        self._fuse.meet()
        outcome = await self._space.transact(body)
        self._fuse.meet()
        return outcome

    async def look(self, *queries: Query) -> tuple[Answer, ...]:
        self._fuse.meet()
        return await self._space.look(*queries)

    def mint(self, table: Table) -> int:
        return self._space.mint(table)


class MoodyBank:
    """Cards are charged in its ledger. `mood`: what goes wrong around a call: "before", "after", "die" or nothing."""

    def __init__(self, fuse: Fuse, mood: Callable[[str], str | None]) -> None:
        self.ledger = bank.Ledger()
        self._fuse, self._mood = fuse, mood

    async def charge(self, key: str, card: str, amount: int) -> dict[str, Any]:
        self._fuse.meet()
        mood = self._mood(key)
        if mood == "before":
            raise ConnectionError("the bank does not answer")
        charge = self.ledger.charge(key, card, amount)
        if mood == "after":
            raise ConnectionError("the bank charged, and its answer was lost")
        if mood == "die":
            self._fuse.die()
        return {"id": charge.id, "status": charge.status}


class Asked:
    """The books as a database of the selections."""

    def __init__(self, of: Any) -> None:
        self._of = of

    async def rows(
        self, sql: str, values: Mapping[str, Any], *, timeout_ms: int, named: str
    ) -> AsyncIterator[Mapping[str, object]]:
        for row in self._of.rows(sql, **values):
            yield row


class Studio:
    """The whole of it over one store."""

    def __init__(
        self,
        world: World,
        folder: Path,
        mood: Callable[[str], str | None],
        client: Callable[[MoodyBank], Any] = lambda bank: bank,
    ) -> None:
        """client: what the effects reach the bank through."""
        self.world = world
        self.fuse = Fuse()
        self.books = books.Books(folder / "books.db")
        self.books.create()
        self.bank = client(MoodyBank(self.fuse, mood))
        self.definitions = definitions()
        self.engine: Engine

    async def begins(self, now: datetime) -> None:
        """A process starts, over whatever is there."""
        self.fuse.live_on()
        self.engine = await self.another()
        await self.engine.load(self.definitions, now)

    async def another(self) -> Engine:
        space = Mortal(await self.world.open("main", [LEDGER]), self.fuse)
        return Engine(
            space,
            transform=CelTransform(),
            select=Selects(billing.selects(self.books), lambda on: Asked(self.books)),
            effects=billing.effects(self.books, self.bank),
        )

    async def rows(self, table: Table) -> list[dict[str, Any]]:
        space = await self.world.open("main", [LEDGER])
        (rows,) = await space.look(Query(table, order=table.key))
        return [dict(zip(table.at, row, strict=True)) for row in rows]


async def one_life(act: Awaitable[T]) -> T | None:
    """What comes of it; None when the process died of it, and nothing of it is left running."""
    with contextlib.redirect_stdout(io.StringIO()):  # the letters
        before = asyncio.all_tasks()
        try:
            return await act
        except Killed:
            rest = asyncio.all_tasks() - before
            for task in rest:
                task.cancel()
            await asyncio.gather(*rest, return_exceptions=True)
            return None


async def rests(engine: Engine, now: datetime) -> bool:
    """Advance until only time can help."""
    for _ in range(ROUNDS):
        if not (await engine.advance(now)).moved:
            return True
    raise AssertionError(f"it still moves after {ROUNDS} advances")


def moody(rng: random.Random, share: float) -> Callable[[str], str | None]:
    """Something wrong about one call in so many, at most twice under each key: a bank that is never well is no test."""
    met: dict[str, int] = {}

    def mood(key: str) -> str | None:
        if met.get(key, 0) == 2 or rng.random() > share:
            return None
        met[key] = met.get(key, 0) + 1
        return rng.choice(("before", "after", "die"))

    return mood


async def passes(studio: Studio, now: datetime, end: datetime) -> datetime:
    """Time goes by as a driver would let it, from one due instant to the next. Gives where it ended: at `end`, or
    where the process died."""
    while True:
        if not await one_life(rests(studio.engine, now)):
            return now
        due = await one_life(studio.engine.next_due(now))
        if studio.fuse.dead:
            return now
        if due is None or due > end:
            return end
        assert due > now, "a driver would spin"
        now = due
