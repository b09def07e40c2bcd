"""A file of somebody else's: asked, never written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apsw
import pytest

from onefold.store.sqlite.outside import CHUNK, Outside
from onefold.terms.errors import StoreUnavailable

ENDLESS = "with recursive n(i) as (select 1 union all select i + 1 from n) select i from n where i < 0"


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    path = tmp_path / "shop.db"
    conn = apsw.Connection(str(path))
    with conn:
        conn.execute("create table due(tenant text, id integer, amount real)")
        conn.executemany("insert into due values(?, ?, ?)", [(f"s{n % 2}", n, n / 2) for n in range(2_000)])
    conn.close()
    return path


def content(path: Path) -> bytes | None:
    return path.read_bytes() if path.exists() else None


async def rows(path: Path, sql: str, *, timeout_ms: int = 10_000, **values: Any) -> list[Any]:
    return [row async for row in Outside(path).rows(sql, values, timeout_ms=timeout_ms, named="due")]


async def test_rows_come_by_name_with_values_bound(shop: Path) -> None:
    sql = "select id, amount from due where tenant = :principal and id < :most order by id"
    assert await rows(shop, sql, principal="s1", most=4) == [{"id": 1, "amount": 0.5}, {"id": 3, "amount": 1.5}]
    assert await rows(shop, sql, principal="s1' or '1'='1", most=4) == []
    assert await rows(shop, sql, principal=None, most=4) == []


async def test_many_rows_come_in_chunks(shop: Path) -> None:
    found = await rows(shop, "select id from due order by id")
    assert [row["id"] for row in found] == list(range(2_000))
    assert len(found) > CHUNK * 2


async def test_a_list_is_bound_as_json(shop: Path) -> None:
    sql = "select id from due where id in (select value from json_each(:ids)) and :on"
    assert [row["id"] for row in await rows(shop, sql, ids=[3, 5], on=True)] == [3, 5]


@pytest.mark.parametrize(
    "sql",
    [
        "with x as (select 1) delete from due",
        "with x as (select 1) insert into due select 's', 1, 1",
        "select load_extension('x')",
        "select * from nowhere",
    ],
)
async def test_what_would_write_or_cannot_be_is_refused_and_changes_nothing(shop: Path, sql: str) -> None:
    before = content(shop)
    with pytest.raises(StoreUnavailable):
        await rows(shop, sql)
    assert content(shop) == before


async def test_a_question_that_takes_too_long_is_ended(shop: Path) -> None:
    with pytest.raises(StoreUnavailable, match=r"longer than its 0\.05 s"):
        await rows(shop, ENDLESS, timeout_ms=50)
    assert len(await rows(shop, "select 1")) == 1


async def test_a_file_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable) as told:
        await rows(tmp_path / "none.db", "select 1")
    assert str(tmp_path) not in str(told.value)
    assert not content(tmp_path / "none.db")


async def test_rows_may_be_left(shop: Path) -> None:
    given = Outside(shop).rows("select id from due", {}, timeout_ms=1_000, named="due")
    assert await anext(given) == {"id": 0}
    await given.aclose()  # type: ignore[attr-defined]
    conn = apsw.Connection(str(shop))
    conn.execute("insert into due values('s0', 1, 1)")
    conn.close()
