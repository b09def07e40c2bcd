"""store.postgres.world - all spaces of one database: few connections, however many spaces.

For: opening spaces by name, the lanes they commit through, what is asked of each new connection.
Never: holds the database against other processes where it is shared: keys, locks and guards do that.
Was wrong once: a connection for each space. A thousand actuators were a thousand server processes at rest.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from onefold.store.contract import Answer, Query, Schema, Table
from onefold.store.postgres import migrate
from onefold.store.postgres.arrays import small
from onefold.store.postgres.author import Door
from onefold.store.postgres.authored import AuthoredSpace
from onefold.store.postgres.cluster import History
from onefold.store.postgres.connect import SETTINGS, Address, Reach, connect
from onefold.store.postgres.ddl import sequence
from onefold.store.postgres.engine import SETTLE_S, Engine
from onefold.store.postgres.failing import faulty, unavailable
from onefold.store.postgres.hold import PATIENCE_S, Hold, Shared
from onefold.store.postgres.lane import Lane
from onefold.store.postgres.mint import MOST, Numbers
from onefold.store.postgres.plan import Plans
from onefold.store.postgres.reader import Reader
from onefold.store.postgres.wire import Gone, Statement, Stopped, Wire

SPARE = 2  # connections kept for authors between their steps
LANES = 3  # why: `main` has one to itself, so that no step of an actuator waits behind its folds or they behind it


class PostgresWorld:
    """Spaces as parts of the tables in one schema, `within`, of the database at `url`.

    node: named to the server. alone: no other process may have the store meanwhile; one that tries is told this `node`.
    shared: by the nodes of a fleet, and by nobody alone meanwhile.
    patience_s: how long it tries. durability: "full", or "lossy-on-power-cut", which goes on with a server that does not
    wait for its disk. accept_rollback: go on after a restore or a promotion. settle_s: how long a commit whose answer
    was lost is looked up. settings: other limits of a connection than ours, by the server's names. failpoint: called
    with "statement", "before-commit" and "after-commit"; an OSError it raises is a connection that failed there.
    """

    def __init__(
        self,
        url: str,
        *,
        node: str = "",
        durability: str = "full",
        accept_rollback: bool = False,
        within: str = "onefold",
        alone: bool = False,
        shared: bool = False,
        patience_s: float = PATIENCE_S,
        settle_s: float = SETTLE_S,
        settings: Mapping[str, str] | None = None,
        failpoint: Callable[[str], None] | None = None,
    ) -> None:
        """Raises: BadArguments for what is no address."""
        if durability not in ("full", "lossy-on-power-cut"):
            raise ValueError(f"durability is 'full' or 'lossy-on-power-cut', not {durability!r}")
        self._reach = Reach(Address(url), node, durability != "full", {**SETTINGS, **(settings or {})}, failpoint)
        self._fail = failpoint
        self._settle_s = settle_s
        self._within = within
        self._history = History(within, accept_rollback)
        self._there = False
        self._spare: list[Wire] = []
        self._ended = False
        self._spaces: dict[str, AuthoredSpace] = {}
        self._hold: Hold | Shared | None = Shared(within) if shared else None
        if alone:
            self._hold = Hold(within, self._plain, self._let_go, patience_s)
        self._reader = Reader(self._connected)
        self._lanes = [Lane(self._engine()) for _ in range(LANES)]
        self._numbers = Numbers(self._blocks)
        self._plans = Plans(within)
        self._known_numbers: dict[str, int] = {}
        self._known_tables: set[str] = set()
        self._opening = asyncio.Lock()

    @property
    def incarnation(self) -> int:
        """Of the history this world writes to: part of every epoch. 0 before a space is open."""
        return self._history.incarnation

    @property
    def busy(self) -> bool:
        """Whether anything is on its way to the server or back. For tests, which wait until nothing is."""
        held = any(space.stepping for space in self._spaces.values())
        return held or self._reader.asking > 0 or any(lane.busy for lane in self._lanes) or self._opening.locked()

    async def open(self, name: str, schemas: Sequence[Schema]) -> AuthoredSpace:
        """Raises: StoreReplaced, StoreTooNew, LoadRefused, StoreUnavailable."""
        async with self._opening:
            space = self._spaces.get(name)
            if space is None:
                space = self._spaces[name] = await self._open(name, schemas)
            return space

    async def soonest(self, name: str, query: Query) -> tuple[Answer, ...]:
        space = self._spaces.get(name)
        if space is not None:
            return await space.look(query)
        try:
            number = await self._at_rest(name, query.table)
        except (Gone, Stopped) as error:
            raise unavailable(error.state) from error
        if number is None:
            return ()
        call = self._plans.of(query.table).call(query, small(number), last=False, locks=False)
        return tuple(await self._reader.look([call]))

    async def _at_rest(self, name: str, table: Table) -> int | None:
        """The number of a space; None where it or the table does not exist. A start asks for a thousand: what is there
        is asked for once."""
        wire = await self._reader.wire()
        if name not in self._known_numbers:
            if not await self._known(wire):
                return None
            self._known_numbers |= await migrate.numbers(wire, self._within)
        if table.name not in self._known_tables:
            if not await migrate.there(wire, self._within, table.name):
                return None
            self._known_tables.add(table.name)
        return self._known_numbers.get(name)

    async def connect(self) -> Wire:
        """A connection of the caller's own, checked as all are: for what the lanes do not do. Raises: as `open`."""
        return await self._connected()

    async def close(self) -> None:
        for space in self._spaces.values():
            await space.close()
        for lane in self._lanes:
            with suppress(asyncio.CancelledError):
                await lane.settled()
        self.abandon()

    def abandon(self) -> None:
        """Let go of every connection as a kill would. For tests, and the end of `close`."""
        self._numbers.close()
        self._ended = True
        self._drop_spare()
        for space in self._spaces.values():
            space.abandon()
        for lane in self._lanes:
            lane.abandon()
        self._reader.drop()
        if self._hold is not None:
            self._hold.drop()
        self._spaces.clear()

    # --- opening --------------------------------------------------------------------------------

    async def _open(self, name: str, schemas: Sequence[Schema]) -> AuthoredSpace:
        migrate.checked(schemas)
        try:
            wire = await self._reader.wire()
            if not await self._known(wire) or await migrate.lacking(wire, schemas, self._within):
                await self._migrate(schemas)
            number = await migrate.number_of(wire, name, self._within, make=True)
        except Gone as gone:
            raise unavailable(gone.state) from gone
        except Stopped as stopped:
            raise faulty(stopped) from stopped
        assert number is not None
        await self._numbers.known([t.name for s in schemas for t in s.tables if t.serial])
        lane = self._lanes[0 if name == "main" else 1 + number % (LANES - 1)]
        space = AuthoredSpace(name, number, schemas, self._plans, lane, self._reader, self._numbers)
        space.give(Door(name, self._within, self._lend, self._take_back), self._engine, self._fail)
        return space

    async def _lend(self) -> Wire:
        """A connection for an author's step: few are kept, however many authors there are. Raises: as `_connected`."""
        while self._spare:
            wire = self._spare.pop()
            if wire.at_rest:
                return wire
            wire.drop()
        return await self._connected()

    def _take_back(self, wire: Wire) -> None:
        if wire.at_rest and len(self._spare) < SPARE and not self._ended:
            self._spare.append(wire)
        else:
            wire.drop()

    def _engine(self) -> Engine:
        return Engine(self._connected, self._fail, self._history.reached, self._settle_s)

    async def _migrate(self, schemas: Sequence[Schema]) -> None:
        newest = self._history.newest
        wire, server = await connect(self._reach)
        try:
            await migrate.migrate(wire, schemas, self._within, server)
            await self._history.check(wire, server, newest)
            self._there = True
        finally:
            wire.drop()

    async def _known(self, wire: Wire) -> bool:
        """Whether the store's own tables are there."""
        self._there = self._there or await migrate.there(wire, self._within)
        return self._there

    async def _connected(self) -> Wire:
        """Raises: StoreUnavailable, StoreReplaced, StoreLocked."""
        newest = self._history.newest
        wire, server = await connect(self._reach)
        try:
            if self._hold is not None:
                await self._hold.enter(wire)
            if await self._known(wire):
                await self._history.check(wire, server, newest)
        except Gone as gone:
            raise unavailable(gone.state) from gone
        except Stopped as stopped:
            wire.drop()
            raise faulty(stopped) from stopped
        except BaseException:
            wire.drop()
            raise
        return wire

    async def _plain(self) -> Wire:
        """A connection that proves nothing."""
        wire, _ = await connect(replace(self._reach, failpoint=None))
        return wire

    def _let_go(self) -> None:
        """The store may be another process's: nothing of this one may write any more."""
        for lane in self._lanes:
            lane.engine.drop()
        for space in self._spaces.values():
            space.let_go()
        self._reader.drop()
        self._drop_spare()

    def _drop_spare(self) -> None:
        while self._spare:
            self._spare.pop().drop()

    async def _blocks(self, table: str, count: int) -> list[int]:
        text = (
            f"select n from (select nextval('{sequence(self._within, table)}') as n from generate_series(1,{count:d})) x"
            f" order by n desc limit {MOST}"
        )
        (found,) = await self._reader.rows([Statement(text.encode())])
        return sorted(row[0] for row in found)
