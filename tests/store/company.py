"""Worlds that share a folder, and short ways to write and read in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from onefold.store.contract import Append, Body, Done, Last, Query
from onefold.store.sqlite import SqliteWorld
from onefold.store.sqlite.space import SqliteSpace
from onefold.testing.store_suite.tables import SHARED
from tests.store.child import Asking, clock
from tests.store.shorthand import writing
from tests.store.tables import SCHEMA, TURN

BOTH = [SCHEMA, SHARED]


def world_of(folder: Path, *, shared: bool = True, node: str = "") -> SqliteWorld:
    return SqliteWorld(folder, clock=clock, shared=shared, node=node)


async def does(space: SqliteSpace, *writes: Any) -> tuple[Any, ...]:
    outcome = await space.transact(writing(*writes))
    assert isinstance(outcome, Done), outcome
    return outcome.answers


async def history(space: SqliteSpace, actor: int) -> list[Any]:
    (rows,) = await space.look(Query(TURN, (("actor", "=", actor),), order=("-n",)))
    return list(rows)


def following(space: SqliteSpace, actor: int, event: str) -> Body[int | None]:
    """One more turn of a history, unless the event was there before."""

    def run() -> Asking:
        (met, head) = yield (
            Query(TURN, on=("actor", "event"), keys=[(actor, event)]),
            Query(TURN, (("actor", "=", actor),), order=("-n",), limit=1),
        )
        if met:
            return Last((), None)
        row = (space.mint(TURN), actor, head[0][0] if head else None, event, None)
        return Last((Append(TURN, [row]),), row[0])

    return run


def sizes(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_size for path in folder.iterdir()}
