"""Random batches of random bodies give the same answers and leave the same rows on SQLite as in memory,
through clean closings and kills, with lookups that lag by a few rows."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from onefold.store.contract import (
    Answer,
    Append,
    Body,
    Cas,
    Claim,
    DbNow,
    Done,
    Each,
    Inc,
    Last,
    Outcome,
    Put,
    Query,
    Refusal,
    Refused,
    Remove,
    Space,
    Table,
    Verb,
)
from onefold.store.memory import MemoryWorld
from onefold.store.sqlite import SqliteWorld, chain
from onefold.terms.errors import Contended
from tests.store.tables import SCHEMA, SENT, TASK, TURN

ACTORS = st.integers(1, 3)
EVENTS = st.sampled_from(["a", "b", "c", "d", "e"])
SMALL = st.integers(0, 6)
TEXTS = st.sampled_from(["x", "y", "é", ""])

turn_rows = st.tuples(st.integers(1, 40), ACTORS, st.none(), EVENTS, st.none() | st.binary(max_size=3))
task_rows = st.tuples(SMALL, TEXTS, st.none() | TEXTS, st.none() | SMALL, st.none() | SMALL)
sent_rows = st.tuples(ACTORS, EVENTS, st.binary(max_size=2))
ROWS = {TURN.name: turn_rows, TASK.name: task_rows, SENT.name: sent_rows}
CELLS = {"int": SMALL, "text": TEXTS | EVENTS, "bytes": st.binary(max_size=2)}


def cells(table: Table, column: str) -> st.SearchStrategy[Any]:
    if column == "n":
        return st.integers(1, 40)
    return ACTORS if column == "actor" else CELLS[table.columns[table.at[column]].kind]


@st.composite
def conditions(draw: Any, table: Table) -> tuple[Any, ...]:
    out = []
    for column in draw(st.lists(st.sampled_from([c.name for c in table.columns]), max_size=2)):
        op = draw(st.sampled_from(["=", "!=", "<", "<=", ">", ">=", "in", "null"]))
        if op == "in":
            value: Any = tuple(draw(st.lists(cells(table, column), max_size=3)))
        else:
            value = draw(st.booleans()) if op == "null" else draw(cells(table, column))
        out.append((column, op, value))
    return tuple(out)


@st.composite
def queries(draw: Any, table: Table) -> Query:
    order: tuple[str, ...] = ()
    each, limit, on, keys = None, None, (), None
    if draw(st.booleans()):
        first = draw(st.sampled_from([c.name for c in table.columns]))
        order = tuple(draw(st.sampled_from(["", "-"])) + c for c in dict.fromkeys((first, *table.key)))
        limit = draw(st.none() | st.integers(0, 3))
        if draw(st.booleans()):
            column = draw(st.sampled_from([c.name for c in table.columns]))
            each = Each(column, draw(st.lists(cells(table, column), max_size=3)), draw(st.integers(1, 2)))
    if each is None and draw(st.booleans()):
        on = draw(st.sampled_from([table.key, *table.unique, *([("actor",)] if table is TURN else [])]))
        keys = draw(st.lists(st.tuples(*(cells(table, c) for c in on)), max_size=3))
    return Query(table, draw(conditions(table)), on, keys, order, limit, each)


def values(table: Table) -> st.SearchStrategy[dict[str, Any]]:
    free = {
        TURN.name: ["facts", "facts", "event"],
        SENT.name: ["digest"],
        TASK.name: ["baton", "ready", "tries", "kind"],
    }[table.name]

    def value(column: str) -> st.SearchStrategy[Any]:
        plain = cells(table, column)
        declared = table.columns[table.at[column]]
        if declared.kind == "int":
            plain = plain | st.builds(Inc, st.integers(-1, 2)) | st.builds(DbNow, SMALL)
        return plain | st.none() if declared.null else plain

    return st.lists(st.sampled_from(free), min_size=1, max_size=2, unique=True).flatmap(
        lambda cs: st.fixed_dictionaries({c: value(c) for c in cs})
    )


@st.composite
def writes(draw: Any, table: Table) -> Verb:
    rows = ROWS[table.name]
    keys = st.tuples(*(cells(table, c) for c in table.key))
    kind = draw(st.sampled_from(["append", "append", "append", "put", "cas", "remove", "claim"]))
    if kind == "append":
        return Append(table, draw(st.lists(rows, max_size=4)), met=draw(st.sampled_from(["keep", "again"])))
    if kind == "put":
        return Put(table, draw(st.lists(rows, max_size=2)))
    if kind == "cas":
        column = draw(st.sampled_from([c.name for c in table.columns]))
        return Cas(table, [(draw(keys), {column: draw(cells(table, column))}, draw(values(table)))])
    if kind == "claim":
        order = tuple(dict.fromkeys((draw(st.sampled_from([c.name for c in table.columns])), *table.key)))
        return Claim(table, draw(conditions(table)), order, draw(st.integers(0, 2)), draw(values(table)))
    if draw(st.booleans()):
        return Remove(table, keys=draw(st.lists(keys, max_size=2)))
    return Remove(table, where=draw(conditions(table)))


verbs = st.sampled_from([TURN, TURN, TASK, SENT]).flatmap(lambda t: writes(t) | queries(t))
lasts = st.sampled_from([TURN, TURN, TASK, SENT]).flatmap(writes).filter(lambda v: not isinstance(v, Claim))
scripts = st.tuples(st.lists(st.lists(verbs, max_size=3), max_size=2), st.lists(lasts, max_size=3), st.booleans())
batches = st.lists(scripts, min_size=1, max_size=4)
steps = st.lists(batches | st.sampled_from(["close", "kill"]), min_size=1, max_size=8)


# Kills here are of a process, not of a machine, so that a disk in memory tells the same and sooner.
SHARED = Path("/dev") / "shm"
MEMORY_DISK = str(SHARED) if SHARED.is_dir() else None


class Script:
    """A party whose body is a fixed script; keeps what it was answered and told."""

    def __init__(self, questions: Sequence[Sequence[Verb]], last: Sequence[Any], refuse: bool, ever: set[int]) -> None:
        self.ever = ever
        self.questions, self.last, self.refuse = questions, last, refuse
        self.heard: list[Any] = []
        self.outcome: asyncio.Future[Outcome[Any]] = asyncio.get_running_loop().create_future()

    def ask(self) -> tuple[Query, ...]:
        return tuple(v for q in self.questions for v in q if isinstance(v, Query))

    def body(self, answers: tuple[Answer, ...], /) -> Body[Any]:
        self.asked = [normal(v, a) for v, a in zip(self.ask(), answers, strict=True)]

        def run() -> Generator[tuple[Verb, ...], tuple[Answer, ...], Last[Any]]:
            self.heard = []
            for question in self.questions:
                for verb in question:
                    (rows,) = yield (Query(TURN),)
                    (answer,) = yield (linked(verb, rows, self.ever),)
                    self.heard.append(normal(verb, answer))
            if self.refuse and len(self.questions) > 1:
                raise Refusal(Contended("x"))
            written = []
            (rows,) = yield (Query(TURN),)
            for verb in self.last:
                written.append(linked(verb, rows, self.ever))
            return Last(tuple(written), None)

        return run

    def landed(self, outcome: Outcome[Any], /) -> None:
        self.outcome.set_result(outcome)

    def told(self) -> Any:
        outcome = self.outcome.result()
        if isinstance(outcome, Done):
            return (
                "done",
                [normal(v, a) for v, a in zip(self.last, outcome.answers, strict=True)],
                self.heard,
                self.asked,
            )
        assert isinstance(outcome, Refused), outcome
        return ("refused", type(outcome.error).__name__, self.asked)


def linked(verb: Any, there: list[Any], ever: set[int]) -> Any:
    """New turns numbered behind their actor's newest and linked to it, as a room that holds the turn does.

    A number is never used twice, though often out of order between actors. `ever`: all used so far.
    `there`: the turns that are there, to which the new ones are added.
    """
    if verb.table is not TURN or not isinstance(verb, Append | Put):
        return verb
    there.sort(key=lambda r: r[0])
    out = []
    rows: Sequence[Any] = verb.rows
    for n, actor, _, event, facts in rows:
        held = [r for r in there if r[0] == n or (r[1], r[3]) == (actor, event)]
        if held:
            out.append((n, *held[0][1:4], facts) if held[0][0] == n else (n, actor, None, event, facts))
            continue
        heads: list[Any] = [r[0] for r in there if r[1] == actor]
        head: Any = max(heads) if heads else None
        number = max(n, 1 if head is None else head + 1)
        while number in ever:
            number += 1
        ever.add(number)
        out.append((number, actor, head, event, facts))
        there.append(out[-1])
    return replace(verb, rows=out)


def normal(verb: Verb, answer: Any) -> Any:
    """Answers whose order is not promised, put in one."""
    if isinstance(verb, Query) and not verb.order:
        return sorted(answer, key=repr)
    return list(answer) if isinstance(answer, list) else answer


async def run_batch(space: Space, batch: Any, ever: set[int]) -> list[Any]:
    parties = [Script(script[0], script[1], script[2], ever) for script in batch]
    for party in parties:
        space.join(party)
    await asyncio.gather(*(p.outcome for p in parties))
    rows = await space.look(*(Query(t) for t in (TURN, TASK, SENT)))
    return [p.told() for p in parties] + [sorted(r, key=repr) for r in rows]


async def compare(plan: Sequence[Any], folder: str, company: Sequence[bool]) -> None:
    def clock() -> int:
        return 100

    used: tuple[set[int], set[int]] = (set(), set())
    memory = MemoryWorld(clock=clock)
    lives = cycle(company)
    world = SqliteWorld(folder, clock=clock, shared=next(lives))
    try:
        for step in plan:
            one, two = await memory.open("main", [SCHEMA]), await world.open("main", [SCHEMA])
            if isinstance(step, str):
                await memory.close()
                if step == "kill":
                    world.abandon()
                else:
                    await world.close()
                world = SqliteWorld(folder, clock=clock, shared=next(lives))
                continue
            assert await run_batch(two, step, used[1]) == await run_batch(one, step, used[0])
    finally:
        world.abandon()


@pytest.fixture
def short_generations(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    monkeypatch.setattr(chain, "GENERATION", 4)
    monkeypatch.setattr(chain, "LUMP", 3)
    return lambda: None


@pytest.mark.parametrize("company", [[False], [True], [False, True]], ids=["alone", "shared", "in turn"])
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(plan=steps)
def test_sqlite_answers_as_memory_does(
    short_generations: Callable[[], None], company: Sequence[bool], plan: Sequence[Any]
) -> None:
    with tempfile.TemporaryDirectory(dir=MEMORY_DISK) as folder:
        asyncio.run(compare(plan, folder, company))
