"""Reflexes that watch reflexes: a digest of a run's tasks, and silence as rows."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from onefold.reflex import CelTransform, Task, effect
from onefold.reflex.effects import Effects
from onefold.reflex.ledger_selects import ledger_selects
from onefold.reflex.selects import Selects, select
from onefold.terms.errors import BadArguments
from tests.reflex.ground import STORES, At, ground

START = datetime(2026, 3, 1, tzinfo=UTC)


@select("people.all")
async def people(query: Any) -> list[dict[str, Any]]:
    return (
        [{"id": f"p{n}"} for n in range(1_200)] if query.params.get("many") else [{"id": "a"}, {"id": "b"}, {"id": "c"}]
    )


class Told:
    def __init__(self) -> None:
        self.inputs: list[Any] = []

    def effects(self) -> Effects:
        @effect("greet", writes=[])
        async def greet(task: Task, input: dict[str, str]) -> str:
            if input["id"] == "b":
                raise ConnectionError("no line to b")
            return f"hello {input['id']}"

        @effect("digest", writes=[])
        async def digest(task: Task, input: Any) -> None:
            self.inputs.append(input)

        return Effects([greet, digest])


def definitions(state: Any = None) -> list[dict[str, Any]]:
    asked = {"run": {"$": "fact.runId"}, **({} if state is None else {"state": state})}
    return [
        {
            "id": "greet.all",
            "intent": "Greet everybody once a day.",
            "as": "studio_42",
            "on": {"clock": {"every": "day", "at": "09:00", "tz": "UTC"}},
            "select": {"query": {"name": "people.all"}, "mode": "each", "unitKey": "id"},
            "effect": {"name": "greet", "input": {"id": {"$": "row.id"}}},
            "policy": {"retry": {"max": 0}},
        },
        {
            "id": "greet.digest",
            "intent": "Say how the greeting went.",
            "as": "studio_42",
            "on": {"fact": {"run": "greet.all"}},
            "select": {"query": {"name": "reflex.tasks", "with": asked}, "mode": "batch"},
            "effect": {
                "name": "digest",
                "input": {
                    "$each": "rows",
                    "do": {"unit": {"$": "item.unit"}, "said": {"$": "[item.state, item.error, item.output]"}},
                },
            },
        },
    ]


async def engine_of(at: At, told: Told) -> Any:
    at.now = START
    return await at.engine(
        transform=CelTransform(), select=Selects([people, *ledger_selects(at.space)]), effects=told.effects()
    )


@pytest.mark.parametrize("store", STORES)
async def test_a_digest_is_made_of_the_runs_own_tasks(store: str) -> None:
    told = Told()
    async with ground(store) as at:
        engine = await engine_of(at, told)
        await engine.load(definitions(), START)
        await at.pass_until(engine, datetime(2026, 3, 1, 12, tzinfo=UTC))
    ((a, b, c),) = told.inputs
    assert (a["unit"], a["said"]) == ("a", ["done", None, "hello a"])
    assert (c["unit"], c["said"]) == ("c", ["done", None, "hello c"])
    assert b["said"][0] == "failed"
    assert "no line to b" in b["said"][1]


async def test_a_digest_may_ask_for_failures_only() -> None:
    told = Told()
    async with ground("memory") as at:
        engine = await engine_of(at, told)
        await engine.load(definitions("failed"), START)
        await at.pass_until(engine, datetime(2026, 3, 1, 12, tzinfo=UTC))
    assert [line["unit"] for line in told.inputs[0]] == ["b"]


async def test_a_run_of_many_tasks_is_read_whole_and_only_by_its_owner() -> None:
    told = Told()
    async with ground("memory") as at:
        engine = await engine_of(at, told)
        many = definitions()[:1]
        many[0]["select"]["query"]["with"] = {"many": True}
        await engine.load(many, START)
        await at.pass_until(engine, datetime(2026, 3, 1, 12, tzinfo=UTC))
        (run,) = await at.runs()
        selects = Selects(ledger_selects(at.space))
        query = {"name": "reflex.tasks", "with": {"run": f"reflex_run_{run['n']}"}}
        mine = [row["unit"] async for row in selects(query, "studio_42", START)]
        other = [row async for row in selects(query, "studio_7", START)]
        nobody = [row async for row in selects(query, None, START)]
    assert mine == [f"p{n}" for n in range(1_200)]
    assert (other, nobody) == ([], [])


async def test_silence_is_a_row() -> None:
    async with ground("memory") as at:
        engine = await engine_of(at, Told())
        await engine.load(definitions(), START)
        selects = Selects(ledger_selects(at.space))
        later = datetime(2026, 3, 2, 9, tzinfo=UTC)
        late = [row async for row in selects({"name": "reflex.overdue"}, "studio_42", later)]
        other = [row async for row in selects({"name": "reflex.overdue"}, "studio_7", later)]
    assert late == [
        {"reflex": "greet.all", "what": "an occurrence", "due": "2026-03-01T09:00:00Z", "late_seconds": 86_400.0}
    ]
    assert other == []


@pytest.mark.parametrize(
    "given",
    [{}, {"run": "task_1"}, {"run": 5}, {"run": "reflex_run_1", "state": "gone"}, {"run": "reflex_run_1", "rnu": 1}],
)
async def test_what_is_no_question_of_the_ledger_is_refused(given: Any) -> None:
    async with ground("memory") as at:
        selects = Selects(ledger_selects(at.space))
        with pytest.raises(BadArguments):
            [row async for row in selects({"name": "reflex.tasks", "with": given}, None, START)]
