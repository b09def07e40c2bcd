"""host.blob_audit - are a space's blobs there, whole, and named by somebody? For `onefold doctor`.

For: reading every blob and every row that points at one; what is missing, damaged, or named by nobody.
Never: mends; removes; reads a space that somebody holds.
Was wrong once: only the blobs were read. One whose row was lost was no fault, until its reply was asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from onefold.kernel.blob import BLOB, address_of, digest_text, lookup, pointed_in
from onefold.kernel.tables import ACTOR, OWED, TURN
from onefold.node.blob_sweep import Look, named_in
from onefold.node.blobs import Blobs
from onefold.store.contract import Query, Row, Table
from onefold.store.folder import SHARDS
from onefold.terms.damage import BlobDamaged
from onefold.terms.ids import principal_of

PAGE = 64  # rows in memory at once: each may be a megabyte
MOST = 20  # faults named of one space; a lost folder has thousands, and the first tell as much
EVER = 2**53  # ms, later than any file

_POINTING: tuple[tuple[Table, tuple[str, ...]], ...] = ((TURN, ("reply", "facts")), (OWED, ("bytes",)))


@dataclass(slots=True)
class Found:
    """blobs: how many there are. unreferenced: blobs and files that no row names. faults: missing and damaged ones."""

    blobs: int = 0
    unreferenced: int = 0
    faults: list[str] = field(default_factory=list)


async def blob_audit(blobs: Blobs, elsewhere: Sequence[Look] = ()) -> Found:
    """Read all of one opened space. elsewhere: spaces whose rows may name its blobs, too. Raises: StoreUnavailable."""
    found, files = Found(), set[str]()
    after = 0
    while rows := await _page(blobs, BLOB, after):
        after = int(rows[-1][0] or 0)
        named = await named_in(lambda query: _look(blobs, query), rows)
        for look in elsewhere:
            named |= await named_in(look, rows)
        for row in rows:
            found.blobs += 1
            found.unreferenced += row[BLOB.at["address"]] not in named
            files.add(str(row[BLOB.at["file"]]))
            try:
                await blobs.bytes_of(row)
            except BlobDamaged as damaged:
                found.faults.append(f"the blob {damaged.digest} is damaged: {damaged.why}")
    if blobs.files is not None:
        found.unreferenced += sum(
            name not in files for shard in range(SHARDS) for name in blobs.files.older(shard, EVER)
        )
    for table, columns in _POINTING:
        found.faults.extend([told async for told in _missing(blobs, table, columns)])
    if len(found.faults) > MOST:
        found.faults[MOST:] = [f"and {len(found.faults) - MOST} more"]
    return found


async def _missing(blobs: Blobs, table: Table, columns: Sequence[str]) -> Any:
    """A line for each row that points at a blob which is not there."""
    after = 0
    while rows := await _page(blobs, table, after):
        after = int(rows[-1][0] or 0)
        pointing = [(row, told) for row in rows if (told := pointed_in(*(row[table.at[c]] for c in columns)))]
        if not pointing:
            continue
        actors = await _look(blobs, Query(ACTOR, on=("n",), keys=[(row[table.at["actor"]],) for row, _ in pointing]))
        owners = {row[0]: principal_of(str(row[ACTOR.at["principal"]])) for row in actors}
        wanted = {
            (row[0], told): address_of(owners[row[table.at["actor"]]], told)
            for row, every in pointing
            for told in every
            if row[table.at["actor"]] in owners
        }
        there = {row[BLOB.at["address"]] for row in await _look(blobs, lookup(set(wanted.values())))}
        for (n, missed), address in wanted.items():
            if address not in there:
                yield f"the blob {digest_text(missed)} is missing, and {table.name} {int(n or 0)} points at it"


async def _page(blobs: Blobs, table: Table, after: int) -> Sequence[Row]:
    return await _look(blobs, Query(table, where=(("n", ">", after),), order=("n",), limit=PAGE))


async def _look(blobs: Blobs, query: Query) -> Sequence[Row]:
    (rows,) = await blobs.space.look(query)
    found: Sequence[Row] = rows
    return found
