"""Everything is kept; what a person lets go of goes whole, and nothing happens twice for it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from onefold.reflex import intake, retention
from onefold.reflex.retention import Swept
from onefold.reflex.tables import INTAKE, REFLEX_RUN, STATE
from onefold.reflex.words import Ingested, Signal
from onefold.store.contract import Append, Cas, Cell, Remove
from onefold.terms.errors import NotFound
from onefold.terms.instant import Instant
from tests.reflex.ledger import RAISED, START, STORES, Ledger, fact_row, ledger_on, run_row

DAY = 86_400_000


async def prepare(ledger: Ledger) -> None:
    await ledger.arm("r", "s")


@pytest.fixture(params=STORES)
async def ledger(request: pytest.FixtureRequest, place: Path) -> AsyncIterator[Ledger]:
    async with ledger_on(request.param, place) as ledger:
        await prepare(ledger)
        yield ledger


async def keep(ledger: Ledger, **cells: Cell) -> int:
    n = ledger.space.mint(INTAKE)
    await ledger.write(Append(INTAKE, [fact_row(n=n, at=ledger.now, **cells)]))
    return n


async def ingest(ledger: Ledger, key: str) -> Ingested:
    fact = intake.taken(Signal("s", 1, dedupe_key=key), None, ledger.at)
    return (await ledger.commit(intake.admitting([fact], lambda: ledger.space.mint(INTAKE))))[0]


async def test_a_sweep_takes_tasks_with_their_run(ledger: Ledger) -> None:
    old = await ledger.fan("ab")
    await ledger.work()
    ledger.now += DAY
    young = await ledger.fan("cd")
    await ledger.work()
    await deliver(ledger)
    assert await ledger.sweep_runs(ledger.now) == Swept(runs=1, tasks=2)
    assert [run["n"] for run in await ledger.rows(REFLEX_RUN)] == [young]
    assert [task["run"] for task in await ledger.tasks()] == [young, young] != [old, old]


async def deliver(ledger: Ledger) -> None:
    """As if every fact that waits had been matched, and had woken nobody."""
    waiting = await ledger.facts(state="waiting")
    await ledger.write(Cas(INTAKE, [((f["n"],), {}, {"state": "delivered", "due_at": None}) for f in waiting]))


async def test_a_sweep_never_takes_what_is_not_settled(ledger: Ledger) -> None:
    """However old it is. A task that may still run again keeps the row that says it ran."""
    run = await ledger.fan("abc")
    (a,) = (await ledger.claim(1)).run
    await ledger.record(ledger.landing(a))
    await ledger.write(Append(REFLEX_RUN, [run_row(n=90, cause="occurrence:90", state="pending", due_at=START)]))
    assert await ledger.sweep_runs(START + 1_000 * DAY) == Swept()
    assert len(await ledger.tasks()) == 3
    await ledger.work()
    await deliver(ledger)
    assert (await ledger.sweep_runs(START + 1_000 * DAY)).runs == 1
    assert [r["n"] for r in await ledger.rows(REFLEX_RUN)] == [90] != [run]


async def test_a_rewound_run_is_not_settled(ledger: Ledger) -> None:
    ledger.policy = ledger.policy.__class__(retry_max=0)
    await ledger.fan("a")
    await ledger.work(ending=RAISED)
    await deliver(ledger)
    await ledger.retry(1)
    assert await ledger.sweep_runs(START + DAY) == Swept()


async def test_a_skipped_run_goes_like_a_settled_one(ledger: Ledger) -> None:
    await ledger.write(Append(REFLEX_RUN, [run_row(n=1, state="skipped", settled_at=START)]))
    assert await ledger.sweep_runs(START + 1) == Swept(runs=1)


@pytest.mark.parametrize("state", ["waiting", "parked"])
async def test_a_run_stays_while_something_it_led_to_is_not_settled(ledger: Ledger, state: str) -> None:
    """A digest that was put off still asks for the outputs of the tasks it is about."""
    run = await ledger.fan("a")
    await ledger.work(1, None, Signal("s", 1))
    await deliver(ledger)
    emitted = (await ledger.facts(kind="signal"))[0]["n"]
    await ledger.write(Cas(INTAKE, [((emitted,), {}, {"state": state, "due_at": START})]))
    assert await ledger.sweep_runs(START + DAY) == Swept()
    await settle_fact(ledger, emitted)
    digest = run_row(n=91, cause=f"fact:{emitted}", fact=emitted, state="pending", due_at=START + 9 * DAY)
    await ledger.write(Append(REFLEX_RUN, [digest]))
    assert await ledger.sweep_runs(START + DAY) == Swept()
    await ledger.write(Cas(REFLEX_RUN, [((91,), {}, {"state": "settled", "settled_at": START + 2 * DAY})]))
    assert (await ledger.sweep_runs(START + DAY)).runs == 1
    assert [r["n"] for r in await ledger.rows(REFLEX_RUN)] == [91] != [run]


async def test_a_swept_occurrence_is_remembered(ledger: Ledger) -> None:
    """The row that said "March was billed" is gone; that it was is not."""
    for cause, at in (("occurrence:2026-02", START + 2), ("occurrence:2026-03", START + 3), ("fact:7", START + 9)):
        await ledger.fan("a", cause=cause, occurred_at=at)
    await ledger.work()
    await deliver(ledger)
    await ledger.sweep_runs(START + DAY, limit=2)
    states = {row["reflex"]: row["swept_at"] for row in await ledger.rows(STATE)}
    assert states == {"": None, "r": START + 3, "s": None}
    await ledger.fan("a", cause="occurrence:2026-01", occurred_at=START + 1)
    await ledger.work()
    await deliver(ledger)
    await ledger.sweep_runs(START + DAY)
    assert (await ledger.rows(STATE, reflex="r"))[0]["swept_at"] == START + 3


async def test_a_sweep_goes_on_page_by_page_behind_what_stays(ledger: Ledger) -> None:
    """Runs that must stay at the head of the line do not hide those behind them; equal instants do not either."""
    stay = [await ledger.fan("a") for _ in range(5)]
    await ledger.work(100, None, Signal("s", 1))  # their facts wait
    gone = [await ledger.fan("a") for _ in range(7)]
    await ledger.work()
    for fact in await ledger.facts(kind="run"):
        await settle_fact(ledger, fact["n"])
    assert await ledger.sweep_runs(START + DAY, limit=3) == Swept(runs=7, tasks=7)
    assert [r["n"] for r in await ledger.rows(REFLEX_RUN)] == stay != gone


async def settle_fact(ledger: Ledger, n: int) -> None:
    await ledger.write(Cas(INTAKE, [((n,), {}, {"state": "delivered", "due_at": None})]))


async def test_a_page_takes_a_bounded_number_of_tasks(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "TASKS_A_PAGE", 5)
    for _ in range(4):
        await ledger.fan("abc")
    await ledger.work()
    await deliver(ledger)
    page = await ledger.stages.sweep_runs(ledger.space, Instant(START + DAY), None, 200)
    assert (page.runs, page.tasks, page.after is not None) == (1, 3, True)
    assert await ledger.sweep_runs(START + DAY) == Swept(runs=3, tasks=9)


# --- facts ------------------------------------------------------------------------------------------


async def test_a_swept_fact_keeps_its_dedupe_key(ledger: Ledger) -> None:
    """A webhook that is replayed after the horizon is still a repeat."""
    first = await ingest(ledger, "evt_1")
    await deliver(ledger)
    ledger.now += 90 * DAY
    assert await ledger.sweep_facts(ledger.now) == Swept(emptied=1)
    assert await ingest(ledger, "evt_1") == Ingested(first.id, duplicate=True)
    (row,) = await ledger.facts()
    assert (row["state"], row["body"], row["due_at"]) == ("swept", b"{}", None)
    assert not (await ingest(ledger, "evt_2")).duplicate
    assert (await ledger.sweep_facts(ledger.now)).emptied == 0


async def test_a_fact_without_a_key_or_a_run_goes_whole(ledger: Ledger) -> None:
    await keep(ledger)
    ledger.now += DAY
    young = await keep(ledger)
    assert await ledger.sweep_facts(ledger.now) == Swept(facts=1)
    assert [fact["n"] for fact in await ledger.facts()] == [young]


async def test_facts_that_wait_or_are_parked_stay(ledger: Ledger) -> None:
    """One is kept for a day to come, one for a person."""
    await keep(ledger, state="waiting", due_at=START + 900 * DAY)
    await keep(ledger, state="parked")
    assert await ledger.sweep_facts(START + 1_000 * DAY) == Swept()


async def test_a_fact_stays_while_a_run_of_it_is_not_settled_and_then_leaves_a_link(ledger: Ledger) -> None:
    fact = await keep(ledger)
    run = await ledger.fan("a", cause=f"fact:{fact}", fact=fact)
    assert await ledger.sweep_facts(START + DAY) == Swept()
    await ledger.work()
    assert await ledger.sweep_facts(START + DAY) == Swept(emptied=1)
    await deliver(ledger)
    assert [link.id for link in await ledger.explain(f"reflex_run_{run}")] == [f"reflex_run_{run}", f"fact_{fact}"]
    assert await ledger.sweep_runs(START + DAY) == Swept(runs=1, tasks=1, facts=1)
    assert [f["kind"] for f in await ledger.facts()] == ["run"]


async def test_an_emptied_fact_stays_for_another_run_of_it(ledger: Ledger) -> None:
    fact = await keep(ledger)
    await ledger.fan("a", cause=f"fact:{fact}", fact=fact)
    await ledger.work()
    ledger.now += DAY
    await ledger.fan("a", reflex="s", cause=f"fact:{fact}", fact=fact)
    await ledger.work()
    await deliver(ledger)
    await ledger.sweep_facts(START + 1)
    assert (await ledger.sweep_runs(ledger.now)).facts == 0
    assert (await ledger.sweep_runs(ledger.now + 1)).facts == 1


async def test_a_sweep_of_facts_goes_on_behind_those_that_stay(ledger: Ledger) -> None:
    for _ in range(4):
        fact = await keep(ledger)
        await ledger.fan("a", cause=f"fact:{fact}", fact=fact)
    for _ in range(5):
        await keep(ledger)
    assert await ledger.sweep_facts(START + DAY, limit=2) == Swept(facts=5)
    assert len(await ledger.facts()) == 4


async def test_the_depth_of_a_chain_outlives_the_run_it_came_through(ledger: Ledger) -> None:
    """Read back from a run that was swept it would begin again at nothing, and the ceiling with it."""
    await ledger.fan("a", depth=20)
    (task,) = (await ledger.claim()).run
    await ledger.write(Remove(REFLEX_RUN, where=(("n", ">", 0),)))
    await ledger.record(ledger.landing(task, None, Signal("s", 1)))
    assert [fact["depth"] for fact in await ledger.facts()] == [21]


async def test_a_swept_task_is_gone_for_a_retry(ledger: Ledger) -> None:
    ledger.policy = ledger.policy.__class__(retry_max=0)
    await ledger.fan("a")
    await ledger.work(ending=RAISED)
    await deliver(ledger)
    await ledger.sweep_runs(START + DAY)
    with pytest.raises(NotFound):
        await ledger.retry(1)
