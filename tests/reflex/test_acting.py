"""Claimed tasks: at once and bounded, each against its time, each written down as soon as it ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from onefold.reflex import advancing
from onefold.reflex.engine import Engine
from onefold.reflex.tables import REFLEX_TEXT
from onefold.reflex.words import OnSignal, Selection, Signal
from onefold.store.contract import Last, Put, Refused
from onefold.terms.errors import OnefoldError, StoreUnavailable
from onefold.testing.store_suite.ground import turns
from tests.reflex.ground import EVERY_STORE, Act, At, ground, reflex, until

PING = OnSignal("ping")
EACH = Selection({"from": "due"}, "each", "id")


@pytest.fixture(params=EVERY_STORE)
async def at(request: pytest.FixtureRequest) -> AsyncIterator[At]:
    async with ground(request.param) as found:
        yield found


async def fan_out(at: At, count: int, *, ids: Any = None, **given: Any) -> Engine:
    """An engine with that many tasks to be done, one advance away."""
    parts = {name: given.pop(name) for name in ("effects", "transform") if name in given}
    engine = await at.engine(**parts)
    at.rows.tables["due"] = [{"id": n} for n in range(count)]
    await at.load(engine, [reflex("a", PING, select=EACH, input={"$": "row.id"}, **given)])
    await at.signal(engine)
    return engine


async def states(at: At) -> list[str]:
    return [task["state"] for task in await at.tasks()]


# --- at once ----------------------------------------------------------------------------------------------------


async def test_tasks_run_at_once_and_no_more_than_the_limit(at: At) -> None:
    under_way, most = set[int](), []

    async def does(task: Any, input: int) -> None:
        under_way.add(input)
        most.append(len(under_way))
        await turns()
        under_way.discard(input)

    at.act.does = does
    engine = await fan_out(at, 10)
    await asyncio.gather(engine.advance(at.now, limit=4), engine.advance(at.now, limit=4))
    assert max(most) == 4
    for _ in range(3):
        await engine.advance(at.now, limit=4)
    assert await states(at) == ["done"] * 10
    assert sorted(at.act.inputs) == list(range(10))


async def test_each_is_written_down_as_soon_as_it_ends(at: At) -> None:
    let = asyncio.Event()

    async def does(task: Any, input: int) -> None:
        if input == 0:
            await let.wait()

    at.act.does = does
    engine = await fan_out(at, 5)
    advance = asyncio.create_task(engine.advance(at.now))

    async def four_are_done() -> bool:
        return [run["done"] for run in await at.runs()] == [4]

    try:
        await until(four_are_done)
        assert await states(at) == ["claimed", "done", "done", "done", "done"]
    finally:
        let.set()
    assert (await advance).executed == 5
    assert await states(at) == ["done"] * 5


async def test_neighbours_that_end_together_share_a_commit(at: At) -> None:
    engine = await fan_out(at, 100)
    commits: list[Any] = []
    parts = await engine._opened()
    transact = parts.space.transact

    async def counted(body: Any) -> Any:
        commits.append(body.__qualname__.split(".")[0])
        return await transact(body)

    parts.space.transact = counted  # type: ignore[method-assign]
    await engine.advance(at.now)
    assert commits == ["matching", "fanning", "claiming", "recording"]
    assert await states(at) == ["done"] * 100


async def test_one_that_fails_takes_no_neighbour_along(at: At) -> None:
    def does(task: Any, input: int) -> str:
        if input == 237:
            raise ValueError("no such member")
        return "sent"

    at.act.does = does
    engine = await fan_out(at, 500, retry_max=0)
    await at.settle(engine)
    assert [(run["done"], run["failed"]) for run in await at.runs()] == [(499, 1)]
    (failed,) = await at.tasks(state="failed")
    assert failed["unit"] == "237"
    assert failed["error"].startswith("ValueError: no such member")


async def test_an_advance_that_selected_for_long_claims_nothing_by_its_old_now(
    at: At, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lease began before the selection did, and lapsed while the effect ran: it ran twice."""
    engine = await fan_out(at, 1)
    monkeypatch.setattr(advancing, "LATE_S", 0.0)
    report = await engine.advance(at.now)
    assert (report.moved, report.executed, await states(at)) == (True, 0, ["ready"])
    monkeypatch.undo()
    assert (await engine.advance(at.later(seconds=50))).executed == 1
    assert [task.now for task in at.act.tasks] == [at.now]


