"""host.audit - does every actor's history still agree with its links?

For: reading all turns of an opened space, and naming the actor and the turn where a history breaks.
Never: repairs; reads a space that another process writes to (its turns may land out of order meanwhile).
Was wrong once: one query an actor. Ten thousand actors with three turns each took a minute, one pass over
the table takes half a second.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from onefold.kernel.chain import Audit, Break
from onefold.kernel.tables import ACTOR, TURN
from onefold.store.contract import Each, Query, Row, Space, Table

PAGE = 2_000  # rows of one look: with facts of 200 bytes less than a megabyte
MOST = 20  # breaks named of one space; where a file was overwritten there are thousands, and the first tell as much


async def audit(space: Space) -> list[str]:
    """A sentence for each break in the space, at most MOST. Empty when every history is whole."""
    breaks: list[Break] = []
    reading = Audit()
    async for row in _all(space, TURN):
        found = reading.read(row)
        if found is not None:
            breaks.append(found)
        if len(breaks) == MOST:
            return await _named(space, breaks)
    breaks.extend([end async for end in _cut(space, reading.ends())])
    return await _named(space, breaks[:MOST])


async def _cut(space: Space, ends: dict[int, int]) -> AsyncIterator[Break]:
    """Histories whose newest turn is not the one that the store remembers as their head."""
    actors: list[Any] = []
    async for row in _all(space, ACTOR):
        actors.append(row[0])
        if len(actors) == PAGE:
            for end in await _short(space, actors, ends):
                yield end
            actors.clear()
    for end in await _short(space, actors, ends):
        yield end


async def _short(space: Space, actors: list[Any], ends: dict[int, int]) -> list[Break]:
    (newest,) = await space.look(Query(TURN, order=("-n",), each=Each("actor", actors, 1)))
    heads = {row[TURN.at["actor"]]: row[TURN.at["n"]] for row in newest}
    told = "its newest turns are missing"
    return [Break(actor, ends.get(actor, 0), told) for actor in actors if heads.get(actor) != ends.get(actor, 0)]


async def _all(space: Space, table: Table) -> AsyncIterator[Row]:
    last: Any = 0
    while True:
        (rows,) = await space.look(Query(table, where=(("n", ">", last),), order=("n",), limit=PAGE))
        for row in rows:
            yield row
        if len(rows) < PAGE:
            return
        last = rows[-1][0]


async def _named(space: Space, breaks: list[Break]) -> list[str]:
    keys: list[Row] = [(actor,) for actor in dict.fromkeys(each.actor for each in breaks)]
    (rows,) = await space.look(Query(ACTOR, on=("n",), keys=keys))
    names = {row[0]: f"{row[1]} {row[3]!r}" for row in rows}
    return [f"{names.get(each.actor, f'actor {each.actor}')}, turn {each.turn}: {each.why}" for each in breaks]
