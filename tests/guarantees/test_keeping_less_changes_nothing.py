"""Any order of folds, prunes, sweeps, evictions, restarts and crashes: the state of a host that keeps everything,
and for each repeat the first reply or AlreadyDone, never a second fold before its window is over.

`ONEFOLD_DEEP=n` runs n times as many orders.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from onefold import Decision, Module
from onefold.host.driver import BEAT_MS
from onefold.kernel.chain import Audit
from onefold.kernel.tables import TURN
from onefold.store.contract import Query
from onefold.terms.errors import AlreadyDone, KeyConflict
from onefold.terms.ids import ActorId
from onefold.testing import Stage, staged

DEEP = int(os.environ.get("ONEFOLD_DEEP", "1"))
EVERY = 4
WINDOW_MS = 3 * BEAT_MS
KEPT_MS = 2 * BEAT_MS
SHARED = Path("/dev/shm")  # noqa: S108 - a disk in memory


@dataclass(frozen=True)
class Add:
    id: str
    to: str
    amount: int


@dataclass(frozen=True)
class Added:
    amount: int


@dataclass(frozen=True)
class Whole:
    total: int


@dataclass(frozen=True)
class Total:
    total: int


@dataclass(frozen=True)
class Refusal:
    total: int


def decide(total: int, event: Add, now: datetime) -> Decision[Added | Whole, Total | Refusal]:
    if event.amount < 0:
        return Decision(reply=Refusal(total))
    return Decision(facts=[Added(event.amount)] * (1 + event.amount % 3), reply=Total(_after(total, event.amount)))


def _after(total: int, amount: int) -> int:
    return total + amount * (1 + amount % 3)


def evolve(total: int, fact: Added | Whole) -> int:
    return total + fact.amount if isinstance(fact, Added) else fact.total


def view(total: int) -> int:
    return total


def snapshot(total: int) -> Whole:
    return Whole(total)


def adding(window: bool) -> Module[Any, Any, Any, Any, Any]:
    return Module(
        "sum",
        initial=0,
        key=lambda event: event.to,
        decide=decide,
        evolve=evolve,
        view=view,
        snapshot=snapshot,
        snapshot_every=EVERY,
        ids_for=f"{WINDOW_MS} ms" if window else None,
    )


@dataclass
class Book:
    """What a host that keeps everything would hold of one actor."""

    total: int = 0
    first: dict[str, tuple[int, Any, int]] = field(default_factory=dict)  # id: content, first reply, when
    facts: list[int] = field(default_factory=list)

    def add(self, event: Add, now: int) -> Any:
        if event.amount < 0:
            reply: Any = Refusal(self.total)
        else:
            self.total = _after(self.total, event.amount)
            self.facts += [event.amount] * (1 + event.amount % 3)
            reply = Total(self.total)
        self.first[event.id] = (event.amount, reply, now)
        return reply


IDS = [f"e{n}" for n in range(8)]
AMOUNTS = (1, 2, 3, -1)
events = st.tuples(
    st.just("deliver"), st.sampled_from(IDS), st.sampled_from([*AMOUNTS, *AMOUNTS, 99]), st.integers(0, 1)
)
others = st.tuples(
    st.sampled_from(["prune", "prune", "sweep", "evict", "restart", "crash", "beat", "edge", "pass", "many"]),
    st.just(""),
    st.just(0),
    st.integers(0, 1),
)
plans = st.lists(events | events | others, min_size=1, max_size=40)


class Life:
    """One order of acts on a real host, beside the books."""

    def __init__(self, stage: Stage, module: Module[Any, Any, Any, Any, Any], window: bool) -> None:
        self.stage, self.module, self.window = stage, module, window
        self.books = {key: Book() for key in ("a", "b")}
        self.swept = 0  # replies from up to here may be gone
        self.fresh = 0

    async def act(self, what: str, id: str, amount: int, which: int) -> None:
        stage, key = self.stage, "ab"[which]
        match what:
            case "deliver":
                # The content of an id is its own; 99 is somebody else's under the same id.
                await self.deliver(key, Add(id, key, amount if amount == 99 else AMOUNTS[int(id[1:]) % 4]))
            case "many":
                self.fresh += 1
                await asyncio.gather(*(self.deliver(key, Add(f"n{self.fresh}-{n}", key, 1)) for n in range(6)))
            case "prune":
                await stage.host.prune(self.module, key, caller=stage.caller())
            case "sweep":
                self.swept = max(self.swept, stage.clock.now() - KEPT_MS)
                await stage.host.sweep(replies=KEPT_MS, caller=stage.caller())
            case "evict":
                stage.host._core.node.evict(ActorId("sum", None, key))
            case "restart":
                await stage.restart()
            case "crash":
                await stage.crash()
            case "beat":
                await stage.advance(f"{BEAT_MS} ms")
            case "edge" | "pass":
                await stage.close()
                stage.clock.step_to(stage.clock.now() + (1 if what == "edge" else WINDOW_MS - 1))
                await stage.open()
            case _:
                raise AssertionError(what)
        await self.check()

    async def deliver(self, key: str, event: Add) -> None:
        book, now = self.books[key], self.stage.clock.now()
        before = book.first.get(event.id)
        over = before is not None and self.window and now >= before[2] + WINDOW_MS
        expected = book.add(event, now) if before is None or over else before[1]
        try:
            reply = await self.stage.host.deliver(self.module, event, caller=self.stage.caller())
        except KeyConflict:
            assert before is not None
            assert not over
            assert before[0] != event.amount
        except AlreadyDone:
            assert before is not None
            assert not over
            assert before[0] == event.amount
            assert before[2] <= self.swept
        else:
            assert reply == expected
            assert before is None or over or (before[0] == event.amount and before[2] > self.swept)

    async def check(self) -> None:
        for key, book in self.books.items():
            assert await self.stage.host.read(self.module, key, caller=self.stage.caller()) == book.total
            history = await self.stage.host.history(self.module, key, caller=self.stage.caller())
            assert [row.seq for row in history] == list(range(history.begins, history.begins + len(history)))
            assert history.begins == 1 or isinstance(history[0].fact, Whole)
            kept = [row.fact.amount for row in history if isinstance(row.fact, Added)]
            assert kept == book.facts[len(book.facts) - len(kept) :]
            if history.begins == 1:
                assert len(kept) == len(book.facts)


async def live(plan: Sequence[tuple[str, str, int, int]], store: str | Path, window: bool) -> None:
    module = adding(window)
    async with staged(module, store=store) as stage:
        life = Life(stage, module, window)
        for act in plan:
            await life.act(*act)
        await stage.crash()
        await life.check()
        (turns,) = await (await stage.host.space("main")).look(Query(TURN, order=("n",)))
        audit = Audit()
        assert [found for row in turns if (found := audit.read(row)) is not None] == []
        assert window or len(turns) >= sum(len(book.first) for book in life.books.values())


@pytest.mark.parametrize("window", [False, True])
@settings(max_examples=40 * DEEP, deadline=None, suppress_health_check=list(HealthCheck))
@given(plan=plans)
def test_what_is_kept_for_a_time_only_changes_no_answer_in_memory(
    window: bool, plan: Sequence[tuple[str, str, int, int]]
) -> None:
    asyncio.run(live(plan, "memory:", window))
    assert plan


@pytest.mark.parametrize("window", [False, True])
@settings(max_examples=12 * DEEP, deadline=None, suppress_health_check=list(HealthCheck))
@given(plan=plans)
def test_what_is_kept_for_a_time_only_changes_no_answer_on_sqlite(
    window: bool, plan: Sequence[tuple[str, str, int, int]]
) -> None:
    with tempfile.TemporaryDirectory(dir=SHARED if SHARED.is_dir() else None) as folder:
        asyncio.run(live(plan, Path(folder), window))
    assert plan
