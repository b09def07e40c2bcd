"""testing.store_suite.author_tables - an author's tables: how they come to be, and how they are looked at.

For: migrations that run once each, pages of rows.
Never: what a step does to them (author).
"""

from __future__ import annotations

from typing import Any

from onefold.store.contract import AuthorSpace, Tx
from onefold.terms.errors import LoadRefused, NotFound
from onefold.testing.store_suite.author import AMPLE_MS, INSERT, MIGRATIONS, journal, notes, opened
from onefold.testing.store_suite.ground import Ground, Unfulfilled, done, expect, promise
from onefold.testing.store_suite.tables import TASK


@promise("an author's migrations run once each and in order, and a changed one is refused")
async def authors_migrate(ground: Ground) -> None:
    space = await opened(ground)
    await space.author_migrate(MIGRATIONS)
    more = (*MIGRATIONS, 'create table "Other Notes" (a text, b text, primary key (a, b))')
    space = await ground.reopened()
    await space.author_migrate(more)
    expect(await notes(space), {1: "from the migration"}, "the rows of a migration that ran once")
    expect(sorted(await space.author_tables()), ["Other Notes", "notes"], "the author's tables, and no other")
    await _migration_fails(space, (MIGRATIONS[0] + " ", *more[1:]), "a changed migration")
    await _migration_fails(space, (*more, "create table good (x text)", "nonsense"), "a broken migration")
    expect(sorted(await space.author_tables()), ["Other Notes", "notes"], "the tables after a broken migration")


async def _migration_fails(space: AuthorSpace, statements: tuple[str, ...], what: str) -> None:
    try:
        await space.author_migrate(statements)
    except LoadRefused:
        return
    raise Unfulfilled(f"{what} was run; promised was LoadRefused")


@promise("an author's rows are looked at page by page, and no other table is")
async def rows_are_paged(ground: Ground) -> None:
    space = await opened(ground)

    def step(tx: Tx) -> int:
        for id in range(2, 8):
            tx.execute(INSERT, id=id, said=None if id == 5 else f"note {id}")
        return 1

    done(await space.author(step, journal, budget_ms=AMPLE_MS))
    seen: list[Any] = []
    after: int | None = None
    for _ in range(3):
        columns, page, after = await space.author_rows("notes", limit=3, after=after)
        expect(columns, ["id", "said"], "the columns")
        seen.append([row[0] for row in page])
    expect((seen, after), ([[1, 2, 3], [4, 5, 6], [7]], None), "the pages")
    for name in ("nothing", TASK.name):
        try:
            await space.author_rows(name, limit=1, after=None)
        except NotFound:
            continue
        raise Unfulfilled(f"the table {name!r} was shown; promised was NotFound")


CHECKS = (authors_migrate, rows_are_paged)
