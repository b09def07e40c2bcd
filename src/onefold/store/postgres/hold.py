"""store.postgres.hold - one process has the store, and whoever comes second is told which.

For: a world that is not shared: a lock for as long as a connection of its own stands, which every other connection of
the process proves before it is used.
Never: decides by time; lets a commit of the one before land after another has the store.
Was wrong once: the lock alone. Its connection was cut, the next process took it, and the first still wrote over the
others: those hold a second lock, shared, and nobody has the store before all of them are gone.

    door     exclusive, on one connection: the process has the store
    rooms    shared, on every other connection of it; the next one at the door takes it exclusively once, and lets go
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from onefold.store.postgres.arrays import scalar
from onefold.store.postgres.failing import STORE, faulty, unavailable
from onefold.store.postgres.sql import quoted
from onefold.store.postgres.wire import Gone, Statement, Stopped, Wire
from onefold.terms.errors import StoreLocked

PAUSE_S, LONGEST_S = 0.005, 0.5
PATIENCE_S = 5.0  # why: outlasts what a server does for a process that was killed before it looks whether it is there
_KEY = "hashtextextended('onefold ' || $1::text || ' {}', 0)"
_DOOR, _ROOMS = _KEY.format("door"), _KEY.format("rooms")
_TAKE = f"select pg_try_advisory_lock({_DOOR})".encode()
_LOOK = f"select pg_try_advisory_lock({_ROOMS})".encode()
_LEAVE_ROOMS = f"select pg_advisory_unlock({_ROOMS})".encode()
_LEAVE = f"select pg_advisory_unlock({_DOOR})".encode()
_ENTER = f"select pg_try_advisory_lock_shared({_ROOMS})".encode()
_SHARE = f"select pg_try_advisory_lock_shared({_DOOR})".encode()
_HELD = (
    "select count(*) from pg_locks, {} as k where locktype='advisory' and granted and database="
    "(select oid from pg_database where datname=current_database()) and objsubid=1"
    " and classid=((k >> 32) & 4294967295)::oid and objid=(k & 4294967295)::oid"
)
_BY = (_HELD.format(_DOOR) + " and pid=$2::int8").encode()
_WHO = (
    "select distinct a.application_name from pg_locks l join pg_stat_activity a using (pid), {} as k"
    " where l.locktype='advisory' and l.granted and l.objsubid=1 and l.pid<>pg_backend_pid()"
    " and l.database=(select oid from pg_database where datname=current_database())"
    " and l.classid=((k >> 32) & 4294967295)::oid and l.objid=(k & 4294967295)::oid order by 1"
)

Connect = Callable[[], Awaitable[Wire]]


class Hold:
    """`take` it before anything is opened; `enter` it with each connection."""

    def __init__(self, within: str, connect: Connect, lost: Callable[[], None], patience_s: float = PATIENCE_S) -> None:
        """`lost` is called when the lock may be another's: whatever is open must be let go of."""
        self._within = within
        self._connect = connect
        self._lost = lost
        self._patience_s = patience_s
        self._wire: Wire | None = None
        self._times: int | None = None
        self._taking = asyncio.Lock()

    async def enter(self, wire: Wire) -> None:
        """Prove that this process has the store, and keep the next from having it while `wire` stands.

        Raises: StoreLocked, StoreUnavailable; Gone, Stopped of `wire`.
        """
        await self.take()
        holder = self._wire
        if holder is None:
            raise unavailable("08")
        name = self._within.encode()
        results = await wire.send([Statement(_ENTER, [name]), Statement(_BY, [name, scalar("int", holder.pid)])])
        entered, held = (wire.rows(result)[0][0] for result in results)
        if not entered or not held:
            self.drop()
            raise unavailable("08")

    async def take(self) -> None:
        """Have the store. Raises: StoreLocked naming who has it, or had it meanwhile; StoreUnavailable."""
        async with self._taking:
            if self._wire is not None and self._wire.open:
                return
            if self._wire is not None:
                self._wire = None
                self._lost()
            wire = await self._connect()
            try:
                await self._knock(wire)
                self._times = await self._count(wire)
            except BaseException:
                wire.drop()
                raise
            self._wire = wire
            wire.ended = self.drop

    def drop(self) -> None:
        """Let go of it; whatever was open is let go of first."""
        wire, self._wire = self._wire, None
        self._lost()
        if wire is not None:
            wire.ended = None
            wire.drop()

    async def _knock(self, wire: Wire) -> None:
        name = [self._within.encode()]
        pause, left = PAUSE_S, self._patience_s
        while True:
            if await _says(wire, _TAKE, name):
                if await _says(wire, _LOOK, name):
                    await _says(wire, _LEAVE_ROOMS, name)
                    return
                await _says(wire, _LEAVE, name)
            if left <= 0:
                break
            await asyncio.sleep(pause)
            left -= pause
            pause = min(2 * pause, LONGEST_S)
        raise StoreLocked(STORE, await holder_of(wire, self._within) or "another process")

    async def _count(self, wire: Wire) -> int:
        """How often it was taken. Raises: StoreLocked where another took it since this process had it."""
        table = f"{quoted(self._within)}._cluster"
        times = 0  # the store may not be made yet
        if await _says(wire, b"select to_regclass($1::text) is not null", [table.encode()]):
            (result,) = await _sent(wire, f"update {table} set held=held+1 returning held".encode(), [])
            times = int(wire.rows(result)[0][0])
        if self._times is not None and times != self._times + 1:
            raise StoreLocked(STORE, "another process, which had it meanwhile; start this one anew")
        return times


class Shared:
    """The nodes of a fleet: each of their connections keeps out whoever wants the store alone, and is kept out."""

    def __init__(self, within: str) -> None:
        self._within = within

    async def enter(self, wire: Wire) -> None:
        """Raises: StoreLocked naming who has it alone; StoreUnavailable."""
        if not await _says(wire, _SHARE, [self._within.encode()]):
            raise StoreLocked(STORE, await holder_of(wire, self._within) or "a process that has it for itself")

    def drop(self) -> None:
        """Each connection holds its own, to its end."""


async def holder_of(wire: Wire, within: str) -> str | None:
    """The process that has a store, as it named itself, or all that share it; None when none does.

    Raises: StoreUnavailable.
    """
    for key in (_DOOR, _ROOMS):
        (result,) = await _sent(wire, _WHO.format(key).encode(), [within.encode()])
        holders = [str(name).removeprefix("onefold").strip() or "another process" for (name,) in wire.rows(result)]
        if holders:
            return "; ".join(holders)
    return None


async def _says(wire: Wire, text: bytes, values: list[bytes]) -> bool:
    (result,) = await _sent(wire, text, values)
    return bool(wire.rows(result)[0][0])


async def _sent(wire: Wire, text: bytes, values: list[bytes]) -> list[Any]:
    try:
        return await wire.send([Statement(text, values)])
    except Gone as gone:
        raise unavailable(gone.state) from gone
    except Stopped as stopped:
        raise faulty(stopped) from stopped
