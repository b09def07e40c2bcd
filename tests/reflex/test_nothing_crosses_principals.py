"""Whatever facts, chains, hands and selections do: what is of one principal is met by that principal's reflexes alone.

Random sets in which everybody watches everybody's names, and each row is looked at afterwards.
"""

from __future__ import annotations

import asyncio
import os
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onefold.reflex.engine import Engine
from onefold.reflex.seams import Task
from onefold.reflex.words import ByHand, OnRun, OnSignal, OnWrite, Reflex, Selection, Signal, Write
from onefold.terms.errors import UnknownName
from onefold.terms.ids import Principal, join, principal_text
from onefold.testing.broken.reflex_engines import BROKEN_ENGINES
from tests.reflex.ground import Act, At, ground, reflex

EXAMPLES = 500 if os.environ.get("ONEFOLD_DEEP") else 40
WHOSE: list[Principal] = [None, "studio_42", "studio_7", "-", "=studio_42", "None"]  # some look like others' rows
IDS = [f"r{n}" for n in range(6)]

principals = st.sampled_from(WHOSE)
triggers = st.one_of(
    st.builds(OnWrite, st.sampled_from(["orders", "bills"])),
    st.builds(OnSignal, st.sampled_from(["ping", "pong"])),
    st.builds(OnRun, st.sampled_from(IDS)),
    st.just(ByHand()),
)
rules = st.tuples(triggers, principals, st.sampled_from(["tell", "quiet"]), st.booleans())
facts = st.one_of(
    st.builds(Write, st.sampled_from(["orders", "bills"]), st.just("insert"), st.just({"id": 1})),
    st.builds(Signal, st.sampled_from(["ping", "pong"]), st.none()),
)


def tell(task: Task, given: Any) -> None:
    """An effect that emits, as far as anybody would let it go."""
    if given["depth"] < 2:
        task.emit(Write("bills", "insert", {"of": repr(task.principal)}))
        task.emit(Signal("pong", {"of": repr(task.principal)}))


def made(rule: tuple[Any, Principal, str, bool], id: str) -> Reflex:
    on, principal, effect, selects = rule
    rows = Selection({"from": "rows"}, "batch") if selects else None
    return reflex(id, on, principal=principal, effect=effect, input={"depth": 0 if selects else 2}, select=rows)


async def lived(rules: list[Any], said: list[tuple[Any, Principal]], hands: list[tuple[str, Principal]]) -> None:
    async with ground("memory") as at:
        at.acts = {"tell": Act("tell", does=tell), "quiet": Act("quiet")}
        at.rows.tables["rows"] = [{"id": 1}]
        engine = await at.engine(max_chain_depth=3)
        reflexes = {id: made(rule, id) for id, rule in zip(IDS, rules, strict=False)}
        await at.load(engine, reflexes.values())
        for fact, principal in said:
            await engine.ingest(fact, principal, now=at.now)
        for id, principal in hands:
            await fired(engine, at, reflexes, id, principal)
        await at.pass_until(engine, at.now + timedelta(minutes=1))
        await each_row_is_its_own(at, reflexes)


async def fired(engine: Engine, at: At, reflexes: dict[str, Reflex], id: str, principal: Principal) -> None:
    """A hand reaches its own, and is told that another's is not there."""
    mine = id in reflexes and reflexes[id].principal == principal
    try:
        await engine.fire(id, now=at.now, principal=principal)
    except UnknownName:
        assert not mine
    else:
        assert mine


async def each_row_is_its_own(at: At, reflexes: dict[str, Reflex]) -> None:
    facts = {fact["n"]: fact for fact in await at.facts()}
    runs = {run["n"]: run for run in await at.runs()}
    tasks = {task["n"]: task for task in await at.tasks()}
    for run in runs.values():
        assert run["principal"] == principal_text(reflexes[run["reflex"]].principal)
        assert run["principal"] == facts[run["fact"]]["principal"]
    for task in tasks.values():
        assert task["principal"] == runs[task["run"]]["principal"]
    for fact in facts.values():
        kind, _, n = (fact["cause"] or "").partition(":")
        came_of = {"task": tasks, "run": runs}.get(kind)
        assert came_of is None or came_of[int(n)]["principal"] == fact["principal"]
    for query, principal in at.rows.asked:
        assert query == {"from": "rows"}
        assert principal in {one.principal for one in reflexes.values() if one.select is not None}
    keys: dict[str, Principal] = {}
    for attempt in [attempt for act in at.acts.values() for attempt in act.tasks]:
        assert keys.setdefault(attempt.key, attempt.principal) == attempt.principal, "no provider takes one for another"
        assert attempt.key.startswith(join(attempt.principal, ""))


@settings(max_examples=EXAMPLES)
@given(
    st.lists(rules, min_size=2, max_size=len(IDS)),
    st.lists(st.tuples(facts, principals), max_size=4),
    st.lists(st.tuples(st.sampled_from(IDS), principals), max_size=3),
)
def test_every_run_task_fact_and_selection_is_its_principals_own(
    rules: list[Any], said: list[tuple[Any, Principal]], hands: list[tuple[str, Principal]]
) -> None:
    asyncio.run(lived(rules, said, hands))


def test_there_is_no_verb_that_arms() -> None:
    """Enablement is what the definition says, and `load`. A second copy of it in memory is lost with the process."""
    verbs = {name for name in vars(Engine) if not name.startswith("_")}
    assert "load" in verbs
    assert not {verb for verb in verbs if any(word in verb for word in ("arm", "enable", "pause", "resume"))}


def test_one_that_pairs_by_name_alone_would_be_seen() -> None:
    (twin,) = [twin for twin in BROKEN_ENGINES if twin.name == "pairs by entity"]
    both: list[Any] = [(OnWrite("orders"), whose, "quiet", False) for whose in ("studio_42", "studio_7")]
    said: list[tuple[Any, Principal]] = [(Write("orders", "insert", {"id": 1}), "studio_42")]
    asyncio.run(lived(both, said, []))
    with twin.planted(), pytest.raises(AssertionError):
        asyncio.run(lived(both, said, []))
