"""A flow is a chain of facts: one hop an advance, every joint a row, and an end to those that have none."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from onefold.reflex.words import ByHand, OnRun, OnSignal, OnWrite, Signal, Write
from onefold.terms.errors import OnefoldError
from tests.reflex.ground import Act, At, reflex

PING = OnSignal("ping")


async def test_a_chain_goes_one_hop_an_advance_and_every_joint_is_a_row(at: At) -> None:
    at.acts["first"] = Act("first", does=lambda task, input: task.emit(Write("rows", "insert", {"n": 1})))
    engine = await at.engine()
    await at.load(engine, [reflex("a", PING, effect="first"), reflex("b", OnWrite("rows"))])
    await at.signal(engine)
    await engine.advance(at.now)
    assert [run["reflex"] for run in await at.runs()] == ["a"]
    (fact,) = await at.facts(kind="write")
    assert (fact["cause"], fact["depth"], fact["state"]) == ("task:1", 1, "waiting")
    await engine.advance(at.now)
    assert [run["reflex"] for run in await at.runs()] == ["a", "b"]


async def test_from_the_last_effect_a_walk_leads_to_the_first_cause(at: At) -> None:
    at.acts["first"] = Act("first", does=lambda task, input: task.emit(Write("rows", "insert", {"n": 1})))
    engine = await at.engine()
    clock = {"every": "day", "at": "03:00", "tz": "UTC"}
    await at.load(engine, [
        reflex("a", clock, effect="first"), reflex("b", OnWrite("rows")), reflex("c", OnRun("b")),
    ])  # fmt: skip
    await at.settle(engine, at.now + timedelta(hours=3))
    (last,) = [task for task in await at.tasks() if task["reflex"] == "c"]
    chain = await engine.explain(f"task_{last['n']}")
    kinds = "task run fact run fact task run occurrence"
    assert " ".join(link.kind for link in chain) == kinds
    assert [link.detail["reflex"] for link in chain if link.kind == "run"] == ["c", "b", "a"]
    assert "2026-03-01" in chain[-1].id


async def test_a_chain_without_an_end_is_parked_and_released_for_as_many_links_again(at: At) -> None:
    at.act.does = lambda task, input: task.emit(Signal("ping", {}))
    engine = await at.engine(max_chain_depth=5)
    await at.load(engine, [reflex("a", PING)])
    await at.signal(engine)
    await at.settle(engine)
    assert len(at.act.inputs) == 6
    (parked,) = await at.facts(state="parked")
    assert parked["depth"] == 6
    await engine.release(f"fact_{parked['n']}", now=at.now)
    await at.settle(engine)
    assert len(at.act.inputs) == 12
    assert [fact["released"] for fact in await at.facts(kind="signal")] == [0] * 6 + [1] + [0] * 6


async def test_what_an_attempt_emitted_and_then_raised_is_nobodys(at: At) -> None:
    def does(task: Any, input: Any) -> None:
        task.emit(Signal("pong", {"attempt": task.attempt}))
        if task.attempt < 3:
            raise ConnectionError("again")

    at.act.does = does
    engine = await at.engine()
    await at.load(engine, [reflex("a", PING, principal="studio")])
    await at.signal(engine, principal="studio")
    await at.pass_until(engine, at.now + timedelta(hours=1))
    (fact,) = await at.facts(subject="pong")
    assert (fact["principal"], fact["kind"]) == ("=studio", "signal")
    assert b'"attempt":3' in fact["body"]
    assert len({task.key for task in at.act.tasks}) == 1
    assert [task.attempt for task in at.act.tasks] == [1, 2, 3]
    assert {task.principal for task in at.act.tasks} == {"studio"}


async def test_an_effect_fires_no_disarmed_reflex(at: At) -> None:
    refused: list[Any] = []

    def does(task: Any, input: Any) -> None:
        try:
            task.emit({"kind": "manual", "target": "b"})
        except OnefoldError as fault:
            refused.append(fault)

    at.act.does = does
    engine = await at.engine()
    await at.load(engine, [reflex("a", PING), reflex("b", ByHand(), enabled=False)])
    await at.signal(engine)
    await at.settle(engine)
    assert len(refused) == 1
    assert [run["reflex"] for run in await at.runs()] == ["a"]
