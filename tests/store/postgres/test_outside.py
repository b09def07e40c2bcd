"""A Postgres of somebody else's: asked, never written."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from onefold.store.postgres.outside import CHUNK, Outside
from onefold.terms.errors import StoreUnavailable
from tests.postgres import fresh_database


@pytest.fixture
def shop() -> str:
    url = fresh_database()
    with psycopg.connect(url) as conn:
        conn.execute("create table due(tenant text, id bigint, amount numeric, at timestamptz, data jsonb)")
        conn.execute(
            "insert into due select 's' || n % 2, n, n / 2.0, '2026-03-01T00:00:00Z', '{\"a\": 1}' from generate_series(0, 1999) n"
        )
    return url


async def rows(url: str, sql: str, *, timeout_ms: int = 10_000, **values: Any) -> list[Any]:
    return [row async for row in Outside(url).rows(sql, values, timeout_ms=timeout_ms, named="due")]


async def test_rows_come_by_name_with_values_bound(shop: str) -> None:
    sql = "select id, amount::text from due where tenant = :principal and id < :most and 'x%' like '%' order by id"
    assert [row["id"] for row in await rows(shop, sql, principal="s1", most=4)] == [1, 3]
    assert await rows(shop, sql, principal="s1' or '1'='1", most=4) == []
    assert await rows(shop, sql, principal=None, most=4) == []


async def test_many_rows_come_in_chunks(shop: str) -> None:
    found = await rows(shop, "select id from due order by id")
    assert [row["id"] for row in found] == list(range(2_000))
    assert len(found) > CHUNK * 2


async def test_a_list_is_an_array_and_an_object_is_jsonb(shop: str) -> None:
    sql = "select id from due where id = any(:ids) and data @> :data order by id"
    assert [row["id"] for row in await rows(shop, sql, ids=[3, 5], data={"a": 1})] == [3, 5]


@pytest.mark.parametrize(
    "sql",
    [
        "with x as (delete from due returning id) select id from x",
        "select nextval('seq')",
        "select set_config('transaction_read_only', 'off', true), lo_create(0)",
        "select * from nowhere",
    ],
)
async def test_what_would_write_or_cannot_be_is_refused_and_changes_nothing(shop: str, sql: str) -> None:
    with psycopg.connect(shop) as conn:
        conn.execute("create sequence seq")
    with pytest.raises(StoreUnavailable, match="Postgres says"):
        await rows(shop, sql)
    with psycopg.connect(shop) as conn:
        assert conn.execute("select count(*), (select is_called from seq) from due").fetchall() == [(2_000, False)]


async def test_a_question_that_takes_too_long_is_ended(shop: str) -> None:
    with pytest.raises(StoreUnavailable):
        await rows(shop, "select pg_sleep(20)", timeout_ms=100)


async def test_an_address_is_told_to_nobody() -> None:
    for url in ("postgres://admin:hunter2@127.0.0.1:1/shop", "postgres://admin:hunter2@/x?nonsense=1"):
        with pytest.raises(StoreUnavailable) as told:
            await rows(url, "select 1")
        assert "hunter2" not in str(told.value)
        assert told.value.__cause__ is None
        assert told.value.__suppress_context__
