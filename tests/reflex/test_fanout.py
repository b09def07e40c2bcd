"""A run becomes all its tasks or none; what can never be is skipped, and what had a bad minute is tried again."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from onefold.reflex.words import OnRun, OnSignal, OnWrite, Selection
from onefold.terms.errors import BadArguments, UnknownName
from tests.reflex.ground import At, reflex

PING = OnSignal("ping")
EACH = Selection({"from": "due"}, "each", "id")
BATCH = Selection({"from": "due"}, "batch")


async def fanned(at: At, rows: list[Any], select: Selection = EACH, **policy: Any) -> dict[str, Any]:
    """The run that one signal makes over these rows."""
    engine = await at.engine()
    at.rows.tables["due"] = rows
    await at.load(engine, [reflex("a", PING, select=select, **policy)])
    await at.signal(engine)
    await engine.advance(at.now)
    (run,) = await at.runs()
    return run


# --- units ------------------------------------------------------------------------------------------------------


async def test_a_run_counts_the_tasks_that_were_written(at: At) -> None:
    run = await fanned(at, [{"id": n} for n in range(500)])
    assert (run["state"], run["total"], run["due_at"]) == ("fanned", 500, None)
    assert len(await at.tasks()) == 500


async def test_a_whole_number_tells_rows_apart_as_well_as_text(at: At) -> None:
    await fanned(at, [{"id": 7, "n": 1}, {"id": "x y/z", "n": 2}])
    assert [(task["unit"], task["row"]) for task in await at.tasks()] == [
        ("7", b'{"id":7,"n":1}'), ("x y/z", b'{"id":"x y/z","n":2}'),
    ]  # fmt: skip


async def test_a_batch_is_one_task_with_all_rows(at: At) -> None:
    await fanned(at, [{"id": 1}, {"id": 1}, {}], BATCH)
    assert [(task["unit"], task["row"]) for task in await at.tasks()] == [("all", b'[{"id":1},{"id":1},{}]')]


async def test_a_signal_without_a_selection_is_its_own_unit(at: At) -> None:
    engine = await at.engine()
    await at.load(engine, [reflex("a", PING)])
    await at.signal(engine)
    await engine.advance(at.now)
    assert [(task["unit"], task["row"]) for task in await at.tasks()] == [("itself", None)]


async def test_a_selection_is_asked_under_the_principal_of_the_run(at: At) -> None:
    engine = await at.engine()
    at.rows.tables["o1"] = []
    query = Selection({"from": {"$": "fact.row.of"}}, "each", "id")
    await at.load(engine, [reflex("a", OnWrite("orders"), select=query, principal="lumen")])
    await at.write(engine, "orders", {"of": "o1"}, principal="lumen")
    await engine.advance(at.now)
    assert at.rows.asked == [({"from": "o1"}, "lumen")]


async def test_no_rows_settle_at_once_and_are_announced(at: At) -> None:
    engine = await at.engine()
    at.rows.tables["due"] = []
    await at.load(engine, [reflex("a", PING, select=EACH), reflex("digest", OnRun("a"))])
    await at.signal(engine)
    report = await engine.advance(at.now)
    assert report.settled == 1
    run, *_ = await at.runs(reflex="a")
    assert (run["state"], run["total"], run["drained"], run["open"]) == ("settled", 0, 1, None)
    fact = (await at.facts(kind="run"))[0]
    assert fact["subject"] == "a"
    assert fact["cause"] == "run:1"
    assert b'"stats":{"done":0,"failed":0,"total":0}' in fact["body"]
    await at.settle(engine)
    assert [run["reflex"] for run in await at.runs()] == ["a", "digest"]
    assert len(await at.facts(subject="a", kind="run")) == 1


# --- what can never be ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "rows,why",
    [
        ([{"id": 1}, {"id": "1"}], "two rows of the selection have id '1'; it must tell rows apart"),
        ([{"id": 1}, {"x": 1}], "row 2 of the selection has no id, which tells its rows apart"),
        ([{"id": None}], "row 1 of the selection has no id, which tells its rows apart"),
        ([{"id": True}], "row 1 of the selection has no text or whole number as id, which tells its rows apart"),
        ([{"id": ""}], "row 1 of the selection has a id that is empty or longer than 512 bytes"),
        ([{"id": "x" * 513}], "row 1 of the selection has a id that is empty or longer than 512 bytes"),
        (
            [{"id": 1, "at": set()}],
            "row 1 of the selection is not JSON: at: has the type set, which is not JSON; sent set()",
        ),
        ([["id", 1]], "row 1 of the selection is a list, not an object"),
        ([{"id": 1, "x": "y" * (1 << 20)}], "row 1 of the selection has 1048591 bytes; at most 1048576 are taken"),
        ([{"id": n} for n in range(10_001)], "the selection gave more than 10000 rows; let it give fewer"),
    ],
)
async def test_a_selection_that_will_be_wrong_again_skips_its_run_and_says_why(
    at: At, rows: list[Any], why: str
) -> None:
    run = await fanned(at, rows)
    assert (run["state"], run["due_at"], run["open"]) == ("skipped", None, None)
    assert run["note"] == why
    assert run["settled_at"] is not None
    assert await at.tasks() == []
    assert await at.facts(kind="run") == []


async def test_two_rows_with_one_key_refuse_their_run(at: At) -> None:
    """One of them was dropped without a word, and its member never charged."""
    run = await fanned(at, [{"id": 7, "n": 1}, {"id": 7, "n": 2}])
    assert (run["state"], await at.tasks()) == ("skipped", [])


@pytest.mark.parametrize("fault", [UnknownName("selection", "duee", "due"), BadArguments([])])
async def test_a_selection_that_refuses_skips_its_run(at: At, fault: Exception) -> None:
    at.rows.down = fault
    run = await fanned(at, [])
    assert (run["state"], run["note"]) == ("skipped", str(fault))


async def test_a_query_whose_template_is_wrong_skips_its_run(at: At) -> None:
    run = await fanned(at, [], Selection({"from": {"$": "fact.payloud"}}, "each", "id"))
    assert run["state"] == "skipped"
    assert "fact.payloud" in run["note"]


async def test_a_run_whose_cause_cannot_be_read_is_skipped_and_stops_no_other(at: At) -> None:
    engine = await at.engine()
    at.rows.down = ConnectionError("down")
    at.rows.tables["due"] = []
    await at.load(engine, [reflex("a", PING, select=EACH)])
    for _ in range(2):
        await at.signal(engine)
    await at.settle(engine)
    await at.put_run(1, env=b"{")
    at.rows.down = None
    await at.settle(engine, at.now + timedelta(minutes=1))
    assert [run["state"] for run in await at.runs()] == ["skipped", "settled"]


async def test_an_engine_without_a_selection_skips_what_needs_one(at: At) -> None:
    engine = await at.engine(select=None)
    await at.load(engine, [reflex("a", PING, select=EACH)])
    await at.signal(engine)
    report = await engine.advance(at.now)
    assert report.events == ("reflex_run_1 was skipped: it has a selection, and this engine was given none to ask",)


# --- a bad minute -----------------------------------------------------------------------------------------------


async def test_a_database_that_is_down_puts_a_run_off_and_loses_nothing(at: At) -> None:
    """One unreachable minute destroyed a night's billing for good."""
    engine = await at.engine()
    at.rows.tables["due"] = [{"id": 1}]
    at.rows.down = ConnectionError("no route to host")
    await at.load(engine, [reflex("a", PING, select=EACH)])
    await at.signal(engine)
    reports = await at.settle(engine)
    (run,) = await at.runs()
    assert (run["state"], run["tries"], run["open"]) == ("pending", 1, "a")
    assert run["note"] == "put off 1 time: ConnectionError: no route to host"
    assert reports[0].events == ("reflex_run_1 was put off: ConnectionError: no route to host",)
    at.rows.down = None
    await at.pass_until(engine, at.now + timedelta(minutes=1))
    (run,) = await at.runs()
    assert (run["state"], run["total"], run["note"]) == ("settled", 1, None)


