"""Answers are written down once, runs settle once, batons pass, and what failed can be opened again."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from onefold.reflex.claim import CLAIMS_AT_MOST
from onefold.reflex.execute import Returned
from onefold.reflex.tables import REFLEX_RUN
from onefold.reflex.words import Signal, Write, run_id
from onefold.store.contract import Remove
from onefold.terms.errors import BadArguments, NotFound
from onefold.testing.broken.reflexes import LEASE_MS
from tests.reflex.ledger import RAISED, STORES, Ledger, ledger_on, number_of, unit_of


async def prepare(ledger: Ledger) -> None:
    await ledger.arm("r", "s")


@pytest.fixture(params=STORES)
async def ledger(request: pytest.FixtureRequest, place: Path) -> AsyncIterator[Ledger]:
    async with ledger_on(request.param, place) as ledger:
        await prepare(ledger)
        yield ledger


# --- answers ----------------------------------------------------------------------------------------


async def test_an_answer_is_kept_with_its_output(ledger: Ledger) -> None:
    await ledger.fan("a")
    await ledger.work(ending=Returned({"declined": True}))
    (task,) = await ledger.tasks()
    assert (task["state"], task["output"], task["ready_at"]) == ("done", b'{"declined":true}', None)
    assert (task["token"], task["claims"], task["ended_at"]) == (None, 0, ledger.now)


async def test_one_failure_leaves_its_neighbours_alone(ledger: Ledger) -> None:
    run = await ledger.fan("abc")
    for task in (await ledger.claim()).run:
        await ledger.record(ledger.landing(task, RAISED if unit_of(task) == "b" else None))
    assert await ledger.states(run) == ["done", "ready", "done"]
    assert (await ledger.run(run))["done"] == 2


async def test_a_task_that_raises_is_tried_again_after_its_backoff_and_fails_in_the_end(ledger: Ledger) -> None:
    run = await ledger.fan("a")
    for _ in range(3):
        assert await ledger.work(ending=RAISED) == ["a"]
        assert await ledger.work() == []
        ledger.now += 1_000
    (task,) = await ledger.tasks()
    assert (task["state"], task["error"], task["attempt"]) == ("failed", "ValueError: no", 3)
    assert await ledger.work() == []
    settled = await ledger.run(run)
    assert (settled["state"], settled["done"], settled["failed"]) == ("settled", 0, 1)


async def test_a_late_answer_is_discarded_once_the_task_is_somebody_elses(ledger: Ledger) -> None:
    """Its emits with it. What it did outside is what the task's key is for."""
    run = await ledger.fan("a")
    (first,) = (await ledger.claim()).run
    ledger.now += LEASE_MS
    (second,) = (await ledger.claim()).run
    late = await ledger.record(ledger.landing(first, Returned("late"), Signal("s", "late")))
    assert (late.kept, late.late) == ((), (number_of(first),))
    assert [task["state"] for task in await ledger.tasks()] == ["claimed"]
    await ledger.record(ledger.landing(second, Returned("second")))
    after = await ledger.record(ledger.landing(first, Returned("late"), Signal("s", "late")))
    assert after.kept == ()
    assert [task["output"] for task in await ledger.tasks()] == [b'"second"']
    assert (await ledger.run(run))["done"] == 1
    assert await ledger.facts(kind="signal") == []


async def test_an_answer_after_the_lease_counts_while_nobody_else_has_the_task(ledger: Ledger) -> None:
    await ledger.fan("a")
    (task,) = (await ledger.claim()).run
    ledger.now += LEASE_MS * 2
    assert (await ledger.record(ledger.landing(task))).kept == (number_of(task),)
    assert (await ledger.claim()).run == ()


async def test_an_answer_recorded_twice_counts_once(ledger: Ledger) -> None:
    """The outcome of the first commit was unknown; whoever does not know writes it again."""
    run = await ledger.fan("ab")
    task = (await ledger.claim(1)).run[0]
    landing = ledger.landing(task, None, Signal("s", 1))
    assert (await ledger.record(landing)).emitted == 1
    assert (await ledger.record(landing)).late == (number_of(task),)
    assert len(await ledger.facts()) == (await ledger.run(run))["done"] == 1


