"""What selections ask and effects change: an actuator's own tables, and databases behind a variable."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import apsw
import pytest

from onefold.host.config import Config
from onefold.host.reflex_databases import Databases
from onefold.reflex import Task, Write, effect, select
from onefold.reflex.effects import Effects
from onefold.reflex.selects import Selects
from onefold.store.contract import AuthorSpace, World
from onefold.store.memory import MemoryWorld
from onefold.store.postgres import PostgresWorld
from onefold.store.sqlite import SqliteWorld
from onefold.terms.errors import BadArguments, LoadRefused, StoreUnavailable
from tests.postgres import fresh_database

NOW = datetime(2026, 3, 1, tzinfo=UTC)
TABLE = "CREATE TABLE orders (id TEXT PRIMARY KEY, tenant TEXT, paid INTEGER DEFAULT 0, data TEXT)"
FILL = "INSERT INTO orders(id, tenant) VALUES ('1', 'a'), ('2', 'a'), ('3', 'b')"
open_orders = select.sql(
    "orders.open", "SELECT id FROM orders WHERE tenant = :principal AND paid = 0 ORDER BY id", on="tool:shop"
)
pay = effect.sql(
    "orders.pay",
    "UPDATE orders SET paid = 1 WHERE id = :id AND tenant = :principal AND paid = 0 RETURNING id, paid",
    on="tool:shop",
)
note = effect.sql(
    "orders.note",
    "INSERT INTO orders(id, tenant, data) VALUES (:key, :principal, :data) ON CONFLICT DO NOTHING",
    on="tool:shop",
)


@pytest.fixture(params=["memory", "sqlite", "postgres"])
async def shop(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[AuthorSpace]:
    world: World = MemoryWorld(clock=lambda: 0)
    if request.param == "sqlite":
        world = SqliteWorld(tmp_path / "data", clock=lambda: 0)
    elif request.param == "postgres":
        world = PostgresWorld(fresh_database())
    space = await world.open("shop", ())
    await space.author_migrate([TABLE, FILL])
    yield space
    await world.close()


def databases(shop: AuthorSpace | None = None, environ: Mapping[str, str] | None = None) -> Databases:
    async def space(name: str) -> AuthorSpace:
        assert shop is not None
        assert name == "shop"
        return shop

    return Databases(Config(environ=environ or {}), space, ["shop"])


def attempt(emitted: list[Any], key: str = "k1", principal: str | None = "a") -> Task:
    return Task(key, NOW, 1, principal, emitted.append)


async def found(selects: Selects, name: str, principal: str | None, **params: Any) -> list[Any]:
    return [row async for row in selects({"name": name, "with": params}, principal, NOW)]


async def test_an_actuators_tables_are_asked_for_whoever_the_reflex_runs_as(shop: AuthorSpace) -> None:
    selects = Selects([open_orders], databases(shop).asked)
    assert await found(selects, "orders.open", "a") == [{"id": "1"}, {"id": "2"}]
    assert await found(selects, "orders.open", "b") == [{"id": "3"}]
    assert await found(selects, "orders.open", None) == []


async def test_what_a_selection_writes_is_taken_back(shop: AuthorSpace) -> None:
    sly = select.sql("sly", "WITH x AS (SELECT 1) DELETE FROM orders RETURNING id", on="tool:shop")
    await found(Selects([sly], databases(shop).asked), "sly", "a")
    selects = Selects([open_orders], databases(shop).asked)
    assert len(await found(selects, "orders.open", "a")) == 2


@pytest.mark.parametrize("sql", ["SELECT * FROM nowhere", "SELECT * FROM _onefold_turn", "SELECT load_extension('x')"])
async def test_what_cannot_be_asked_is_told_and_may_be_tried_again(shop: AuthorSpace, sql: str) -> None:
    with pytest.raises(StoreUnavailable):
        await found(Selects([select.sql("x", sql, on="tool:shop")], databases(shop).asked), "x", "a")


async def test_rows_that_are_changed_and_returned_become_facts(shop: AuthorSpace) -> None:
    effects = Effects([pay, note], databases(shop).changed)
    assert effects["orders.pay"].writes == ("shop.orders",)
    emitted: list[Any] = []
    assert await effects["orders.pay"].run(attempt(emitted), {"id": "1"}) == {"rows": 1}
    assert emitted == [Write("shop.orders", "update", {"id": "1", "paid": 1})]
    emitted.clear()
    assert await effects["orders.pay"].run(attempt(emitted), {"id": "1"}) == {"rows": 0}
    assert await effects["orders.pay"].run(attempt(emitted), {"id": "3"}) == {"rows": 0}
    assert emitted == []


async def test_a_second_time_changes_nothing_by_the_tasks_key(shop: AuthorSpace) -> None:
    effects = Effects([note], databases(shop).changed)
    assert effects["orders.note"].writes == ()
    emitted: list[Any] = []
    assert await effects["orders.note"].run(attempt(emitted), {"data": {"a": [1]}}) == {"rows": 1}
    assert await effects["orders.note"].run(attempt(emitted), {"data": {"a": [1]}}) == {"rows": 0}
    asked = select.sql("noted", "SELECT id, tenant, data FROM orders WHERE data IS NOT NULL", on="tool:shop")
    rows = await found(Selects([asked], databases(shop).asked), "noted", "a")
    assert rows == [{"id": "k1", "tenant": "a", "data": '{"a":[1]}'}]
    assert emitted == []


async def test_a_statement_that_fails_changes_nothing(shop: AuthorSpace) -> None:
    twice = effect.sql("twice", "INSERT INTO orders(id) SELECT :id UNION ALL SELECT '1'", on="tool:shop")
    with pytest.raises(StoreUnavailable):
        await Effects([twice], databases(shop).changed)["twice"].run(attempt([]), {"id": "9"})
    asked = select.sql("nine", "SELECT id FROM orders WHERE id = '9'", on="tool:shop")
    assert await found(Selects([asked], databases(shop).asked), "nine", None) == []


@pytest.mark.parametrize(
    "given, field, problem",
    [
        ({"id": "1", "principal": "b"}, "principal", "bound by the engine"),
        ({"id": "1", "key": "x"}, "key", "bound by the engine"),
        ({"idd": "1", "id": "1"}, "idd", "did you mean 'id'?"),
        ({}, "id", "is missing"),
        (None, "id", "is missing"),
        ([], "", "an object"),
    ],
)
async def test_an_input_is_checked_before_anything_is_changed(given: Any, field: str, problem: str) -> None:
    paying = Effects([pay], databases().changed)["orders.pay"]
    with pytest.raises(BadArguments) as told:
        await paying.run(attempt([]), given)
    assert told.value.faults[0].field == field
    assert problem in told.value.faults[0].problem
    with pytest.raises(BadArguments):
        paying.show(given)
    assert paying.show({"id": "1"}) == "update rows of shop.orders"


@pytest.mark.parametrize(
    "sql, options, problem",
    [
        ("SELECT 1", {}, "one INSERT, UPDATE or DELETE"),
        ("DROP TABLE orders", {}, "one INSERT, UPDATE or DELETE"),
        ("DELETE FROM a; DELETE FROM b", {}, "one statement"),
        ("-- DELETE FROM a", {}, "is empty"),
        ("WITH x AS (SELECT 'delete from y') SELECT * FROM x", {}, "one INSERT, UPDATE or DELETE"),
        ("DELETE FROM a", {"on": "env:DB"}, 'must be "tool:NAME"'),
        ("DELETE FROM a", {"writes": "a"}, "add RETURNING"),
        ("DELETE FROM a WHERE b = 'returning'", {"writes": "a"}, "add RETURNING"),
    ],
)
def test_a_text_that_is_no_change_is_refused(sql: str, options: Any, problem: str) -> None:
    with pytest.raises(LoadRefused, match=problem) as told:
        effect.sql("x", sql, **{"on": "tool:shop", **options})
    assert "test_reflex_databases.py:" in str(told.value)


@pytest.mark.parametrize(
    "sql, table, op",
    [
        ("insert or ignore into a values (1) returning *", "shop.a", "insert"),
        ('REPLACE INTO "b c" VALUES (1) RETURNING *', "shop.b c", "insert"),
        ("WITH x AS (SELECT 1) UPDATE t SET a = 1 RETURNING a", "shop.t", "update"),
        ("/* insert into z */ DELETE FROM t WHERE a = 'insert into y' RETURNING a", "shop.t", "delete"),
        ("INSERT INTO t VALUES (1) ON CONFLICT (a) DO UPDATE SET b = 1 RETURNING a", "shop.t", "insert"),
    ],
)
def test_what_a_statement_writes_is_read_from_it(sql: str, table: str, op: str) -> None:
    made = effect.sql("x", sql, on="tool:shop")
    assert (made.entity, made.change.op, made.writes) == (table, op, (table,))
    assert effect.sql("x", sql, on="tool:shop", writes="things").writes == ("things",)


def test_databases_are_named_by_a_variable(tmp_path: Path) -> None:
    known = {
        "PG": "postgres://u:hunter2@h/d",
        "LITE": "sqlite:///shop.db",
        "ODD": "mysql://u:hunter2@h/d",
        "NONE": "sqlite://",
    }
    for name in ("PG", "LITE"):
        assert hasattr(databases(environ=known).asked(f"env:{name}"), "rows")
    for name in ("ODD", "NONE", "MISSING"):
        with pytest.raises(LoadRefused, match=name) as told:
            databases(environ=known).asked(f"env:{name}")
        assert "hunter2" not in str(told.value)
    with pytest.raises(LoadRefused, match="did you mean 'tool:shop'"):
        databases().asked("tool:shpo")
    with pytest.raises(LoadRefused, match="no tool"):
        Effects([effect.sql("x", "DELETE FROM a", on="tool:other")], databases().changed)
    with pytest.raises(LoadRefused, match="no database was given"):
        Effects([pay])


async def test_a_file_beside_the_settings_is_found(tmp_path: Path) -> None:
    with apsw.Connection(str(tmp_path / "shop.db")) as conn:
        conn.execute("create table t(a); insert into t values (1)")
    config = Config(environ={"SHOP_DB": "sqlite:///shop.db"}, file=tmp_path / "onefold.toml")
    asked = Databases(config, None, []).asked("env:SHOP_DB")  # type: ignore[arg-type]
    assert [row async for row in asked.rows("select a from t", {}, timeout_ms=1_000, named="x")] == [{"a": 1}]