async def test_what_is_put_off_neither_spins_nor_is_asked_for_ever_less(at: At) -> None:
    engine = await at.engine()
    at.rows.down = ConnectionError("down")
    await at.load(engine, [reflex("a", PING, select=EACH)])
    await at.signal(engine)
    waits = []
    for _ in range(16):
        await at.settle(engine)
        due = await engine.next_due(at.now)
        assert due is not None
        waits.append((due - at.now).total_seconds())
        at.now = due
    assert waits == [min(2.0**n, 3_600.0) for n in range(16)]
    assert len(at.rows.asked) == 16


async def test_runs_that_are_put_off_stand_before_nobody(at: At) -> None:
    """A hundred of them at the head starved all others."""
    engine = await at.engine()
    at.rows.down = ConnectionError("down")
    await at.load(engine, [reflex("a", PING, select=EACH), reflex("b", OnSignal("pong"))])
    for _ in range(300):
        await at.signal(engine)
    await at.settle(engine)
    await at.signal(engine, "pong")
    await at.settle(engine)
    assert len(await at.runs(state="pending")) == 300
    assert [run["state"] for run in await at.runs(reflex="b")] == ["settled"]


async def test_a_selection_that_breaks_half_way_leaves_no_task(at: At) -> None:
    async def breaks(query: Any, principal: Any, now: Any) -> Any:
        yield {"id": 1}
        raise OSError("connection reset")

    engine = await at.engine(select=breaks)
    await at.load(engine, [reflex("a", PING, select=EACH)])
    await at.signal(engine)
    await engine.advance(at.now)
    assert await at.tasks() == []
    assert [run["state"] for run in await at.runs()] == ["pending"]