# --- emits ------------------------------------------------------------------------------------------


async def test_emits_are_committed_with_success_and_stamped_by_the_engine(ledger: Ledger) -> None:
    await ledger.fan("a", principal="studio", depth=2)
    (task,) = (await ledger.claim()).run
    await ledger.record(ledger.landing(task, None, Write("charges", "insert", {"id": 1}), Signal("s", None)))
    emitted = [fact for fact in await ledger.facts() if fact["kind"] != "run"]
    assert [(f["principal"], f["depth"], f["cause"]) for f in emitted] == [
        ("=studio", 3, f"task:{number_of(task)}")
    ] * 2
    assert [(f["kind"], f["subject"], f["op"], f["state"]) for f in emitted] == [
        ("write", "charges", "insert", "waiting"),
        ("signal", "s", None, "waiting"),
    ]


async def test_a_failing_attempt_emits_nothing(ledger: Ledger) -> None:
    await ledger.fan("a")
    for _ in range(2):
        await ledger.work(1, RAISED, Signal("s", 1))
        ledger.now += 1_000
    assert await ledger.facts() == []
    await ledger.work(1, None, Signal("s", 1))
    assert len(await ledger.facts(kind="signal")) == 1


async def test_a_key_that_an_effect_gave_counts_once_for_its_principal(ledger: Ledger) -> None:
    signal = Signal("s", 1, dedupe_key="evt")
    for principal in ("a", "a", "b", None):
        await ledger.fan("u", principal=principal)
        await ledger.work(1, None, signal)
    assert [f["principal"] for f in await ledger.facts(kind="signal")] == ["=a", "=b", "-"]


# --- runs -------------------------------------------------------------------------------------------


async def test_the_last_answer_settles_the_run_and_announces_it_in_the_same_commit(ledger: Ledger) -> None:
    run = await ledger.fan("ab", principal="studio", cause="occurrence:2026-03", depth=1)
    await ledger.work(1)
    assert (await ledger.run(run))["state"] == "fanned"
    assert await ledger.facts() == []
    await ledger.work(1)
    settled = await ledger.run(run)
    assert (settled["state"], settled["drained"], settled["open"]) == ("settled", 1, None)
    assert settled["settled_at"] == ledger.now
    (fact,) = await ledger.facts()
    assert (fact["kind"], fact["subject"], fact["principal"], fact["cause"]) == ("run", "r", "=studio", f"run:{run}")
    assert (fact["depth"], fact["due_at"], fact["state"]) == (2, ledger.now, "waiting")
    body = json.loads(fact["body"])
    assert (body["runId"], body["occurrence"]) == (run_id(run), "2026-03")
    assert body["stats"] == {"total": 2, "done": 2, "failed": 0}


@pytest.mark.parametrize("together", [True, False])
async def test_last_landings_at_once_settle_the_run_once(ledger: Ledger, together: bool) -> None:
    run = await ledger.fan([str(i) for i in range(6)])
    landings = [ledger.landing(task) for task in (await ledger.claim()).run]
    if together:
        await ledger.record(*landings)
    else:
        await asyncio.gather(*(ledger.record(landing) for landing in landings))
    settled = await ledger.run(run)
    assert (settled["state"], settled["done"]) == ("settled", 6)
    assert len(await ledger.facts(kind="run")) == 1


async def test_one_commit_records_tasks_of_many_runs(ledger: Ledger) -> None:
    runs = [await ledger.fan("ab", reflex=reflex) for reflex in ("r", "s", "r")]
    assert len(await ledger.work()) == 6
    assert [(await ledger.run(n))["state"] for n in runs] == ["settled"] * 3
    assert [f["subject"] for f in await ledger.facts(kind="run")] == ["r", "s", "r"]