# --- against its time ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stubborn", [False, True], ids=["cancels", "does not let itself be cancelled"])
async def test_an_effect_past_its_time_holds_nobody_up(at: At, stubborn: bool) -> None:
    let, ended = asyncio.Event(), []

    async def does(task: Any, input: int) -> str:
        try:
            await let.wait()
        except asyncio.CancelledError:
            if not stubborn:
                raise
            await let.wait()
        ended.append(task.attempt)
        with pytest.raises(OnefoldError):
            task.emit(Signal("late", {}))
        return "too late"

    at.act.does = does
    engine = await fan_out(at, 1, timeout_ms=5, base_ms=1_000)
    await engine.advance(at.now)
    (task,) = await at.tasks()
    assert (task["state"], task["attempt"], task["output"]) == ("ready", 1, None)
    assert task["error"] == "It did not answer within 0.005 s. Whether it took effect is not known."
    assert await engine.next_due(at.now) == at.now + timedelta(seconds=1)
    let.set()
    await turns()
    assert len(ended) == stubborn
    assert await at.facts(subject="late") == []
    assert (await at.tasks())[0] == task


async def test_an_effect_that_cancels_itself_has_failed(at: At) -> None:
    async def does(task: Any, input: int) -> None:
        raise asyncio.CancelledError

    at.act.does = does
    engine = await fan_out(at, 2, retry_max=0)
    await at.settle(engine)
    assert await states(at) == ["failed"] * 2


async def test_what_is_no_exception_fails_its_own_task_only(at: At) -> None:
    class Odd(BaseException):
        pass

    def does(task: Any, input: int) -> int:
        if input:
            raise Odd("odd")
        return input

    at.act.does = does
    engine = await fan_out(at, 2, retry_max=0)
    await at.settle(engine)
    assert await states(at) == ["done", "failed"]


async def test_an_advance_that_is_cut_off_leaves_its_tasks_to_lapse(at: At) -> None:
    async def hangs(task: Any, input: int) -> None:
        await asyncio.Event().wait()

    at.act.does = hangs
    engine = await fan_out(at, 1)
    advance = asyncio.create_task(engine.advance(at.now))

    async def began() -> bool:
        return bool(at.act.inputs)

    await until(began)
    advance.cancel()
    await asyncio.gather(advance, return_exceptions=True)
    assert await states(at) == ["claimed"]
    assert not (await engine.advance(at.now)).moved
    due = await engine.next_due(at.now)
    assert due == at.now + timedelta(minutes=1)
    at.act.does = None
    await at.settle(engine, due)
    assert [(task["state"], task["attempt"]) for task in await at.tasks()] == [("done", 2)]


# --- templates ----------------------------------------------------------------------------------------------------


async def test_an_input_that_cannot_be_made_fails_its_attempt_and_says_where(at: At) -> None:
    engine = await at.engine()
    await at.load(engine, [reflex("a", PING, input={"$": "row.id"}, retry_max=0)])
    await at.signal(engine)
    await at.settle(engine)
    (task,) = await at.tasks()
    assert task["state"] == "failed"
    assert "row.id: there is nothing there" in task["error"]
    assert at.act.inputs == []


async def test_an_input_sees_the_row_the_cause_the_params_and_now(at: At) -> None:
    engine = await at.engine()
    whole = {name: {"$": name} for name in ("row", "fact", "params", "now")}
    clock = {"every": "day", "at": "03:00", "tz": "UTC"}
    await at.load(engine, [
        reflex("a", PING, select=EACH, input=whole, params={"n": 1}),
        reflex("b", clock, select=Selection({"from": "due"}, "batch"), input={"o": {"$": "occurrence"}, "r": {"$": "rows"}}),
    ])  # fmt: skip
    at.rows.tables["due"] = [{"id": 7}]
    await at.signal(engine, payload="x")
    await at.settle(engine)
    await at.settle(engine, at.now + timedelta(hours=3))
    first, second = at.act.inputs
    assert first["row"] == {"id": 7}
    assert first["fact"]["payload"] == "x"
    assert (first["params"], first["now"]) == ({"n": 1}, "2026-03-01T00:00:00Z")
    assert second == {"o": {"key": "2026-03-01", "at": "2026-03-01T03:00:00Z"}, "r": [{"id": 7}]}