async def test_tasks_are_of_one_selection_whatever_cuts_their_fan_out(at: At) -> None:
    """A member who paid in between kept a task of the older pass."""
    engine = await at.engine(effects={})
    at.rows.tables["due"] = [{"id": "a"}, {"id": "b"}]
    await at.load(engine, [reflex("r", PING, select=EACH)])
    await at.signal(engine)
    await engine.advance(at.now)
    at.rows.tables["due"] = [{"id": "b"}, {"id": "c"}]
    await at.settle(engine)
    assert [task["unit"] for task in await at.tasks()] == ["a", "b"]


async def test_a_selection_without_an_end_is_left_and_closed(at: At) -> None:
    closed = []

    async def endless(query: Any, principal: Any, now: Any) -> Any:
        try:
            n = 0
            while True:
                n += 1
                yield {"id": n}
        finally:
            closed.append(n)

    engine = await at.engine(select=endless)
    await at.load(engine, [reflex("a", PING, select=EACH)])
    await at.signal(engine)
    await engine.advance(at.now)
    assert closed == [10_001]


# --- order --------------------------------------------------------------------------------------------------------


async def test_one_serial_task_at_a_time_is_ready_and_the_others_queue(at: At) -> None:
    engine = await at.engine(effects={})
    at.rows.tables["due"] = [{"id": n} for n in range(3)]
    await at.load(engine, [reflex("a", PING, select=EACH, order="serial")])
    for _ in range(2):
        await at.signal(engine)
    await engine.advance(at.now)
    tasks = await at.tasks()
    assert [(task["state"], task["baton"], task["queue"]) for task in tasks] == [
        ("ready", "a", None), *[("queued", None, "a")] * 5,
    ]  # fmt: skip
    assert [task["ready_at"] is None for task in tasks] == [False, *[True] * 5]


async def test_a_serial_run_that_comes_later_finds_the_baton_taken(at: At) -> None:
    engine = await at.engine(effects={})
    await at.load(engine, [reflex("a", PING, order="serial")])
    for _ in range(2):
        await at.signal(engine)
        await engine.advance(at.now)
    assert [task["state"] for task in await at.tasks()] == ["ready", "queued"]


async def test_what_only_waits_for_an_effect_or_a_baton_wakes_nobody(at: At) -> None:
    engine = await at.engine(effects={})
    await at.load(engine, [reflex("a", PING, order="serial")])
    for _ in range(2):
        await at.signal(engine)
    await at.settle(engine)
    assert await engine.next_due(at.now) is None