async def test_an_answer_outlives_its_run(ledger: Ledger) -> None:
    """Nobody should take a run that is not settled. Whoever did leaves a task that still ends."""
    run = await ledger.fan("a")
    (task,) = (await ledger.claim()).run
    await ledger.write(Remove(REFLEX_RUN, keys=[(run,)]))
    assert (await ledger.record(ledger.landing(task, None, Signal("s", 1)))).kept == (number_of(task),)
    assert [fact["kind"] for fact in await ledger.facts()] == ["signal"]


# --- serial -----------------------------------------------------------------------------------------


async def test_serial_tasks_run_one_at_a_time_and_in_order(ledger: Ledger) -> None:
    await ledger.fan("abc", serial=True)
    await ledger.fan("de", serial=True)
    ran = []
    while units := await ledger.work():
        assert len(units) == 1
        ran += units
    assert "".join(ran) == "abcde"
    assert [t for t in await ledger.tasks() if t["baton"] or t["queue"]] == []


async def test_a_backoff_keeps_the_baton(ledger: Ledger) -> None:
    await ledger.fan("ab", serial=True)
    await ledger.work(1, RAISED)
    assert await ledger.work() == []
    ledger.now += 1_000
    assert [await ledger.work(), await ledger.work()] == [["a"], ["b"]]


async def killed_to_the_end(ledger: Ledger) -> None:
    """Whoever claims a task dies of it, as often as it is counted."""
    for _ in range(CLAIMS_AT_MOST):
        assert len((await ledger.claim()).run) == 1
        ledger.now += 200_000


async def test_a_task_that_fails_for_good_passes_the_baton_on(ledger: Ledger) -> None:
    ledger.policy = ledger.policy.__class__(retry_max=0)
    await ledger.fan("ab", serial=True)
    await ledger.work(1, RAISED)
    assert await ledger.work() == ["b"]


async def test_a_parked_task_passes_the_baton_on(ledger: Ledger) -> None:
    await ledger.fan("ab", serial=True)
    await killed_to_the_end(ledger)
    assert await ledger.work() == []  # a is parked
    assert await ledger.work() == ["b"]


async def test_a_lapsed_lease_keeps_serial_order(ledger: Ledger) -> None:
    await ledger.fan("ab", serial=True)
    (dead,) = (await ledger.claim()).run
    ledger.now += 200_000
    (again,) = (await ledger.claim()).run
    assert unit_of(again) == "a"
    assert (await ledger.record(ledger.landing(dead))).late == (number_of(dead),)
    assert (await ledger.claim()).run == ()
    await ledger.record(ledger.landing(again))
    assert await ledger.work() == ["b"]


async def test_batons_of_two_reflexes_are_two(ledger: Ledger) -> None:
    await ledger.fan("ab", serial=True)
    await ledger.fan("cd", reflex="s", serial=True)
    assert [await ledger.work(), await ledger.work()] == [["a", "c"], ["b", "d"]]


# --- retry ------------------------------------------------------------------------------------------


async def failed(ledger: Ledger, units: str = "a", serial: bool = False) -> int:
    """A run all of whose tasks failed."""
    ledger.policy = ledger.policy.__class__(retry_max=0)
    run = await ledger.fan(units, serial=serial)
    for _ in units:
        await ledger.work(ending=RAISED)
    ledger.policy = ledger.policy.__class__(retry_max=2, backoff="fixed", base_ms=1_000)
    return run


async def test_a_retry_rewinds_its_settled_run_and_announces_nothing_again(ledger: Ledger) -> None:
    run = await failed(ledger)
    assert (await ledger.run(run))["state"] == "settled"
    ledger.now += 5
    assert await ledger.retry(1)
    again = await ledger.run(run)
    assert (again["state"], again["failed"], again["open"], again["settled_at"]) == ("fanned", 0, "r", None)
    assert await ledger.work() == ["a"]
    settled = await ledger.run(run)
    assert (settled["state"], settled["done"], settled["failed"], settled["open"]) == ("settled", 1, 0, None)
    assert len(await ledger.facts(kind="run")) == 1


