"""A node whose names were taken, and that has not heard of it; and every row of its store.

For: `fenced_node`, one that has lived: with parked rows, a letter that was given up on, runs in every state.
Never: waits for a lease: its owner rows are changed by hand, and its beat is stopped.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import apsw
import psycopg
import psycopg.sql
import pytest

from onefold import Retry, Run, actuator
from onefold.fleet.mailbox import MAIL, letter
from onefold.fleet.ownership import OWNER
from onefold.fleet.wire import Sent
from onefold.reflex import Reflexes
from onefold.store.contract import Append, Last, Put, Query
from onefold.terms.errors import OnefoldError, RunFailed
from onefold.terms.ids import ActorId
from tests.fleet import shared
from tests.fleet.nodes import SLOTS, Node, fleet_of, until
from tests.fleet.shared import Ask, Room, asks, counted, hears, work
from tests.guarantees.shop import Deposit, PayOut, Provider, make
from tests.host.automated import Effect, reflex

BANK, MANY = "acc", 12
OWN = {"node", "_onefold_node", "_onefold__meta"}  # of the node's own life, and of a file's own numbers

Tried = Callable[[], Awaitable[Any]]


@actuator
async def stores(run: Run, input: Ask) -> int:
    """A step that waits, and then a row of its own."""
    await run.db.execute("create table if not exists kept (n int)")
    n = await run.step(counted, retry=Retry(attempts=1))(input.n)
    await run.db.execute("insert into kept values (:n)", n=n)
    return n


# --- what is there ----------------------------------------------------------------------------------


def contents(store: str) -> dict[str, list[str]]:
    """Every row of every table but for the node's own life."""
    if store.startswith("postgres"):
        with psycopg.connect(store, autocommit=True) as conn:
            tables = conn.execute(
                "select schemaname, tablename from pg_tables where schemaname like 'onefold%'"
            ).fetchall()
            all_of = psycopg.sql.SQL("select t::text from {} t order by 1")
            return {
                ".".join(name): [
                    row[0] for row in conn.execute(all_of.format(psycopg.sql.Identifier(*name))).fetchall()
                ]
                for name in tables
                if name[1] not in OWN
            }
    told: dict[str, list[str]] = {}
    for file in sorted(Path(store).rglob("*.db")):
        with closing(apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READONLY)) as db:
            names = [str(name) for (name,) in db.execute("select name from sqlite_master where type = 'table'")]
            for name in [name for name in names if name not in OWN]:
                told[f"{file.name} {name}"] = sorted(map(repr, db.execute(f'select * from "{name}"')))  # noqa: S608 - its own names
    return told


class Fenced:
    """A node that was fenced, and goes on as if it were not."""

    def __init__(self, node: Node, store: str) -> None:
        self.node, self.app, self.core, self.store = node, node.app, node.host._core, store
        self.runs: dict[str, str] = {}
        self.parked: list[str] = []
        self.letter = ""

    @property
    def on_postgres(self) -> bool:
        return self.store.startswith("postgres")

    async def fence(self) -> None:
        """Give all its names to a node that nobody knows, and keep this one from hearing of it."""
        membership = self.node.part.membership
        assert membership._task is not None
        membership._task.cancel()
        membership.refresh = _deaf  # type: ignore[method-assign]
        membership.patient_until = 1
        main = await self.core.space("main")
        (owners,) = await main.look(Query(OWNER))
        taken = [(name, "ghost", 1, epoch + 1) for name, _, _, epoch in owners if not name.startswith("space/")]

        def body() -> Any:
            yield ()
            return Last((Put(OWNER, taken),), None)

        await membership.transact(body, "a fence")

    def believes(self) -> None:
        for hold in self.node.part.membership.standing._holds.values():
            hold.over = False

    async def tries(self, what: str, act: Tried) -> None:
        """It may be refused in any words; no row may be otherwise."""
        before = contents(self.store)
        self.believes()
        try:
            told = await act()
        except OnefoldError as refused:
            told = refused
        after = contents(self.store)
        changed = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
        assert not changed, f"{what} wrote in {changed}, and was told {told!r}"


async def _deaf(at: ActorId) -> None:
    """Learns nothing."""


@asynccontextmanager
async def fenced_node(kind: str, folder: Path) -> AsyncIterator[Fenced]:
    """It has lived for a while before it was fenced."""
    provider, store = Provider(), None if kind == "postgres" else str(folder / "store")
    ours = [
        Room,
        make(3),
        provider.neither(),
        Reflexes([reflex(effect={"name": "thank", "input": {}})], effects=[Effect()]),
    ]
    runs = [work, hears, asks, stores] if store is None else []  # a file that one process has needs no guard
    async with fleet_of(*ours, *runs, names="a", store=store, retention={"replies": "1ms"}) as fleet:
        made = Fenced(fleet.nodes["a"], fleet.store)
        await _lived_in(made, provider)
        await made.fence()
        yield made
        for waits in shared.held.values():
            waits.set()
        shared.held.clear()


async def _lived_in(of: Fenced, provider: Provider) -> None:
    """An actor of each sort, with something to change about it."""
    app = of.app
    bank = make(3)
    for n in range(MANY):
        await app.deliver(bank, Deposit(f"d{n}", BANK, 10))
    provider.failing = [TimeoutError("no answer") for _ in range(2)]
    for name in ("p", "q"):
        await app.deliver(bank, PayOut(name, BANK, 1))
    await app.cell(Room, "r").spawn()
    await app.cell(Room, "r").turn(Room.greet)("x")
    await posted(of, "d/bad", {"program": "nonesuch(n=1)"})
    items = await until(lambda: _parked(of, 3))
    of.parked = [item.id for item in items if item.id.startswith("owed.")]
    (of.letter,) = [item.id for item in items if not item.id.startswith("owed.")]
    if of.on_postgres:
        await _ran(of)
    await until(lambda: of.core.node.idle and of.core.driver.quiet)


async def posted(of: Fenced, event: str, word: Any) -> None:
    """A letter that an older or a newer node posted."""
    main, to = await of.core.space("main"), ActorId("Room", None, "r")
    row = letter(main.mint(MAIL), to, event, "x", Sent(to, event, b"", word).body, 0, SLOTS)

    def posts() -> Any:
        yield ()
        return Last((Append(MAIL, [row]),), None)

    await main.transact(posts)
    of.core.postman.post(to)


async def _ran(of: Fenced) -> None:
    app = of.app
    shared.failing.add(77)
    failed = await app.start(work, Ask(n=77))
    with pytest.raises(RunFailed):
        await failed.result()
    shared.failing.discard(77)
    done = await app.start(work, Ask(n=2))
    await done.result()
    shared.held[5] = asyncio.Event()
    stepping = await app.start(stores, Ask(n=5))
    await until(lambda: 5 in shared.steps)
    waits, asked = await app.start(hears, Ask(n=1)), await app.start(asks, Ask(n=1))
    await until(app.approvals.list)
    of.runs = {
        "failed": failed.run_id,
        "done": done.run_id,
        "steps": stepping.run_id,
        "waits": waits.run_id,
        "asks": asked.run_id,
    }


async def _parked(of: Fenced, count: int) -> Any:
    items = await of.app.parked.list()
    return items if len(items) == count else None
