"""store.postgres.checkup - what a store looks like from outside, for `onefold doctor`.

For: its spaces, how many rows a table has in each, who has it, and why it cannot be used where it cannot.
Never: makes or migrates anything; takes the lock; says an address.
Was wrong once: looking by opening. The look took the lock, and the app that was just starting was told of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from onefold.store.contract import Table
from onefold.store.postgres import migrate
from onefold.store.postgres.connect import SETTINGS, Address, Reach, connect
from onefold.store.postgres.failing import faulty, unavailable
from onefold.store.postgres.hold import holder_of
from onefold.store.postgres.sql import quoted
from onefold.store.postgres.wire import Gone, Statement, Stopped, Wire


@dataclass(frozen=True, slots=True)
class Part:
    """One space. `turns`: rows of the counted table. `holder`: the process that has the store, None when none does."""

    space: str
    turns: int | None
    holder: str | None
    faults: tuple[str, ...] = ()


async def checkup(url: str, counted: Table, *, lossy: bool = False, within: str = "onefold") -> list[Part]:
    """Every space, by name; none where there is no store. Raises: BadArguments, StoreUnavailable."""
    wire, _ = await connect(Reach(Address(url), "doctor", lossy, SETTINGS, None))
    try:
        if not await migrate.there(wire, within):
            return []
        return await _parts(wire, counted, within)
    except Gone as gone:
        raise unavailable(gone.state) from gone
    except Stopped as stopped:
        raise faulty(stopped) from stopped
    finally:
        wire.drop()


async def _parts(wire: Wire, counted: Table, within: str) -> list[Part]:
    me = quoted(within)
    holder = await holder_of(wire, within)
    names = [name for (name,) in await _rows(wire, f"select name from {me}._space order by name")]
    table = f"{me}.{quoted(counted.name)}"
    ((there,),) = await _rows(wire, "select to_regclass($1::text) is not null", table)
    counts: dict[str, int] = {}
    if there:
        counted_by = f"select s.name, count(*) from {table} t join {me}._space s on s.id=t.space group by s.name"
        counts = dict(await _rows(wire, counted_by))
    return [Part(name, counts.get(name, 0) if there else None, holder) for name in names]


async def _rows(wire: Wire, text: str, *values: str) -> list[tuple[Any, ...]]:
    (result,) = await wire.send([Statement(text.encode(), [value.encode() for value in values])])
    return wire.rows(result)
