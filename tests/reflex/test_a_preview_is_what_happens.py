"""Whatever a preview shows, later happens: random reflexes, facts, rows, clocks and pasts, shown first and then lived."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

from hypothesis import event, given, settings
from hypothesis import strategies as st

from onefold.reflex.engine import Engine
from onefold.reflex.words import ByHand, OnSignal, OnWrite, Preview, Reflex, Selection, Signal, Write
from tests.reflex.ground import T0, At, ground, reflex

DEEP = int(os.environ.get("ONEFOLD_DEEP", "0") or 0)
EXAMPLES = 1_000 if DEEP else 60
ZONES = ["Europe/Vienna", "America/Denver", "Pacific/Apia", "UTC"]

times = st.builds("{:02}:{:02}".format, st.integers(0, 23), st.sampled_from([0, 30]))
clocks = st.one_of(
    st.fixed_dictionaries({"every": st.just("day"), "at": times, "tz": st.sampled_from(ZONES)}),
    st.fixed_dictionaries(
        {"every": st.just("month"), "on": st.integers(1, 31), "at": times, "tz": st.sampled_from(ZONES)}
    ),
    st.fixed_dictionaries({"cron": st.sampled_from(["30 2 * * *", "0 */5 * * *"]), "tz": st.sampled_from(ZONES)}),
    st.fixed_dictionaries({"at": st.just("2026-03-29T02:30"), "tz": st.sampled_from(ZONES)}),
)
paths = ["occurrence.key", "occurrence.at", "fact.row.id", "fact.payload.n", "fact.kind", "row.id", "row.owes", "rows"]
leaves = st.one_of(st.sampled_from([*paths, "params.k", "now"]).map(lambda path: {"$": path}), st.integers(0, 3))
inputs = st.one_of(leaves, st.dictionaries(st.sampled_from("ab"), leaves, max_size=2))
whens = st.one_of(st.none(), st.none(), st.sampled_from(["fact.row.owes", "fact.row.id", "fact.payload.n", "fact.no"]))
cells = st.fixed_dictionaries({"id": st.sampled_from(["ada", "ben", "cleo"]), "owes": st.sampled_from([0, 1, [], ""])})
tables = st.lists(cells, max_size=3)
writes = st.builds(Write, st.just("orders"), st.sampled_from(["insert", "update"]), cells)
signals = st.builds(Signal, st.just("ping"), st.fixed_dictionaries({"n": st.integers(0, 1)}))
hearing = st.one_of(
    st.builds(OnWrite, st.just("orders"), st.sampled_from([None, None, "update"])),
    st.builds(OnWrite, st.just("orders")),
    st.builds(OnSignal, st.sampled_from(["ping", "pong"])),
)


@st.composite
def reflexes(draw: st.DrawFn, triggers: st.SearchStrategy[Any]) -> Reflex:
    on = draw(triggers)
    mode: Any = draw(st.sampled_from([None, "each", "batch"]))
    query = {"from": "due", "given": draw(leaves)}
    when = draw(whens) if isinstance(on, OnWrite | OnSignal) else None
    return reflex(
        "one",
        on,
        input=draw(inputs),
        params={"k": 7},
        select=None if mode is None else Selection(query, mode, "id" if mode == "each" else None),
        when=None if when is None else {"$": when},
        retry_max=0,
        overlap=draw(st.sampled_from(["skip", "allow"])),
        catch_up=draw(st.sampled_from(["run", "skip", "latest"])),
    )


async def story(one: Reflex, act: Callable[[At, Engine], Awaitable[None]], rows: list[Any], outage: timedelta) -> None:
    async with ground("memory") as at:
        at.rows.tables["due"] = rows
        engine = await at.engine()
        await at.load(engine, [one])
        at.now += outage  # it was armed, and then nobody advanced
        await act(at, engine)


async def lived(at: At, known: set[int]) -> tuple[str, list[tuple[str, Any, bool]]]:
    """Of the first run that is new and was not skipped: its cause and, for each of its tasks, unit, output, error."""
    runs = [run for run in await at.runs() if run["n"] not in known and run["state"] not in ("skipped", "pending")]
    if not runs:
        return "nothing", []
    tasks = await at.tasks(run=runs[0]["n"])
    told = [(task["unit"], json.loads(task["output"] or b"null"), task["error"] is not None) for task in tasks]
    return runs[0]["cause"].replace(f"fact:{runs[0]['fact']}", "fact"), told


def shown(seen: Preview) -> tuple[str, list[tuple[str, Any, bool]]]:
    told = [(task.unit, None if task.error else task.input, task.error is not None) for task in seen.tasks]
    return "nothing" if seen.cause.startswith("nothing") else seen.cause, told


@settings(max_examples=EXAMPLES)
@given(reflexes(hearing), writes | signals, tables, st.timedeltas(timedelta(), timedelta(days=3)))
def test_a_fact_does_what_its_preview_showed(one: Reflex, fact: Any, rows: list[Any], outage: timedelta) -> None:
    async def act(at: At, engine: Engine) -> None:
        await at.settle(engine)
        known = {run["n"] for run in await at.runs()}
        seen = await engine.preview("one", now=at.now, fact=fact)
        event(seen.cause.partition(":")[0])
        await engine.ingest(fact, now=at.now)
        await at.settle(engine)
        assert shown(seen) == await lived(at, known)

    asyncio.run(story(one, act, rows, outage))


@settings(max_examples=EXAMPLES)
@given(reflexes(hearing | clocks | st.just(ByHand())), st.integers(0, 2), tables)
def test_a_person_who_fires_gets_what_the_preview_showed(one: Reflex, payload: int, rows: list[Any]) -> None:
    async def act(at: At, engine: Engine) -> None:
        seen = await engine.preview("one", now=at.now, fact={"kind": "manual", "payload": {"n": payload}})
        event(seen.cause.partition(":")[0])
        await engine.fire("one", now=at.now, input={"n": payload})
        await at.settle(engine)
        assert shown(seen) == await lived(at, set())

    asyncio.run(story(one, act, rows, timedelta()))


@settings(max_examples=EXAMPLES)
@given(reflexes(clocks), tables, st.timedeltas(timedelta(), timedelta(days=9)))
def test_the_clock_does_what_its_preview_showed(one: Reflex, rows: list[Any], outage: timedelta) -> None:
    """After an outage too: what was missed and is made up for, or the next that comes."""

    async def act(at: At, engine: Engine) -> None:
        seen = await engine.preview("one", now=at.now, count=50)
        event(seen.cause.partition(":")[0])
        known: set[int] = set()
        for moment in [at.now, *seen.next_occurrences]:
            await at.settle(engine, max(at.now, moment))
            if (await lived(at, known))[0] != "nothing" or shown(seen)[0] == "nothing":
                break
            known |= {run["n"] for run in await at.runs()}
        assert shown(seen) == await lived(at, known)

    asyncio.run(story(one, act, rows, outage))


@settings(max_examples=EXAMPLES)
@given(clocks, st.timedeltas(timedelta(), timedelta(days=200)), st.integers(1, 6))
def test_the_occurrences_to_come_are_those_that_come(clause: Any, passed: timedelta, count: int) -> None:
    async def act(at: At, engine: Engine) -> None:
        await at.settle(engine)
        known = len(await at.runs())
        coming = (await engine.preview("one", now=at.now, count=count)).next_occurrences
        for moment in coming:
            await at.settle(engine, moment)
        runs = (await at.runs())[known:]
        assert [run["occurred_at"] for run in runs] == [round(moment.timestamp() * 1000) for moment in coming]
        assert at.now == (coming[-1] if coming else T0 + passed)

    asyncio.run(story(reflex("one", clause, overlap="allow"), act, [], passed))
