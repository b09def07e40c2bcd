"""An app's own tables, addresses and people, as its reflexes ask and reach them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from onefold import Cell, Run, actuator
from onefold.kernel.port import Port, Step, dedupes
from onefold.reflex import Reflexes, Signal, Task, effect, select
from onefold.terms.errors import LoadRefused
from onefold.testing.stage import Stage, staged
from tests.host.automated import till


class Order(BaseModel):
    id: str
    tenant: str


@actuator(
    migrations=["CREATE TABLE orders (id TEXT PRIMARY KEY, tenant TEXT, paid INTEGER DEFAULT 0)"],
)
async def shop(run: Run, order: Order) -> str:
    await run.db.execute("INSERT INTO orders(id, tenant) VALUES (:id, :tenant)", id=order.id, tenant=order.tenant)
    return order.id


unpaid = select.sql(
    "orders.unpaid", "SELECT id FROM orders WHERE tenant = :principal AND NOT paid ORDER BY id", on="tool:shop"
)
pay = effect.sql(
    "orders.pay",
    "UPDATE orders SET paid = 1 WHERE id = :id AND tenant = :principal AND NOT paid RETURNING id",
    on="tool:shop",
)


def collecting(seen: list[Any]) -> Reflexes:
    @effect("note", writes=[])
    async def note(task: Task, input: dict[str, str]) -> None:
        seen.append(input["id"])

    return Reflexes(
        [
            {
                "id": "orders.collect",
                "intent": "Mark what is not paid as paid.",
                "as": "a",
                "on": {"fact": {"signal": "payday"}},
                "select": {"query": {"name": "orders.unpaid"}, "mode": "each", "unitKey": "id"},
                "effect": {"name": "orders.pay", "input": {"id": {"$": "row.id"}}},
            },
            {
                "id": "orders.note",
                "intent": "Note each order that was paid.",
                "as": "a",
                "on": {"fact": {"entity": "shop.orders", "op": "update"}},
                "effect": {"name": "note", "input": {"id": {"$": "fact.row.id"}}},
            },
        ],
        effects=[pay, note],
        selects=[unpaid],
    )


async def ordered(stage: Stage, id: str, tenant: str) -> None:
    await stage.host.start("shop", {"id": id, "tenant": tenant}, key=id, caller=stage.caller(tenant))
    await stage.settle()


@pytest.mark.parametrize("store", ["memory:", "sqlite"])
async def test_a_chain_goes_through_an_actuators_own_tables(tmp_path: Path, store: str) -> None:
    seen: list[Any] = []
    async with staged(shop, collecting(seen), store=tmp_path if store == "sqlite" else "memory:") as stage:
        for id, tenant in (("1", "a"), ("2", "b"), ("3", "a")):
            await ordered(stage, id, tenant)
        for n in range(2):
            await stage.host.ingest(Signal("payday", n), caller=stage.caller("a"))
            await stage.settle()
        assert seen == ["1", "3"]
        columns, rows, _ = await stage.host.table_rows("shop", "orders", caller=stage.caller())
        paid = {str(row[columns.index("id")]): row[columns.index("paid")] for row in rows}
        assert paid == {"1": 1, "2": 0, "3": 1}


def reflex(name: str, input: Any = None, **parts: Any) -> dict[str, Any]:
    done = {"name": name, "input": {} if input is None else input}
    return {"id": "x", "intent": "It is there to be tested.", "on": {"fact": {"signal": "x"}}, "effect": done, **parts}


async def test_people_are_told_and_an_origin_that_is_not_listed_is_never_called() -> None:
    told = reflex("notify", {"to": ["owner"], "message": {"$": "'sold ' + string(fact.payload)"}})
    called = {**reflex("http", {"url": "https://evil.example.com/"}), "id": "y", "policy": {"retry": {"max": 0}}}
    config = {"people": {"owner": {"notify": ["mailto:owner@example.com"]}}}
    async with staged(Reflexes([told, called]), settings=config) as stage:
        await stage.host.ingest(Signal("x", 5), caller=stage.caller())
        await stage.settle()
        tasks = [
            task
            for run in (await stage.host.reflex_runs(caller=stage.caller())).items
            for task in (await stage.host.reflex_tasks(run.id, caller=stage.caller())).items
        ]
        errors = {task.reflex: task.error or "" for task in tasks}
        assert "not on the list" in errors["y"]
        seen = await stage.host.reflex_preview(
            "x", fact={"kind": "signal", "name": "x", "payload": 5}, caller=stage.caller()
        )
        assert [task.shows for task in seen.tasks] == ["tell owner: sold 5"]


@dedupes("ring")
async def ring(step: Step, body: Order) -> str:
    return step.key


def twice(name: str) -> Any:
    @effect(name)
    async def act(task: Task) -> None: ...

    return act


@pytest.mark.parametrize("name", ["deliver.till", "call.shop", "event.shop", "send.ring", "http", "notify"])
async def test_what_exists_by_itself_keeps_its_name(name: str) -> None:
    parts: tuple[Any, ...] = (till, shop, ring)
    assert isinstance(ring, Port)
    with pytest.raises(LoadRefused, match="exists by itself"):
        async with staged(*parts, Reflexes([reflex(name)], effects=[twice(name)])):
            pass


@pytest.mark.parametrize(
    "part, problem",
    [
        (Reflexes([reflex("a")], effects=[print]), "is no effect"),  # type: ignore[list-item]
        (Reflexes([reflex("a")], selects=[print]), "is no selection"),  # type: ignore[list-item]
        (Reflexes([reflex("orders.pay")], effects=[pay]), "there is no tool 'shop'"),
        (Reflexes([reflex("http")], selects=[unpaid]), "there is no tool 'shop'"),
        (Reflexes([reflex("http")], egress=["http://a.example.com"]), "no exact origin"),
        (Reflexes([reflex("http")], egress={"https://a.example.com": "env:NO_SUCH_TOKEN"}), "NO_SUCH_TOKEN"),
        (Reflexes([reflex("post.Room")]), "there is no effect 'post.Room'"),
    ],
)
async def test_what_is_wrong_with_a_part_stops_the_start(part: Any, problem: str) -> None:
    with pytest.raises(LoadRefused, match=problem):
        async with staged(till, part):
            pass


async def test_two_parts_may_share_an_effect_and_a_selection() -> None:
    shared = twice("shared")
    one = Reflexes([reflex("shared")], effects=[shared], selects=[unpaid])
    other = Reflexes([{**reflex("shared"), "id": "y"}], effects=[shared], selects=[unpaid])
    async with staged(shop, one, other) as stage:
        await stage.host.ingest(Signal("x", 1), caller=stage.caller())
        await stage.settle()
        runs = (await stage.host.reflex_runs(caller=stage.caller())).items
        assert sorted((run.reflex, run.state) for run in runs) == [("x", "settled"), ("y", "settled")]


async def test_a_module_hears_a_reflex_once_for_each_task() -> None:
    sold = {"type": "Sell", "shop": "north", "cents": {"$": "fact.payload"}}
    async with staged(till, Reflexes([reflex("deliver.till", sold)])) as stage:
        await stage.host.ingest(Signal("x", 5, dedupe_key="e1"), caller=stage.caller())
        await stage.settle()
        module = stage.host.catalog.module("till")
        assert await stage.host.read(module, "north", caller=stage.caller()) == 5


class Lobby(Cell, on_demand=True):
    seen: str = ""

    def greet(self, who: str) -> str:
        self.seen += who
        return self.seen


async def test_a_cell_takes_what_a_reflex_posts_in_its_turn_and_once() -> None:
    program = {"id": "north", "program": {"$": "'greet(who=\"' + fact.payload + '\")'"}}
    async with staged(Lobby, Reflexes([reflex("post.Lobby", program)])) as stage:
        for who in ("ann", "ben"):
            await stage.host.ingest(Signal("x", who), caller=stage.caller())
            await stage.settle()
        assert (await stage.host.cells.read("Lobby", "north", caller=stage.caller())).state == {"seen": "annben"}
        seen = await stage.host.reflex_preview(
            "x", fact={"kind": "signal", "name": "x", "payload": "a"}, caller=stage.caller()
        )
        assert [task.shows for task in seen.tasks] == ["post to Lobby 'north'"]


@pytest.mark.parametrize("input", [{}, {"id": "a"}, {"id": 1, "program": "x"}, {"id": "a", "program": "x", "more": 1}])
async def test_what_is_no_letter_is_told(input: Any) -> None:
    async with staged(Lobby, Reflexes([{**reflex("post.Lobby", input), "policy": {"retry": {"max": 0}}}])) as stage:
        seen = await stage.host.reflex_preview(
            "x", fact={"kind": "signal", "name": "x", "payload": "a"}, caller=stage.caller()
        )
        assert "posted" in (seen.tasks[0].error or "")
