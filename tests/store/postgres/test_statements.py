"""What the store sends: few trips, of any size, and statements whose cost does not grow with their tables."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Generator
from typing import Any

import psycopg
import pytest

from onefold.kernel.blob import BLOBS
from onefold.kernel.tables import KERNEL
from onefold.store.contract import (
    Append,
    Body,
    Cas,
    Claim,
    Done,
    Inc,
    Last,
    Put,
    Query,
    Refused,
    Remove,
    Row,
    Still,
    Table,
    Verb,
)
from onefold.store.postgres import PostgresWorld
from onefold.store.postgres.arrays import small
from onefold.store.postgres.connect import SETTINGS
from onefold.store.postgres.plan import LARGEST, Plan
from onefold.store.postgres.space import PostgresSpace
from onefold.testing.store_suite.ground import Member, asking, together, writing
from onefold.testing.store_suite.tables import MAIL, OWNER, SCHEMA, SENT, TASK, TURN, Histories, task


@pytest.fixture
async def space(postgres: str) -> AsyncIterator[PostgresSpace]:
    world = PostgresWorld(postgres)
    yield await world.open("main", [SCHEMA])
    await world.close()


async def trips(space: PostgresSpace, *members: Member) -> int:
    """How many round trips it took until all of them were told they are done."""
    wire = await space.lane.engine.wire()
    before = wire.trips
    for member in members:
        space.join(member)
    for member in members:
        assert isinstance(await member.outcome, Done)
    return wire.trips - before


@pytest.mark.parametrize("rows", [1, 64, 256])
async def test_a_body_of_one_question_and_one_write_is_two_round_trips_for_any_number_of_rows(
    space: PostgresSpace, rows: int
) -> None:
    turn = Histories(space)
    asked = Query(OWNER, on=("name",), keys=[(f"slot/{i}",) for i in range(rows)], lock="share")
    writes = (
        Append(TURN, [turn.row(i, "e", b"f") for i in range(rows)]),
        Append(SENT, [(i, "k", b"d") for i in range(rows)]),
        Put(TASK, [task(i) for i in range(rows)]),
        Remove(SENT, keys=[(i, "k") for i in range(rows)]),
        Cas(TASK, [((i,), {"tries": 0}, {"tries": Inc(1)}) for i in range(rows)]),
    )
    assert await trips(space, Member("one", asking(asked, then=writes))) == 2


async def test_a_body_that_asks_nothing_is_one_trip_and_what_its_party_asked_one_more(space: PostgresSpace) -> None:
    turn = Histories(space)
    asks = (Query(TURN, on=("actor", "event"), keys=[(i, "e") for i in range(64)]),)
    folds = writing(Append(TURN, [turn.row(i, "e") for i in range(64)]), Put(TASK, [task(1)]))
    assert await trips(space, Member("asks", folds, asks=asks)) == 2
    assert await trips(space, Member("writes", writing(Put(TASK, [task(2)])))) == 1
    assert await trips(space, Member("idles", None, asks=asks)) == 1
    told = Still(TASK, [((1,), {"tries": 0}), ((2,), {"kind": "a"})])
    assert await trips(space, Member("counts on rows", writing(told, Put(TASK, [task(3)])))) == 1
    assert await trips(space, Member("does nothing", writing())) == 0


async def test_bodies_in_company_take_a_trip_each_and_those_that_only_write_none(space: PostgresSpace) -> None:
    asks = [Member(str(i), asking(Query(TASK), then=[Put(TASK, [task(i)])])) for i in range(20)]
    assert await trips(space, *asks) == 21
    writes = [Member(str(i), writing(Put(TASK, [task(i)]), Append(SENT, [(i, "k", b"")]))) for i in range(100)]
    assert await trips(space, *writes) == 1


async def test_four_megabytes_go_out_and_come_back_in_bulk_and_as_single_rows(space: PostgresSpace) -> None:
    many = [(1_000_000 + i, i, None, f"{i:08}" * 8, bytes([i % 256]) * 120) for i in range(24_000)]
    wide: list[Row] = [(2_000_000 + i, 9, None, str(i), bytes([i]) * 2_500_000) for i in range(3)]
    assert await trips(space, Member("much", asking(Query(TASK), then=[Append(TURN, many), Append(TURN, wide)]))) == 2
    (found,) = await space.look(Query(TURN, order=("n",)))
    assert found == [*many, *wide]
    (found,) = await space.look(Query(TURN, on=("n",), keys=[(row[0],) for row in many], order=("n",)))
    assert found == many
    emptied: list[Row] = [(*row[:4], None) for row in many]
    kept = await space.transact(writing(Append(TURN, many, met="keep"), Put(TURN, emptied)))
    assert isinstance(kept, Done)
    assert kept.answers[0] == many
    gone = await space.transact(writing(Remove(TURN, keys=[(row[0],) for row in many])))
    assert isinstance(gone, Done)
    assert gone.answers == (24_000,)
    assert space.mint(TURN) > 2_000_002


async def test_no_statement_is_larger_than_a_megabyte_but_for_a_row_that_is(space: PostgresSpace) -> None:
    rows = [(i, "t", bytes(1000)) for i in range(5000)]
    wide = [(9000 + i, "w", bytes(3_000_000)) for i in range(2)]
    for verb in (
        Append(MAIL, rows),
        Append(MAIL, wide),
        Put(MAIL, rows),
        Cas(MAIL, [((row[0],), {"raw": row[2]}, {"text": "u"}) for row in rows]),
        Still(MAIL, [((row[0],), {"raw": row[2]}) for row in rows]),
        Query(MAIL, on=("text", "raw"), keys=[(str(row[0]), row[2]) for row in rows]),
    ):
        call = space.call(verb, last=True)
        sizes = [sum(len(value or b"") for value in statement.values) for statement in call.statements]
        assert len(sizes) > 1
        assert max(sizes) <= (LARGEST if verb.rows is not wide else 3_001_000) if isinstance(verb, Append) else LARGEST


async def test_a_body_that_met_a_key_in_company_runs_again_from_its_savepoint(space: PostgresSpace) -> None:
    assert isinstance(await space.transact(writing(Append(SENT, [(1, "k", b"")]))), Done)
    runs: list[int] = []

    def stepping() -> Generator[Any, Any, Last[int]]:
        runs.append(1)
        (found,) = yield (Query(SENT, on=("actor", "key"), keys=[(1, "k" * len(runs))]),)
        return Last((Append(SENT, [(1, "k" * len(runs), b"")]), Put(TASK, [task(len(runs))])), len(found))

    company: list[Body[Any]] = [writing(Put(OWNER, [(str(i), None, i)])) for i in range(4)]
    outcomes = await together(space, *company[:2], stepping, *company[2:])
    assert all(isinstance(outcome, Done) for outcome in outcomes)
    assert len(runs) == 2
    found = await space.look(Query(OWNER, order=("name",)), Query(TASK), Query(SENT, order=("key",)))
    assert [len(rows) for rows in found] == [4, 1, 2]


async def test_a_body_loses_no_run_of_its_own_to_a_neighbour_that_met_a_key(space: PostgresSpace) -> None:
    assert isinstance(await space.transact(writing(Append(SENT, [(1, "k", b"")]))), Done)
    runs: list[int] = []

    def stubborn() -> Generator[Any, Any, Last[None]]:
        yield (Query(TASK),)
        return Last((Append(SENT, [(1, "k", b"")]),), None)

    def second_time() -> Generator[Any, Any, Last[None]]:
        yield (Query(OWNER),)
        runs.append(1)
        return Last((Append(SENT, [(1, "k" * len(runs), b"")]),), None)

    outcomes = await together(space, stubborn, second_time)
    assert [type(outcome) for outcome in outcomes] == [Refused, Done]
    assert len(runs) == 2


# --- what a statement costs -------------------------------------------------------------------------

_CELL: dict[str, Any] = {"int": 1, "text": "t", "bytes": b"b"}
_OTHER: dict[str, Any] = {"int": 2, "text": "u", "bytes": b"c"}


def keyed(table: Table) -> list[tuple[Verb, set[int]]]:
    """Each verb that finds rows by a key, and how many cells an index is to be asked for by it."""
    kinds = {column.name: column.kind for column in table.columns}

    def keys(columns: tuple[str, ...]) -> list[Row]:
        return [tuple([cells[kinds[c]] for c in columns]) for cells in (_CELL, _OTHER)]

    fixed = {*table.key, *(() if table.chain is None else (table.chain.by, table.chain.prev))}
    primary, other = keys(table.key)
    whole = 1 + len(table.key)
    verbs: list[tuple[Verb, set[int]]] = [
        (Query(table, on=table.key, keys=[primary, other], lock="update"), {whole}),
        (Query(table, on=table.key, keys=[primary]), {whole}),
        (Remove(table, keys=[primary, other]), {whole}),
        (Still(table, [(primary, {}), (other, {})]), {whole}),
        (Append(table, keys(tuple(kinds)), met="keep"), {1 + len(k) for k in (table.key, *table.unique)}),
    ]
    verbs += [(Query(table, on=unique, keys=keys(unique)), {1 + len(unique)}) for unique in table.unique]
    for column in [c for c in kinds if c not in fixed][:1]:
        cell = _CELL[kinds[column]]
        verbs.append((Cas(table, [(primary, {column: cell}, {column: cell})]), {whole}))
        verbs.append((Claim(table, ((table.key[0], "=", primary[0]),), (), 1, {column: cell}), {2, whole}))
    return verbs


@pytest.mark.parametrize("emptied", [False, True], ids=["made just now", "found empty by a vacuum"])
async def test_a_key_is_looked_up_by_the_whole_of_its_index_however_small_the_table_was_when_its_plan_was_made(
    postgres: str, *, emptied: bool
) -> None:
    worlds = {within: PostgresWorld(postgres, within=within) for within in ("onefold", "apart")}
    await worlds["onefold"].open("main", [KERNEL, BLOBS])
    await worlds["apart"].open("main", [SCHEMA])
    with psycopg.connect(postgres, autocommit=True) as conn:
        for setting in SETTINGS.items():
            conn.execute("select set_config(%s, %s, false)", setting)
        if emptied:
            conn.execute("vacuum analyze")
        for within, schemas in (("onefold", (KERNEL, BLOBS)), ("apart", (SCHEMA,))):
            for table in [table for schema in schemas for table in schema.tables]:
                for verb, cells in keyed(table):
                    (statement,) = Plan(table, within).call(verb, small(1), last=True, locks=True).statements
                    conn.execute(b"prepare q as " + statement.text)
                    nothing = ",".join(["null"] * len(statement.values)).encode()
                    plan = conn.execute(b"explain execute q(" + nothing + b")").fetchall()
                    conn.execute("deallocate q")
                    lines = [str(row[0]).strip() for row in plan]
                    assert _by_index(lines, cells), "\n".join([f"{table.name}: {verb}", *lines])
    for world in worlds.values():
        await world.close()


def _by_index(lines: list[str], cells: set[int]) -> bool:
    """Whether every scan of a table is an index scan, and whatever is asked of a row's key is asked of the index."""
    asked = [line for line in lines if line.startswith("Index Cond")]
    others = [line for line in lines if re.search("Seq Scan|Bitmap|Hash Join|Merge Join", line)]
    scans = [line for line in lines if re.search("Index (Only )?Scan", line)]
    return not others and len(scans) == len(asked) and {line.count(" = ") for line in asked} <= cells
