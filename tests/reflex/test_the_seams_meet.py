"""The engine with templates, selections and effects as people write them, from a clock to a chain's last fact."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from onefold.reflex import CelTransform, Query, Task, Write, effect, select
from onefold.reflex.effects import Effects
from onefold.reflex.engine import Engine
from onefold.reflex.selects import Selects
from onefold.terms.codec import parse
from onefold.terms.errors import LoadRefused
from tests.reflex.ground import STORES, At, ground

START = datetime(2026, 1, 31, tzinfo=UTC)
PEOPLE = {"studio_42": ["s1", "s2", "s3"], "studio_7": ["x1"]}


@dataclass(frozen=True)
class Charge:
    subscription: str
    amount: Decimal
    month: str


@dataclass(frozen=True)
class Mail:
    text: str
    lines: list[str]


def billing() -> list[dict[str, Any]]:
    return [
        {
            "id": "billing.charge-due",
            "intent": "Collect what subscribers owe for the month.",
            "as": "studio_42",
            "params": {"rate": 10},
            "on": {"clock": {"every": "month", "on": 1, "at": "04:30", "tz": "Europe/Vienna"}},
            "select": {
                "query": {"name": "subscriptions.due", "with": {"month": {"$": "occurrence.key"}}},
                "mode": "each",
                "unitKey": "subscription_id",
            },
            "effect": {
                "name": "payments.charge",
                "input": {
                    "subscription": {"$": "row.subscription_id"},
                    "amount": {"$": "string(row.seats * params.rate)"},
                    "month": {"$": "occurrence.key"},
                },
            },
        },
        {
            "id": "billing.decline",
            "intent": "Write to whoever's card was declined.",
            "as": "studio_42",
            "on": {"fact": {"entity": "charge_attempts", "op": "insert"}},
            "when": {"$": "fact.row.declined"},
            "effect": {
                "name": "mail.send",
                "input": {
                    "text": {"$": "'declined: ' + row.subscription"},
                    "lines": {"$each": "[row.month]", "as": "m", "do": {"$": "'for ' + m"}},
                },
            },
        },
    ]


class Studio:
    """What happened outside."""

    def __init__(self) -> None:
        self.charged: list[tuple[str, str, str]] = []
        self.mails: list[Mail] = []

    def seams(self) -> tuple[Selects, Effects]:
        @select("subscriptions.due")
        async def due(query: Query) -> AsyncIterator[dict[str, Any]]:
            for n, id in enumerate(PEOPLE.get(query.principal or "", [])):
                yield {"subscription_id": id, "seats": n + 1, "month": query.params["month"]}

        @effect("payments.charge", writes=["charge_attempts"])
        async def charge(task: Task, order: Charge) -> str:
            self.charged.append((task.key, order.subscription, str(order.amount)))
            declined = order.subscription == "s2"
            row = {"subscription": order.subscription, "declined": declined, "month": order.month}
            task.emit(Write("charge_attempts", "insert", row))
            return task.key

        @effect("mail.send", writes=[])
        def send(task: Task, mail: Mail) -> None:
            self.mails.append(mail)

        return Selects([due]), Effects([charge, send])


async def engine_of(at: At, studio: Studio, **given: Any) -> Engine:
    select_, effects = studio.seams()
    return await at.engine(transform=CelTransform(), select=select_, effects=effects, **given)


@pytest.mark.parametrize("store", STORES)
async def test_a_month_is_collected_and_the_declined_are_written_to(store: str) -> None:
    studio = Studio()
    async with ground(store) as at:
        at.now = START
        engine = await engine_of(at, studio)
        await engine.load(billing(), START)
        await at.pass_until(engine, datetime(2026, 2, 2, tzinfo=UTC))
        assert [(who, amount) for _, who, amount in studio.charged] == [("s1", "10"), ("s2", "20"), ("s3", "30")]
        assert studio.mails == [Mail("declined: s2", ["for 2026-02"])]
        tasks = await at.tasks()
        assert [task["state"] for task in tasks] == ["done"] * 4
        outputs = [parse(bytes(task["output"])) for task in tasks if task["output"]]
        assert outputs[:3] == [key for key, _, _ in studio.charged]


async def test_a_preview_shows_what_then_happens() -> None:
    studio = Studio()
    async with ground("memory") as at:
        at.now = START
        engine = await engine_of(at, studio)
        await engine.load(billing(), START)
        seen = await engine.preview("billing.charge-due", now=START, principal="studio_42")
        assert [task.input["amount"] for task in seen.tasks] == ["10", "20", "30"]
        assert studio.charged == []
        await at.pass_until(engine, datetime(2026, 2, 2, tzinfo=UTC))
        assert [amount for _, _, amount in studio.charged] == [task.input["amount"] for task in seen.tasks]


async def test_a_slip_anywhere_is_told_at_load() -> None:
    slips = billing()
    slips[0]["select"]["query"]["name"] = "subscriptions.deu"
    slips[0]["effect"]["input"]["amount"] = {"$": "rwo.seats"}
    slips[1]["when"] = {"$": "fact.row.declined &&"}
    slips[1]["effect"]["input"]["lines"] = {"$each": "[row.month]", "as": "m", "do": {"$": "n"}}
    async with ground("memory") as at:
        engine = await engine_of(at, Studio())
        with pytest.raises(LoadRefused) as told:
            await engine.load(slips, START)
    said = str(told.value)
    for words in ("'subscriptions.due'", "did you mean 'row'?", "ends too early", "there is no 'n' here"):
        assert words in said


async def test_a_field_that_a_row_lacks_fails_its_task_alone_and_says_which() -> None:
    studio = Studio()
    slip = billing()[:1]
    slip[0]["effect"]["input"]["month"] = {"$": "row.subscription_id == 's1' ? row.mnth : row.month"}
    slip[0]["policy"] = {"retry": {"max": 0}}
    async with ground("memory") as at:
        at.now = START
        engine = await engine_of(at, studio)
        await engine.load(slip, START)
        await at.pass_until(engine, datetime(2026, 2, 2, tzinfo=UTC))
        tasks = {task["unit"]: (task["state"], task["error"]) for task in await at.tasks()}
    assert [tasks[unit][0] for unit in ("s1", "s2", "s3")] == ["failed", "done", "done"]
    assert "did you mean 'month'?" in tasks["s1"][1]
    assert "month" in tasks["s1"][1]