# --- a store that fails -------------------------------------------------------------------------------------------


async def test_an_answer_that_could_not_be_written_is_written_later_and_not_asked_for_again(at: At) -> None:
    """A full disk for a moment was a second charge."""
    engine = await fan_out(at, 3)
    parts = await engine._opened()
    transact = parts.space.transact

    async def fails(body: Any) -> Any:
        if "recording" in body.__qualname__:
            return Refused(StoreUnavailable("main", "the disk is full"))
        return await transact(body)

    parts.space.transact = fails  # type: ignore[method-assign]
    with pytest.raises(StoreUnavailable):
        await engine.advance(at.now)
    assert await states(at) == ["claimed"] * 3
    with pytest.raises(StoreUnavailable):
        await engine.advance(at.now)
    parts.space.transact = transact  # type: ignore[method-assign]
    await at.settle(engine)
    assert await states(at) == ["done"] * 3
    assert len(at.act.inputs) == 3


async def test_an_answer_kept_too_long_is_dropped_for_the_one_that_took_over(at: At) -> None:
    engine = await fan_out(at, 1)
    parts = await engine._opened()
    transact = parts.space.transact

    async def fails(body: Any) -> Any:
        return Refused(StoreUnavailable("main", "gone")) if "recording" in body.__qualname__ else await transact(body)

    parts.space.transact = fails  # type: ignore[method-assign]
    with pytest.raises(StoreUnavailable):
        await engine.advance(at.now)
    other = await at.engine()
    parts.space.transact = transact  # type: ignore[method-assign]
    await at.settle(other, at.now + timedelta(minutes=2))
    report = await engine.advance(at.now)
    assert report.events == ("task_1 answered too late: it is somebody else's by now",)
    assert [run["done"] for run in await at.runs()] == [1]


# --- other code -----------------------------------------------------------------------------------------------------


async def test_an_engine_leaves_tasks_of_effects_it_does_not_know_alone(at: At) -> None:
    """A node that lacked one burnt their claims."""
    engine = await fan_out(at, 2, effects={"other": Act("other")})
    await at.settle(engine)
    assert [(task["state"], task["claims"], task["attempt"]) for task in await at.tasks()] == [("ready", 0, 0)] * 2
    assert await engine.next_due(at.now) is None
    await at.settle(await at.engine())
    assert await states(at) == ["done"] * 2


async def test_an_engine_that_is_behind_still_runs_what_newer_ones_set_off(at: At) -> None:
    old, new = await at.engine(), await at.engine(effects={})
    await at.load(old, [reflex("a", PING)])
    await at.load(new, [reflex("b", PING, params={"n": 2}, input={"$": "params.n"})])
    await at.signal(new)
    await new.advance(at.now)
    await at.settle(old)
    assert at.act.inputs == [2]
    assert [run["state"] for run in await at.runs()] == ["settled"]


async def test_a_run_goes_on_under_the_definition_it_began_with(at: At) -> None:
    engine, without = await at.engine(), await at.engine(effects={})
    await at.load(without, [reflex("a", PING, input=1)])
    await at.signal(without)
    await without.advance(at.now)
    await at.load(engine, [reflex("a", PING, input=2)])
    await at.settle(engine)
    assert at.act.inputs == [1]


async def test_a_task_whose_definition_this_code_cannot_read_is_given_back_uncounted(at: At) -> None:
    engine = await fan_out(at, 1, effects={})
    await engine.advance(at.now)
    (run,) = await at.runs()

    def body() -> Any:
        yield ()
        return Last((Put(REFLEX_TEXT, [(run["version"], b'{"id":"a"}')]),), None)

    await (await at.space()).transact(body)
    other = await at.engine()
    for _ in range(10):
        await at.settle(other)
        due = await other.next_due(at.now)
        assert due == at.now + timedelta(minutes=1)
        at.now = due
    (task,) = await at.tasks()
    assert (task["state"], task["claims"], task["attempt"]) == ("ready", 0, 0)
