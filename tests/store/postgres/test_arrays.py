"""A column as one array reads back as the cells that were written, whatever they have in common."""

from __future__ import annotations

from typing import Any

import pytest

from onefold.store.contract import Kind
from onefold.store.postgres import PostgresWorld
from onefold.store.postgres.arrays import array, faults
from onefold.store.postgres.wire import Statement

READ = {
    "int": b"select x from unnest($1::int8[]) with ordinality as u(x,i) order by i",
    "text": b"select x from unnest($1::text[]) with ordinality as u(x,i) order by i",
    "bytes": b"select x from unnest($1::bytea[]) with ordinality as u(x,i) order by i",
}
COLUMNS: list[tuple[Kind, list[Any]]] = [
    ("int", []),
    ("int", [7]),
    ("int", [None]),
    ("int", [7, 7, 7]),
    ("int", [7, 8, 7]),
    ("int", [None, 7, None]),
    ("int", [None, None]),
    ("int", [-(2**63), 2**63 - 1, 0]),
    ("int", list(range(64))),
    ("int", list(range(65))),
    ("int", list(range(200, 0, -1))),
    ("text", ["", "", ""]),
    ("text", ["aa", "bb"]),
    ("text", ["a", "äö", "a"]),
    ("text", [None, "a", "bb"]),
    ("text", ["same"] * 70),
    ("bytes", [b"", b"x"]),
    ("bytes", [b"\0\xff", b"ab"]),
    ("bytes", [b"\xff\xff\xff\xff", None, b"\0\0\0\4"]),
    ("bytes", [None, None, None]),
]


async def test_a_column_reads_back_as_it_was_written(postgres: str) -> None:
    wire = await PostgresWorld(postgres).connect()
    for kind, cells in COLUMNS:
        (result,) = await wire.send([Statement(READ[kind], [array(kind, tuple(cells))])])
        assert [row[0] for row in wire.rows(result)] == cells
    wire.drop()


@pytest.mark.parametrize(
    "kind, cells",
    [
        ("int", ("a", "a")),
        ("int", (1, "a")),
        ("int", (1.5, 2)),
        ("int", (2**63, 1)),
        ("text", (b"a", b"a")),
        ("text", ("a", 1)),
        ("bytes", ("a", "a")),
        ("bytes", (b"a", "b")),
        ("bytes", (b"a", "bc")),
        ("bytes", (b"a", None, 7)),
    ],
)
def test_a_cell_of_another_kind_is_a_fault(kind: Kind, cells: tuple[Any, ...]) -> None:
    with pytest.raises(faults):
        array(kind, cells)
