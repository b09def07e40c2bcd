"""Sequences of everything that can happen to a ledger, and what must be true of its rows after each step.

Facts in, advances whose effects return, raise, emit or never answer, lives that end at some statement, a second
engine, late answers, leases that lapse, retries, sweeps. At the end faults stop, and all of it drains.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections import Counter, deque
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from onefold.reflex import claim, record, retention
from onefold.reflex.acting import committed
from onefold.reflex.seams import Task
from onefold.reflex.tables import INTAKE, REFLEX_RUN, TASK
from onefold.reflex.words import OnRun, OnSignal, Selection, Signal
from onefold.store.contract import Last, Query
from onefold.terms.errors import BadArguments
from onefold.terms.instant import Instant, down
from onefold.testing.store_suite.ground import Disk, Kill, quietly, turns
from tests.reflex.ground import Act, At, reflex
from tests.reflex.stores import OPENINGS

EXAMPLES = 300 if os.environ.get("ONEFOLD_DEEP") else 8
STEPS = 30
DAY = 86_400_000
EACH = Selection({"from": "three"}, "each", "id")
UNITS = ("u1", "u2", "u3")
NAMES = ("any", "serial")
ENDED = ("done", "failed", "parked")
REFLEXES = [
    reflex("any", OnSignal("any"), select=EACH, retry_max=0),
    reflex("serial", OnSignal("serial"), select=EACH, order="serial", retry_max=1, backoff="fixed", base_ms=1_000),
    reflex("echo", OnSignal("emitted")),
    reflex("digest", OnRun("any"), effect="digest"),
]


class Ledger(RuleBasedStateMachine):
    store = "memory"

    @initialize()
    def open(self) -> None:
        self.loop = asyncio.new_event_loop()
        memory = Path("/dev/shm")  # noqa: S108 - many short-lived stores; nothing is asked of the disk itself
        self.folder = tempfile.mkdtemp(dir=memory if memory.is_dir() else None)
        self.ends: deque[str] = deque()
        self.started: Counter[str] = Counter()  # effects begun, by task key
        self.done: dict[int, bytes | None] = {}  # outputs of tasks that are done, by number
        self.announced: dict[str, set[int]] = {}  # numbers of run facts, by cause
        self.keys: dict[str, str] = {}  # ids of facts, by dedupe key
        self.retried: set[int] = set()
        self.answers: list[asyncio.Event] = []
        self.hanging: list[asyncio.Task[Any]] = []
        self.run(self._open())

    async def _open(self) -> None:
        opening = OPENINGS[self.store](Path(self.folder))
        self.at = At(lambda failpoint: opening(failpoint=failpoint))
        self.at.rows.tables["three"] = [{"id": unit} for unit in UNITS]
        self.at.acts = {"act": Act(does=self._act), "digest": Act("digest")}
        self.engines = [await self.at.engine() for _ in range(2)]
        await self.at.load(self.engines[0], REFLEXES)
        await self.engines[1].reload()

    def run(self, act: Any) -> Any:
        return self.loop.run_until_complete(act)

    async def _act(self, task: Task, input: Any) -> Any:
        """End as the test says next; of itself, well."""
        self.started[task.key] += 1
        end = self.ends.popleft() if self.ends else "return"
        if "emit" in end:
            task.emit(Signal("emitted", None, dedupe_key=None if "raise" in end else task.key))
        if "hang" in end:
            self.answers.append(asyncio.Event())
            await self.answers[-1].wait()
        if "raise" in end:
            raise RuntimeError("as the test says")
        return {"ended": end}

    # --- what happens ------------------------------------------------------------------------

    @rule(name=st.sampled_from(NAMES), key=st.sampled_from([None, "k1", "k2"]))
    def ingest(self, name: str, key: str | None) -> None:
        fact = Signal(name, None, dedupe_key=key)
        kept = self.run(self.engines[0].ingest(fact, now=self.at.now))
        if key is not None:
            assert kept.duplicate == (f"{name} {key}" in self.keys)
            assert kept.id == self.keys.setdefault(f"{name} {key}", kept.id)

    @rule(
        which=st.integers(0, 1),
        limit=st.integers(1, 6),
        ends=st.lists(st.sampled_from(["return", "raise", "emit", "emit raise", "raise", "emit hang"]), max_size=4),
    )
    def advance(self, which: int, limit: int, ends: list[str]) -> None:
        """One advance. Effects that hang leave it under way, while others go on."""
        self.ends = deque(ends)

        async def some() -> None:
            advancing = asyncio.create_task(self.engines[which].advance(self.at.now, limit))
            for _ in range(40):
                await turns()
                if advancing.done():
                    break
                if self.answers:
                    await turns(100)
                    break
            if advancing.done():
                advancing.result()
            else:
                self.hanging.append(advancing)

        self.run(some())
        self.ends.clear()

    @rule()
    def answer(self) -> None:
        """What hung answers, late or not."""

        async def answered() -> None:
            for event in self.answers:
                event.set()
            self.answers.clear()
            for advancing in self.hanging:
                await advancing
            self.hanging.clear()

        self.run(answered())

    @rule(
        name=st.sampled_from(NAMES),
        ends=st.lists(st.sampled_from(["raise", "raise", "return"]), min_size=1, max_size=3),
    )
    def some_fail(self, name: str, ends: list[str]) -> None:
        self.ingest(name, None)
        self.advance(0, 6, ends)

    @rule(name=st.sampled_from(NAMES), which=st.integers(0, 1), end=st.sampled_from(["return", "raise", "emit"]))
    def an_answer_comes_late(self, name: str, which: int, end: str) -> None:
        """One engine falls silent with what it claimed, the other takes it over, and then the first one answers."""
        self.ingest(name, None)
        self.advance(which, 2, ["emit hang", "hang"])
        self.time_passes(61_000)
        self.advance(1 - which, 1, [end])
        self.answer()

    @rule(ms=st.sampled_from([1, 1_000, 61_000, 200_000]))
    def time_passes(self, ms: int) -> None:
        self.at.later(milliseconds=ms)

    @rule(
        name=st.sampled_from(NAMES),
        point=st.sampled_from(["statement", "statement", "before-commit", "after-commit"]),
        hit=st.integers(1, 40),
    )
    def the_process_ends(self, name: str, point: str, hit: int) -> None:
        """In the midst of an advance, at some statement; with it ends all that hung."""
        self.ingest(name, None)
        hit = hit if point == "statement" else hit % 5 + 1

        async def crash() -> None:
            await self._abandon()
            disk = Disk()
            await self.at.reopen(disk)
            engine = await self.at.engine()
            await engine.reload()
            disk.kill_at(point, hit)
            async with quietly():
                advancing = asyncio.create_task(engine.advance(self.at.now))
                for _ in range(100):
                    await turns()
                    if advancing.done() or disk.struck:
                        break
                advancing.cancel()
                with suppress(asyncio.CancelledError, Kill):
                    await advancing
            await self.at.reopen()
            self.engines = [await self.at.engine() for _ in range(2)]
            for each in self.engines:
                await each.reload()

        self.run(crash())

    @rule(choices=st.lists(st.integers(0, 20), min_size=1, max_size=3))
    def retry(self, choices: list[int]) -> None:
        """A person goes through what failed; where nothing has, through whatever there is."""
        for choice in choices:
            tasks = self.run(self.at.tasks())
            some = [task for task in tasks if task["state"] in ("failed", "parked")] or tasks
            with suppress(BadArguments):
                n = some[choice % len(some)]["n"] if some else 0
                if some and self.run(self._commit(record.retrying(n, Instant(down(self.at.now))))):
                    self.retried.add(n)

    @rule(ago=st.sampled_from([0, 1_000, DAY]), what=st.sampled_from(["runs", "facts"]))
    def sweep(self, ago: int, what: str) -> None:
        page = retention.sweeping_runs if what == "runs" else retention.sweeping_facts
        self.run(self._commit(page(Instant(down(self.at.now) - ago), None, 3)))

    async def _commit(self, body: Any) -> Any:
        return await committed(await self.at.space(), body)

    # --- what must be true -------------------------------------------------------------------

    @invariant()
    def the_rows_agree(self) -> None:
        runs, tasks, facts = self.run(self._commit(_rows))
        by_run: dict[int, list[dict[str, Any]]] = {run["n"]: [] for run in runs}
        for task in tasks:
            by_run[task["run"]].append(task)  # a task is never there without its run
        for run in runs:
            self._counts(run, Counter(task["state"] for task in by_run[run["n"]]))
        self._serial([task for task in tasks if task["reflex"] == "serial"])
        self._done(tasks)
        self._announced(runs, facts)

    def _counts(self, run: dict[str, Any], states: Counter[str]) -> None:
        assert run["done"] == states["done"]
        assert run["failed"] == states["failed"] + states["parked"]
        if run["state"] != "pending":
            assert run["total"] == states.total()
            assert (run["state"] == "settled") == (run["done"] + run["failed"] == run["total"])
        assert (run["open"] is None) == (run["state"] == "settled")

    def _serial(self, tasks: list[dict[str, Any]]) -> None:
        holders = [task for task in tasks if task["baton"]]
        queued = [task for task in tasks if task["state"] == "queued"]
        assert len(holders) == bool([task for task in tasks if task["state"] not in ENDED])
        assert all(task["state"] in ("ready", "claimed") for task in holders)
        assert {task["queue"] for task in queued} <= {"serial"}
        first = [task["n"] for task in holders if task["n"] not in self.retried]
        assert not [t for t in queued if first and t["n"] < first[0] and t["n"] not in self.retried], "out of order"

    def _done(self, tasks: list[dict[str, Any]]) -> None:
        """What is done was begun, and never becomes undone or done otherwise."""
        for task in tasks:
            if task["n"] in self.done:
                assert (task["state"], task["output"]) == ("done", self.done[task["n"]])
            elif task["state"] == "done":
                self.done[task["n"]] = task["output"]

    def _announced(self, runs: list[dict[str, Any]], facts: list[dict[str, Any]]) -> None:
        for fact in facts:
            if fact["kind"] == "run":
                self.announced.setdefault(fact["cause"], set()).add(fact["n"])
        assert all(len(numbers) == 1 for numbers in self.announced.values())
        for run in runs:
            assert (f"run:{run['n']}" in self.announced) == bool(run["drained"])
            assert run["drained"] or run["state"] != "settled"

    # --- the end -----------------------------------------------------------------------------

    def teardown(self) -> None:
        if hasattr(self, "at"):
            try:
                self.run(self._drained())
                self.the_rows_agree()
            finally:
                self.run(self._abandon())
                self.at.world.abandon()
                self.loop.close()
                shutil.rmtree(self.folder)

    async def _drained(self) -> None:
        """Faults have stopped: what is left comes to its end by itself."""
        await self._abandon()
        for _ in range(40):
            await self.at.settle(self.engines[0])
            if await self.engines[0].next_due(self.at.now) is None:
                break
            self.at.later(seconds=200)
        assert {run["state"] for run in await self.at.runs()} <= {"settled"}
        assert {task["state"] for task in await self.at.tasks()} <= set(ENDED)
        assert {fact["state"] for fact in await self.at.facts()} <= {"delivered", "swept"}

    async def _abandon(self) -> None:
        for advancing in self.hanging:
            advancing.cancel()
        await asyncio.gather(*self.hanging, return_exceptions=True)
        self.hanging.clear()
        self.answers.clear()


def _rows() -> Any:
    """Runs, tasks and facts of one moment: whoever changes them together locks their runs first."""
    tables = (REFLEX_RUN, TASK, INTAKE)
    runs, tasks, facts = yield (
        Query(REFLEX_RUN, order=("n",), lock="update"),
        *(Query(t, order=("n",)) for t in tables[1:]),
    )
    return Last(
        (),
        [
            [dict(zip(table.at, row, strict=True)) for row in found]
            for table, found in zip(tables, (runs, tasks, facts), strict=True)
        ],
    )


class OnSqlite(Ledger):
    store = "sqlite"


class OnPostgres(Ledger):
    store = "postgres"


MACHINES: dict[str, type[Ledger]] = {"memory": Ledger, "sqlite": OnSqlite, "postgres": OnPostgres}


@pytest.mark.parametrize("store", MACHINES)
def test_the_ledger_is_true_after_whatever_happened(store: str) -> None:
    few = max(1, EXAMPLES // 8) if store == "postgres" else EXAMPLES
    run_state_machine_as_test(MACHINES[store], settings=settings(max_examples=few, stateful_step_count=STEPS))


# --- its teeth ----------------------------------------------------------------------------------


def _announces_again(monkeypatch: pytest.MonkeyPatch) -> None:
    sound = record._settle

    def announced(book: Any, run: Any) -> None:
        run["drained"] = 0
        sound(book, run)

    monkeypatch.setattr(record, "_settle", announced)


def _takes_any_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    sound = record._land

    def land(book: Any, landing: Any) -> None:
        if landing.task in book.tasks:
            book.tasks[landing.task].update(token=landing.token, state="claimed")
        sound(book, landing)

    monkeypatch.setattr(record, "_land", land)


def _loses_the_baton(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record, "_handed", lambda task, now: task)


def _keeps_the_failure_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    sound = record._reopened

    def reopened(task: Any, runs: Any, *rest: Any) -> Any:
        place = REFLEX_RUN.at["failed"]
        counted = [
            (*run[:place], run[place] + (run[REFLEX_RUN.at["state"]] == "fanned"), *run[place + 1 :]) for run in runs
        ]
        return sound(task, counted, *rest)

    monkeypatch.setattr(record, "_reopened", reopened)


def _has_no_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    sound = claim._claim
    monkeypatch.setattr(
        claim, "_claim", lambda *given: replace(sound(*given), set={**sound(*given).set, "ready_at": None})
    )


FAULTS = (_announces_again, _takes_any_answer, _loses_the_baton, _keeps_the_failure_counted, _has_no_lease)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__.strip("_"))
def test_the_model_finds_a_ledger_that(fault: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    fault(monkeypatch)
    bounded = settings(
        max_examples=60, stateful_step_count=STEPS, derandomize=True, database=None, phases=[Phase.generate]
    )
    with pytest.raises((AssertionError, BaseExceptionGroup)):
        run_state_machine_as_test(Ledger, settings=bounded)
