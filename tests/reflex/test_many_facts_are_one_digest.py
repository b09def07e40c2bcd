"""The recipe for batching: one delayed fact for each group and window, by nothing but the dedupe key of the intake."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from onefold.reflex.seams import Task
from onefold.reflex.words import OnSignal, Reflex, Selection, Signal
from tests.reflex.ground import STORES, Act, At, ground, reflex

WINDOW_S = 900


@pytest.fixture(params=STORES)
async def at(request: pytest.FixtureRequest) -> AsyncIterator[At]:
    async with ground(request.param) as found:
        found.acts = {"soon": Act("soon", does=soon), "send": Act("send")}
        yield found


def soon(task: Task, group: Any) -> None:
    """As docs/batching-reflexes.md has it."""
    begins = int(task.now.timestamp()) // WINDOW_S * WINDOW_S
    ends = datetime.fromtimestamp(begins + WINDOW_S, UTC)
    task.emit(Signal("digest", {"group": group}, dedupe_key=f"{group} {begins}", not_before=ends))


def recipe(principal: str | None = None, prefix: str = "") -> list[Reflex]:
    rows = Selection({"from": f"{prefix}unsent"}, "batch")
    return [
        reflex(
            f"{prefix}comment", OnSignal("comment"), effect="soon", input={"$": "fact.payload.t"}, principal=principal
        ),
        reflex(
            f"{prefix}digest", OnSignal("digest"), effect="send", input={"$": "rows"}, select=rows, principal=principal
        ),
    ]


async def test_twenty_facts_of_a_window_are_one_digest_of_what_is_there_then(at: At) -> None:
    engine = await at.engine()
    await at.load(engine, recipe())
    at.rows.tables["unsent"] = []
    for n in range(20):
        at.rows.tables["unsent"].append({"id": n})
        await at.signal(engine, "comment", {"t": "a"})
        await at.settle(engine)
        at.later(seconds=30)
    assert at.acts["send"].inputs == [], "the window is open"
    at.rows.tables["unsent"].pop(0)  # deleted meanwhile
    await at.pass_until(engine, at.now + timedelta(hours=1))
    assert [[row["id"] for row in rows] for rows in at.acts["send"].inputs] == [list(range(1, 20))]
    assert len(await at.runs(reflex="digest")) == 1


async def test_a_fact_after_the_window_opens_the_next(at: At) -> None:
    engine = await at.engine()
    await at.load(engine, recipe())
    at.rows.tables["unsent"] = [{"id": 1}]
    for seconds in (WINDOW_S - 1, 1, WINDOW_S):  # the last of one window, the first of the next, the first of a third
        at.later(seconds=seconds)
        await at.signal(engine, "comment", {"t": "a"})
        await at.settle(engine)
    await at.pass_until(engine, at.now + timedelta(hours=1))
    assert len(await at.runs(reflex="digest")) == 3


async def test_groups_and_tenants_have_windows_of_their_own(at: At) -> None:
    engine = await at.engine()
    await at.load(engine, [*recipe("one", "one."), *recipe("two", "two.")])
    at.rows.tables |= {"one.unsent": [{"id": 1}], "two.unsent": [{"id": 2}]}
    for group in ("a", "a", "b"):
        await at.signal(engine, "comment", {"t": group}, principal="one")
    await at.signal(engine, "comment", {"t": "a"}, principal="two")
    await at.pass_until(engine, at.now + timedelta(hours=1))
    sent = sorted((run["reflex"], run["principal"]) for run in await at.runs() if run["reflex"].endswith("digest"))
    assert sent == [("one.digest", "=one"), ("one.digest", "=one"), ("two.digest", "=two")]
    assert [rows[0]["id"] for rows in at.acts["send"].inputs].count(2) == 1


async def test_a_window_with_nothing_left_sends_nothing(at: At) -> None:
    engine = await at.engine()
    await at.load(engine, recipe())
    at.rows.tables["unsent"] = []
    await at.signal(engine, "comment", {"t": "a"})
    await at.pass_until(engine, at.now + timedelta(hours=1))
    (run,) = await at.runs(reflex="digest")
    assert (run["state"], run["total"], at.acts["send"].inputs) == ("settled", 0, [])
