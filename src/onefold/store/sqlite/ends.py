"""store.sqlite.ends - where a file ends, and whether it holds what was acknowledged.

For: the highest number of a chain, the comparison with the mark beside the file.
Never: opens, locks or writes anything.
Was wrong once: the highest number there is. What was pruned at the end of a table was then taken for lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from onefold.store.contract import Table
from onefold.store.sqlite import sql
from onefold.store.sqlite.hold import Mark
from onefold.terms.errors import StoreRolledBack, StoreUnavailable


def highest(db: Any, table: Table, held: Mapping[str, Any]) -> int:
    """The highest number that this table has or, by the store's own notes, had."""
    text = f"select max({sql.quoted(table.key[0])}) from {sql.table_name(table)}"
    return int(max(db.execute(text).fetchall()[0][0] or 0, held.get(f"top.{table.name}", 0)))


def compare(space: str, db: Any, chains: Iterable[Table], before: Mark, held: Mapping[str, Any]) -> None:
    """Raises: StoreRolledBack when the file ends before what was acknowledged; StoreUnavailable for another's."""
    if held and held["id"] != before.id:
        why = "its file belongs to another store than its mark; put the right file back"
        raise StoreUnavailable(space, why)
    there = [table for table in chains if db.table_exists("main", sql.RESERVED + table.name)]
    top = sum(highest(db, table, held) for table in there)
    if top < before.top:
        raise StoreRolledBack(space, before.top, top)
    commits = held.get("commits", 0)
    if commits < before.commits:
        raise StoreRolledBack(space, before.commits, commits)
