"""From a claim to a settled run through the engine: what effects return, raise, emit, and never answer."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from typing import Any

from onefold.reflex import record, retention
from onefold.reflex.acting import committed
from onefold.reflex.claim import CLAIMS_AT_MOST, SUSPECT_FROM
from onefold.reflex.seams import Task
from onefold.reflex.tables import TASK
from onefold.reflex.words import OnRun, OnSignal, OnWrite, Selection, Signal, Write, number_of
from onefold.store.contract import Put
from onefold.terms.errors import OutsideStep
from onefold.terms.instant import down
from onefold.testing.store_suite.ground import turns, writing
from tests.reflex.ground import Act, At, reflex

DUE = Selection({"from": "due"}, "each", "id")
MINUTE = timedelta(minutes=1)


def due(at: At, *ids: str) -> None:
    at.rows.tables["due"] = [{"id": id} for id in ids]


def raising(*units: str) -> Any:
    """An effect that raises for these units."""

    def act(task: Task, input: Any) -> Any:
        if input in units:
            raise RuntimeError(f"no {input}")
        return input

    return act


async def states(at: At) -> list[str]:
    return [task["state"] for task in await at.tasks()]


async def test_a_task_is_given_what_it_needs_to_act_once(at: At) -> None:
    due(at, "s1")
    engine = await at.engine()
    one = reflex("a", OnSignal("ping"), principal="studio", select=DUE, input={"who": {"$": "row.id"}})
    await at.load(engine, [one])
    await at.signal(engine, principal="studio")
    await at.settle(engine)
    (task,) = at.act.tasks
    assert (task.attempt, task.principal, task.now) == (1, "studio", at.now)
    assert task.key.startswith("studio/reflex/a/fact:")
    assert task.key.endswith("/s1")
    assert at.act.inputs == [{"who": "s1"}]


async def test_a_decline_is_an_output_and_a_raise_is_tried_again(at: At) -> None:
    due(at, "s1", "s2")
    at.act.does = lambda task, input: raising("s2")(task, input) if task.attempt == 1 else {"declined": input}
    engine = await at.engine()
    await at.load(engine, [reflex("a", OnSignal("ping"), select=DUE, input={"$": "row.id"}, base_ms=60_000)])
    await at.signal(engine)
    await at.settle(engine)
    assert await states(at) == ["done", "ready"]
    assert await engine.next_due(at.now) == at.now + MINUTE
    await at.settle(engine, at.now + MINUTE)
    tasks = await at.tasks()
    assert [task["output"] for task in tasks] == [b'"s1"', b'{"declined":"s2"}']
    assert len({task.key for task in at.act.tasks}) == 2
    assert [task.attempt for task in at.act.tasks] == [1, 1, 2]


async def test_retries_end_and_leave_a_task_that_says_why(at: At) -> None:
    due(at, "s1")
    at.act.does = raising("s1")
    engine = await at.engine()
    one = reflex("a", OnSignal("ping"), select=DUE, input={"$": "row.id"}, retry_max=2, backoff="exponential")
    await at.load(engine, [one])
    await at.signal(engine)
    began = at.now
    await at.pass_until(engine, at.now + timedelta(days=1))
    assert [task.now - began for task in at.act.tasks] == [MINUTE * 0, MINUTE, MINUTE * 3]
    (task,) = await at.tasks()
    assert (task["state"], task["attempt"]) == ("failed", 3)
    assert task["error"].startswith("RuntimeError: no s1")


async def test_one_of_five_hundred_that_raises_leaves_the_others_done(at: At) -> None:
    due(at, *[f"s{n}" for n in range(500)])
    at.act.does = raising("s237")
    engine = await at.engine()
    await at.load(engine, [reflex("a", OnSignal("ping"), select=DUE, input={"$": "row.id"}, retry_max=0)])
    await at.signal(engine)
    await at.settle(engine)
    (run,) = await at.runs()
    assert (run["state"], run["total"], run["done"], run["failed"]) == ("settled", 500, 499, 1)
    assert len(at.act.inputs) == 500


async def test_what_hangs_fails_its_attempt_and_holds_up_nothing(at: At) -> None:
    due(at, "s1", "s2")
    held = asyncio.Event()
    late: list[str] = []

    async def hang(task: Task, input: Any) -> Any:
        if input == "s1":
            try:
                await held.wait()
            except asyncio.CancelledError:
                await held.wait()  # it does not stop when it is told to
            try:
                task.emit(Signal("late", None))
            except OutsideStep as refused:
                late.append(str(refused))
        return input

    at.act.does = hang
    engine = await at.engine()
    one = reflex("a", OnSignal("ping"), select=DUE, input={"$": "row.id"}, retry_max=0, timeout_ms=20)
    await at.load(engine, [one])
    await at.signal(engine)
    await at.settle(engine)
    assert await states(at) == ["failed", "done"]
    (s1, _) = await at.tasks()
    assert s1["error"] == "It did not answer within 0.02 s. Whether it took effect is not known."
    held.set()
    await turns()
    assert len(late) == 1
    assert [fact["subject"] for fact in await at.facts()] == ["ping", "a"]


# --- chains -----------------------------------------------------------------------------------------


async def test_a_settled_run_wakes_its_digest_once_with_its_counts(at: At) -> None:
    due(at, "s1", "s2", "s3")
    at.acts["digest"] = Act("digest")
    at.act.does = raising("s2")
    engine = await at.engine()
    charge = reflex("charge", OnSignal("ping"), select=DUE, input={"$": "row.id"}, retry_max=0)
    digest = reflex("digest", OnRun("charge"), effect="digest", input={"$": "fact.stats"})
    await at.load(engine, [charge, digest])
    await at.signal(engine)
    await at.settle(engine)
    assert at.acts["digest"].inputs == [{"total": 3, "done": 2, "failed": 1}]
    at.act.does = None
    failed = next(task["n"] for task in await at.tasks() if task["state"] == "failed")
    assert await committed(await at.space(), record.retrying(failed, down(at.now)))
    await at.settle(engine)
    assert [run["state"] for run in await at.runs(reflex="charge")] == ["settled"]
    assert len(at.acts["digest"].inputs) == 1


async def test_a_reflex_that_overlaps_with_none_waits_for_a_retried_run(at: At) -> None:
    """A run that was opened again is a run that is under way."""
    due(at, "s1")
    at.act.does = raising("s1")
    engine = await at.engine()
    one = reflex("a", {"every": "day", "at": "09:00", "tz": "UTC"}, select=DUE, input={"$": "row.id"}, retry_max=0)
    await at.load(engine, [one])
    await at.pass_until(engine, at.now + timedelta(hours=10))
    (task,) = await at.tasks()
    at.act.does = None
    await committed(await at.space(), record.retrying(task["n"], down(at.now)))
    effects, at.acts = at.acts, {}
    blind = await at.engine(effects={})
    await blind.reload()
    await at.pass_until(blind, at.now + timedelta(days=1))
    assert [run["state"] for run in await at.runs()] == ["fanned", "skipped"]
    at.acts = effects
    await at.settle(engine)
    assert [run["state"] for run in await at.runs()] == ["settled", "skipped"]


async def test_a_chain_is_walked_from_its_last_effect_to_its_first_cause(at: At) -> None:
    from onefold.reflex.explain import links
    from onefold.testing.broken.reflexes import walked

    due(at, "s1")
    at.act.does = lambda task, input: task.emit(Write("charges", "insert", {"id": input}, dedupe_key="c"))
    at.acts["mail"] = Act("mail")
    engine = await at.engine()
    charge = reflex("charge", {"every": "day", "at": "09:00", "tz": "UTC"}, select=DUE, input={"$": "row.id"})
    mail = reflex("mail", OnWrite("charges", "insert"), effect="mail", input={"$": "row.id"})
    await at.load(engine, [charge, mail])
    await at.pass_until(engine, at.now + timedelta(hours=10))
    assert at.acts["mail"].inputs == ["s1"]
    (sent,) = await at.tasks(reflex="mail")
    chain = await walked(await at.space(), links(f"task_{sent['n']}"))
    assert [link.kind for link in chain] == ["task", "run", "fact", "task", "run", "occurrence"]
    assert chain[-1].id == "charge:2026-03-01"
    (charged,) = await at.runs(reflex="charge")
    assert chain[4].detail["version"] == charged["version"]


async def test_a_loop_is_parked_at_the_ceiling_and_a_person_lets_it_on(at: At) -> None:
    """Depth goes with the facts; a sweep of everything that is settled does not begin it anew."""
    at.act.does = lambda task, input: task.emit(Signal("ping", None))
    engine = await at.engine(max_chain_depth=5)
    await at.load(engine, [reflex("a", OnSignal("ping"))])
    await at.signal(engine)
    for _ in range(30):
        await engine.advance(at.now)
        at.later(seconds=1)
        await committed(await at.space(), retention.sweeping_runs(down(at.now)))
        await committed(await at.space(), retention.sweeping_facts(down(at.now)))
    assert len(at.act.tasks) == 6  # one for the signal, and five links behind it
    (parked,) = await at.facts(state="parked", kind="signal")
    assert parked["depth"] == 6
    await engine.release(f"fact_{parked['n']}", now=at.now)
    await at.settle(engine)
    assert len(at.act.tasks) == 12  # a person's word begins a chain of its own
    assert len(await at.facts(state="parked", kind="signal")) == 1


# --- leases -----------------------------------------------------------------------------------------


async def test_a_late_answer_of_an_engine_that_was_thought_dead_changes_nothing(at: At) -> None:
    due(at, "s1")
    held, answers = asyncio.Event(), iter(["late", "second"])

    async def act(task: Task, input: Any) -> Any:
        mine = next(answers)
        if mine == "late":
            await held.wait()
            task.emit(Signal("late", None))
        return mine

    at.act.does = act
    first, second = await at.engine(), await at.engine()
    await at.load(first, [reflex("a", OnSignal("ping"), select=DUE, timeout_ms=30_000)])
    await second.reload()
    await at.signal(first)
    hanging = asyncio.create_task(first.advance(at.now))
    while not at.act.tasks:
        await turns()
    assert await second.next_due(at.now) == at.now + MINUTE
    await at.settle(second, at.now + MINUTE)
    held.set()
    report = await hanging
    assert report.executed == 0
    assert any("too late" in event for event in report.events)
    assert [task["output"] for task in await at.tasks()] == [b'"second"']
    assert [fact["kind"] for fact in await at.facts()] == ["signal", "run"]


async def test_whoever_kills_each_engine_that_runs_it_is_parked_and_a_retry_lets_it_go_on(at: At) -> None:
    due(at, "poison", "s2", "s3")
    never = asyncio.Event()

    async def act(task: Task, input: Any) -> Any:
        if input == "poison" and not never.is_set():
            await never.wait()
        await asyncio.sleep(0)
        return input

    at.act.does = act
    engine = await at.engine()
    await at.load(engine, [reflex("a", OnSignal("ping"), select=DUE, input={"$": "row.id"})])
    await at.signal(engine)
    deaths = 0
    while (await at.runs())[:1] == [] or (await at.runs())[0]["state"] != "settled":
        engine = await at.engine()
        await engine.reload()
        life = asyncio.create_task(at.settle(engine))
        for _ in range(200):
            await turns()
            if life.done():
                break
        else:
            deaths += 1
            life.cancel()
            await asyncio.gather(life, return_exceptions=True)
            await at.reopen()
        at.later(minutes=2)
        assert deaths <= CLAIMS_AT_MOST
    assert deaths == CLAIMS_AT_MOST
    parked, *others = await at.tasks()
    assert (parked["state"], [task["state"] for task in others]) == ("parked", ["done", "done"])
    assert "never answered" in parked["error"]
    never.set()
    await committed(await at.space(), record.retrying(parked["n"], down(at.now)))
    await at.settle(await _again(at))
    (run,) = await at.runs()
    assert (run["state"], run["done"], run["failed"]) == ("settled", 3, 0)


async def test_a_suspect_comes_to_run_alone_however_much_there_is_to_do(at: At) -> None:
    """Something is always under way in a busy engine. It claims nothing more until the suspect has had its turn."""
    due(at, "s1")
    gates: dict[str, asyncio.Event] = {}
    under_way: list[str] = []
    seen: list[tuple[str, ...]] = []

    async def act(task: Task, input: Any) -> Any:
        under_way.append(input)
        seen.append(tuple(under_way))
        if input in gates:
            await gates[input].wait()
        under_way.remove(input)
        return input

    at.act.does = act
    engine = await at.engine()
    each = Selection({"from": {"$": "fact.payload"}}, "each", "id")
    await at.load(engine, [reflex("a", OnSignal("ping"), select=each, input={"$": "row.id"})])
    for name in ("slow", "suspect", "more"):
        at.rows.tables[name] = [{"id": name}]
    gates["slow"] = asyncio.Event()
    await at.signal(engine, payload="slow")
    slow = asyncio.create_task(engine.advance(at.now))
    while under_way != ["slow"]:
        await turns()
    await at.signal(engine, payload="suspect")
    blind = await at.engine(effects={})
    await blind.reload()
    await at.settle(blind)
    (task,) = await at.tasks(unit="suspect")
    await put_task(at, task | {"claims": SUSPECT_FROM - 1})
    await at.settle(engine)
    await at.signal(engine, payload="more")
    await at.settle(engine)
    assert seen == [("slow",)]
    gates["slow"].set()
    await slow
    await at.settle(engine)
    assert seen == [("slow",), ("suspect",), ("more",)]
    assert await states(at) == ["done"] * 3


async def put_task(at: At, cells: dict[str, Any]) -> None:
    await committed(await at.space(), writing(Put(TASK, [tuple(cells.values())])))


async def _again(at: At) -> Any:
    engine = await at.engine()
    await engine.reload()
    return engine


async def test_serial_tasks_of_two_engines_never_overlap_and_keep_their_order(at: At) -> None:
    due(at, *[f"s{n}" for n in range(6)])
    under_way: set[str] = set()
    began: list[str] = []

    async def act(task: Task, input: Any) -> Any:
        assert not under_way, "two serial tasks are in flight"
        under_way.add(task.key)
        began.append(input)
        await asyncio.sleep(0)
        under_way.discard(task.key)
        if input == "s2" and task.attempt == 1:
            raise RuntimeError("once")
        return input

    at.act.does = act
    first, second = await at.engine(), await at.engine()
    one = reflex("a", OnSignal("ping"), select=DUE, input={"$": "row.id"}, order="serial", base_ms=1_000)
    await at.load(first, [one])
    await second.reload()
    await at.signal(first)
    for _ in range(40):
        await asyncio.gather(first.advance(at.now), second.advance(at.now), first.advance(at.now))
        at.later(milliseconds=100)
    assert began == ["s0", "s1", "s2", "s2", "s3", "s4", "s5"]
    assert await states(at) == ["done"] * 6
    (fact,) = await at.facts(kind="run")
    assert json.loads(fact["body"])["stats"] == {"total": 6, "done": 6, "failed": 0}


async def test_what_an_effect_gives_can_be_selected_downstream(at: At) -> None:
    """An answer that is no write is a row all the same."""
    at.act.does = lambda task, input: {"said": "yes"}
    engine = await at.engine()
    await at.load(engine, [reflex("ask", OnSignal("ping"))])
    await at.signal(engine)
    await at.settle(engine)
    (task,) = await at.tasks()
    assert task["output"] == b'{"said":"yes"}'
    (fact,) = await at.facts(kind="run")
    assert number_of(json.loads(fact["body"])["runId"], "reflex_run_") == task["run"]