async def test_a_retry_takes_its_failure_off_the_count_whatever_the_run_is_doing(ledger: Ledger) -> None:
    run = await failed(ledger, "ab")
    assert await ledger.retry(1)
    assert await ledger.retry(2)  # the run is no longer settled
    assert (await ledger.run(run))["failed"] == 0
    await ledger.work(1)
    assert (await ledger.run(run))["state"] == "fanned"
    await ledger.work(1)
    settled = await ledger.run(run)
    assert (settled["state"], settled["done"], settled["failed"]) == ("settled", 2, 0)


async def test_a_retry_while_the_run_goes_on_settles_it_when_all_have_ended(ledger: Ledger) -> None:
    ledger.policy = ledger.policy.__class__(retry_max=0)
    run = await ledger.fan("ab")
    (a,) = (await ledger.claim(1)).run
    await ledger.record(ledger.landing(a, RAISED))
    assert await ledger.retry(number_of(a))
    (b,) = [task for task in (await ledger.claim()).run if unit_of(task) == "b"]
    await ledger.record(ledger.landing(b))
    assert (await ledger.run(run))["state"] == "fanned"
    assert await ledger.facts() == []


async def test_a_retried_task_has_all_its_attempts_before_it(ledger: Ledger) -> None:
    await failed(ledger)
    await ledger.retry(1)
    for _ in range(2):
        assert await ledger.work(ending=RAISED) == ["a"]
        ledger.now += 1_000
    assert [t["state"] for t in await ledger.tasks()] == ["ready"]
    assert await ledger.work(ending=RAISED) == ["a"]
    assert [(t["state"], t["attempt"]) for t in await ledger.tasks()] == [("failed", 3)]


async def test_a_parked_task_is_left_through_a_retry_alone(ledger: Ledger) -> None:
    run = await ledger.fan("a")
    await killed_to_the_end(ledger)
    await ledger.work()
    assert await ledger.states(run) == ["parked"]
    assert await ledger.retry(1)
    assert await ledger.work() == ["a"]
    settled = await ledger.run(run)
    assert (settled["state"], settled["done"], settled["failed"]) == ("settled", 1, 0)


async def test_pressing_retry_twice_is_pressing_it_once(ledger: Ledger) -> None:
    run = await failed(ledger)
    assert await ledger.retry(1)
    assert not await ledger.retry(1)
    assert (await ledger.run(run))["failed"] == 0


async def test_a_retried_serial_task_waits_for_the_baton_and_goes_first(ledger: Ledger) -> None:
    ledger.policy = ledger.policy.__class__(retry_max=0)
    await ledger.fan("abc", serial=True)
    await ledger.work(1, RAISED)
    (b,) = (await ledger.claim()).run
    assert await ledger.retry(1)
    assert await ledger.states(1) == ["queued", "claimed", "queued"]
    await ledger.record(ledger.landing(b))
    assert [await ledger.work(), await ledger.work(), await ledger.work()] == [["a"], ["c"], []]


async def test_a_retried_serial_task_takes_a_baton_that_nobody_holds(ledger: Ledger) -> None:
    await failed(ledger, "a", serial=True)
    await ledger.retry(1)
    assert [t["baton"] for t in await ledger.tasks()] == ["r"]
    await ledger.fan("b", serial=True)
    assert [await ledger.work(), await ledger.work()] == [["a"], ["b"]]


async def test_only_what_failed_can_be_retried(ledger: Ledger) -> None:
    await ledger.fan("a", principal="studio")
    assert not await ledger.retry(1)  # it waits for its first attempt
    await ledger.work()
    with pytest.raises(BadArguments, match="is done"):
        await ledger.retry(1)
    with pytest.raises(NotFound):
        await ledger.retry(99)


async def test_nobody_retries_what_is_somebody_elses(ledger: Ledger) -> None:
    from onefold.reflex.record import retrying

    ledger.policy = ledger.policy.__class__(retry_max=0)
    await ledger.fan("a", principal="studio")
    await ledger.work(ending=RAISED)
    for others in ((None,), ("other",), ()):
        with pytest.raises(NotFound):
            await ledger.commit(retrying(1, ledger.at, others))
    assert await ledger.commit(retrying(1, ledger.at, ("other", "studio")))
