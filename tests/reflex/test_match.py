"""Facts and reflexes: who hears what, whose it is, what a `when` that raises does, and how long a chain may be."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from onefold.reflex.intake import fact_of
from onefold.reflex.load import LoadedSet
from onefold.reflex.match import candidates
from onefold.reflex.words import ByHand, OnRun, OnSignal, OnWrite, Reflex
from tests.reflex.ground import At, reflex

PING = OnSignal("ping")


async def woken(at: At) -> list[str]:
    return [run["reflex"] for run in await at.runs()]


# --- who hears what -------------------------------------------------------------------------------------------


async def test_insert_update_and_delete_are_distinct(at: At) -> None:
    engine = await at.engine()
    own = [reflex(f"on_{op}", OnWrite("orders", op)) for op in ("insert", "update", "delete")]
    await at.load(engine, [*own, reflex("any", OnWrite("orders")), reflex("other", OnWrite("refunds"))])
    for op in ("insert", "update"):
        await at.write(engine, "orders", {"id": 1}, op)
        await at.settle(engine)
    assert await woken(at) == ["any", "on_insert", "any", "on_update"]


async def test_a_write_and_a_signal_of_one_name_are_not_each_other(at: At) -> None:
    engine = await at.engine()
    await at.load(
        engine, [reflex("s", OnSignal("orders")), reflex("w", OnWrite("orders")), reflex("r", OnRun("orders"))]
    )
    await at.write(engine, "orders", {})
    await at.settle(engine)
    assert await woken(at) == ["w"]


async def test_distinct_facts_are_never_dropped_as_repeats(at: At) -> None:
    """Three members who joined in one minute got one welcome."""
    engine = await at.engine()
    await at.load(engine, [reflex("a", OnWrite("members"))])
    for id in range(3):
        await at.write(engine, "members", {"id": id})
    await engine.advance(at.now)
    assert [run["state"] for run in await at.runs()] == ["settled"] * 3


async def test_a_fact_opens_one_run_of_a_reflex_however_often_it_is_matched(at: At) -> None:
    engine = await at.engine()
    await at.load(engine, [reflex("a", PING)])
    await at.signal(engine)
    await at.settle(engine)
    await at.put_fact(1, state="waiting", due_at=0)
    await at.settle(engine)
    assert await woken(at) == ["a"]


async def test_a_fact_is_met_by_the_reflexes_of_its_day(at: At) -> None:
    engine = await at.engine()
    await at.load(engine, [reflex("old", PING)])
    await at.signal(engine, not_before=at.now + timedelta(days=3))
    await at.settle(engine)
    assert await engine.next_due(at.now) == at.now + timedelta(days=3)
    at.later(days=1)
    await at.load(engine, [reflex("new", PING)])
    await at.pass_until(engine, at.now + timedelta(days=5))
    assert await woken(at) == ["new"]
    assert [run["at"] - run["occurred_at"] for run in await at.runs()] == [3 * 86_400_000]


async def test_a_reflex_never_hears_what_came_before_its_arming(at: At) -> None:
    engine = await at.engine()
    await at.load(engine, [reflex("a", PING)])
    await at.signal(engine)
    at.later(seconds=1)
    await at.load(engine, [reflex("a", PING), reflex("b", PING)])
    await at.settle(engine)
    assert await woken(at) == ["a"]


async def test_a_fact_of_the_instant_of_arming_is_heard(at: At) -> None:
    engine = await at.engine()
    await at.load(engine, [reflex("a", PING)])
    await at.signal(engine)
    await at.settle(engine)
    assert await woken(at) == ["a"]


async def test_a_disarmed_reflex_hears_nothing_and_hears_nothing_of_it_later(at: At) -> None:
    engine = await at.engine()
    await at.load(engine, [reflex("a", PING, enabled=False), reflex("b", OnSignal("x"))])
    await at.signal(engine)
    await at.settle(engine)
    at.later(seconds=1)
    await at.load(engine, [reflex("a", PING), reflex("b", OnSignal("x"))])
    await at.settle(engine)
    assert await woken(at) == []


# --- when -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [False, None, 0, 0.0, "", []])
async def test_what_is_not_true_lets_nothing_pass(at: At, value: Any) -> None:
    engine = await at.engine()
    await at.load(engine, [reflex("a", PING, when={"$": "fact.payload"}), reflex("b", PING)])
    await at.signal(engine, payload=value)
    await at.settle(engine)
    assert await woken(at) == ["b"]


@pytest.mark.parametrize("value", [True, 1, "0", [0], {}, {"a": None}])
async def test_all_else_does(at: At, value: Any) -> None:
    engine = await at.engine()
    await at.load(engine, [reflex("a", PING, when={"$": "fact.payload"})])
    await at.signal(engine, payload=value)
    await at.settle(engine)
    assert await woken(at) == ["a"]


async def test_a_when_that_raises_is_no_match_and_is_told_of(at: At) -> None:
    engine = await at.engine()
    await at.load(engine, [reflex("a", PING, when={"$raise": "no such row"}), reflex("b", PING)])
    await at.signal(engine)
    reports = await at.settle(engine)
    assert await woken(at) == ["b"]
    (line,) = reports[0].events
    assert line.startswith("a did not hear fact_1: its `when` failed: BadArguments: ")
    assert "no such row" in line


async def test_a_transform_that_breaks_stops_no_other_reflex(at: At) -> None:
    def breaks(template: Any, env: Any) -> Any:
        raise RuntimeError("a bug")

    engine = await at.engine(transform=breaks)
    await at.load(engine, [reflex("a", PING, when=True), reflex("b", PING)])
    await at.signal(engine)
    reports = await at.settle(engine)
    assert await woken(at) == ["b"]
    assert reports[0].events == ("a did not hear fact_1: its `when` failed: RuntimeError: a bug",)


async def test_a_when_sees_the_fact_the_params_and_now(at: At) -> None:
    seen: list[Any] = []

    def looks(template: Any, env: Any) -> Any:
        seen.append(dict(env))
        return True

    engine = await at.engine(transform=looks)
    await at.load(engine, [reflex("a", PING, when=True, params={"days": 5})])
    await at.signal(engine, payload=7)
    await engine.advance(at.now)
    fact = {"kind": "signal", "name": "ping", "payload": 7, "at": "2026-03-01T00:00:00Z"}
    assert seen[0] == {"params": {"days": 5}, "fact": fact, "facts": [fact], "now": "2026-03-01T00:00:00Z"}


# --- nobody to hear it ----------------------------------------------------------------------------------------


async def test_with_no_reflex_loaded_nothing_is_marked_delivered(at: At) -> None:
    engine = await at.engine()
    await at.signal(engine)
    assert not (await engine.advance(at.now)).moved
    await at.load(engine, [])
    assert not (await engine.advance(at.now)).moved
    assert (await at.facts())[0]["state"] == "waiting"
    assert await engine.next_due(at.now) is None
    await at.load(engine, [reflex("a", PING)])
    await at.settle(engine)
    assert await woken(at) == ["a"]


async def test_a_fact_that_nobody_watches_is_delivered_and_stays(at: At) -> None:
    engine = await at.engine()
    await at.load(engine, [reflex("a", PING)])
    await at.signal(engine, "pong")
    reports = await at.settle(engine)
    assert (reports[0].matched, len(reports)) == (1, 2)
    assert (await at.facts())[0]["state"] == "delivered"


async def test_an_engine_that_is_behind_marks_nothing_and_says_so(at: At) -> None:
    """It marked facts delivered against its old set, and the new reflexes never saw them."""
    old, new = await at.engine(), await at.engine()
    await at.load(old, [reflex("a", PING)])
    await at.load(new, [reflex("a", PING), reflex("b", PING)])
    await at.signal(old)
    report = await old.advance(at.now)
    assert not report.moved
    assert report.events == ("set 2 was loaded elsewhere, and this engine holds 1: it matches nothing",)
    assert await old.next_due(at.now) is None
    await at.settle(new)
    assert await woken(at) == ["a", "b"]


async def test_a_set_loaded_while_an_engine_decides_is_noticed_before_it_writes(at: At) -> None:
    engine, other = await at.engine(), await at.engine()
    await at.load(engine, [reflex("a", PING, when=True)])
    await at.signal(engine)
    await at.hold_before_commit(engine, lambda: at.load(other, [reflex("b", PING), reflex("a", PING)]))
    await engine.advance(at.now)
    assert await at.runs() == []
    await at.settle(other)
    assert await woken(at) == ["a", "b"]


# --- whose it is ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("whose", [None, "lumen", "rock", "lumen ", "-", "=lumen"])
async def test_a_fact_reaches_its_own_principal_and_nobody_else(at: At, whose: str | None) -> None:
    """Two tenants watched one table; one wrote to the other's people."""
    engine = await at.engine()
    principals = [None, "lumen", "rock", "lumen ", "-", "=lumen"]
    await at.load(engine, [reflex(f"r{n}", OnWrite("members"), principal=p) for n, p in enumerate(principals)])
    await at.write(engine, "members", {"id": 1}, principal=whose)
    await at.settle(engine)
    assert await woken(at) == [f"r{principals.index(whose)}"]


async def test_a_run_says_as_whom_it_runs(at: At) -> None:
    engine = await at.engine()
    await at.load(engine, [reflex("a", PING, principal="lumen"), reflex("b", PING)])
    await at.signal(engine, principal="lumen")
    await at.signal(engine)
    await at.settle(engine)
    assert [(run["reflex"], run["principal"]) for run in await at.runs()] == [("a", "=lumen"), ("b", "-")]


# --- people -----------------------------------------------------------------------------------------------------


async def test_a_person_fires_any_reflex_even_a_disarmed_one(at: At) -> None:
    engine = await at.engine()
    clock = {"every": "day", "at": "03:00", "tz": "UTC"}
    await at.load(engine, [reflex("a", clock, enabled=False), reflex("b", ByHand()), reflex("c", PING)])
    for id in "abc":
        fired = await engine.fire(id, now=at.now, input={"n": 1}, by="manager")
        assert fired.id.startswith("fact_")
    await at.settle(engine)
    assert await woken(at) == ["a", "b", "c"]
    body = (await at.facts())[0]["body"]
    assert b'"by":"manager"' in body
    assert b'"payload":{"n":1}' in body


async def test_what_a_person_fired_wakes_nobody_once_the_reflex_is_somebody_elses(at: At) -> None:
    engine = await at.engine()
    await at.load(engine, [reflex("a", ByHand(), principal="lumen")])
    await engine.fire("a", now=at.now, principal="lumen")
    await at.load(engine, [reflex("a", ByHand(), principal="rock")])
    await at.settle(engine)
    assert await woken(at) == []


async def test_a_set_that_forgot_whose_its_reflexes_are_crosses_nothing(at: At) -> None:
    """The index of the set and the match both ask; one alone was once enough to let everything through."""
    engine = await at.engine()
    await at.load(engine, [reflex("a", OnWrite("members"), principal="lumen")])
    await at.write(engine, "members", {"id": 1}, principal="rock")
    (row,) = await at.facts()
    fact = fact_of(tuple(row.values()))

    class Forgetful(LoadedSet):
        def watching(self, kind: str, subject: str, principal: object, /) -> list[Reflex]:
            return list(self.by_id.values())

    forgetful = Forgetful([reflex("a", OnWrite("members"), principal="lumen")], 1)
    assert candidates(forgetful, fact, {"a": 0}) == []
    assert candidates(forgetful, replace(fact, principal="lumen"), {"a": 0}) != []


async def test_what_a_person_repeats_while_it_runs_is_skipped_and_says_so(at: At) -> None:
    engine = await at.engine()
    await at.load(engine, [reflex("a", ByHand()), reflex("b", ByHand(), overlap="allow")])
    for id in "aabb":
        await engine.fire(id, now=at.now)
    await engine.advance(at.now)
    runs = await at.runs()
    assert [(run["reflex"], run["state"]) for run in runs] == [
        ("a", "settled"), ("a", "skipped"), ("b", "settled"), ("b", "settled"),
    ]  # fmt: skip
    assert runs[1]["note"] == "overlap: reflex_run_1 of this reflex has not settled yet"


async def test_a_fact_that_is_aimed_at_a_reflex_that_left_wakes_nobody(at: At) -> None:
    engine = await at.engine()
    await at.load(engine, [reflex("a", ByHand()), reflex("b", PING)])
    await engine.fire("a", now=at.now)
    await at.load(engine, [reflex("b", PING)])
    await at.settle(engine)
    assert await at.runs() == []


# --- the length of a chain ----------------------------------------------------------------------------------------


async def test_a_fact_too_deep_is_parked_and_a_release_lets_it_pass_once(at: At) -> None:
    """Clearing the park alone was a ping-pong: the depth that had parked it was still there."""
    engine = await at.engine(max_chain_depth=3)
    await at.load(engine, [reflex("a", PING)])
    id = await at.signal(engine)
    await at.put_fact(1, depth=4)
    reports = await at.settle(engine)
    (fact,) = await at.facts()
    assert (fact["state"], fact["due_at"]) == ("parked", None)
    assert reports[0].events == (f"{id} was parked: {fact['note']}",)
    assert fact["note"] == "its chain has 4 links; at most 3 go without a person's release"
    assert await at.runs() == []

    at.later(days=1)
    assert await engine.release(id, now=at.now) is True
    assert await engine.next_due(at.now) == at.now
    await at.settle(engine)
    (fact,) = await at.facts(kind="signal")
    assert (fact["state"], fact["released"]) == ("delivered", 1)
    assert [run["depth"] for run in await at.runs()] == [0]
    assert await engine.release(id, now=at.now) is False


async def test_a_fact_too_deep_that_wakes_nobody_is_parked_for_nobody(at: At) -> None:
    engine = await at.engine(max_chain_depth=3)
    await at.load(engine, [reflex("a", PING, when={"$": "fact.payload"})])
    await at.signal(engine, "pong")
    await at.signal(engine, payload=False)
    for n in (1, 2):
        await at.put_fact(n, depth=9)
    await at.settle(engine)
    assert [fact["state"] for fact in await at.facts()] == ["delivered"] * 2


async def test_a_fact_that_cannot_be_read_is_parked_and_stops_no_other(at: At) -> None:
    engine = await at.engine()
    await at.load(engine, [reflex("a", PING)])
    for _ in range(3):
        await at.signal(engine)
    await at.put_fact(1, body=b"{")
    await at.put_fact(2, principal="?")
    reports = await at.settle(engine)
    assert [fact["state"] for fact in await at.facts(kind="signal")] == ["parked", "parked", "delivered"]
    assert reports[0].events[0].startswith("fact_1 was parked: it cannot be read: ")
    assert await woken(at) == ["a"]


async def test_a_released_fact_is_still_of_its_day(at: At) -> None:
    engine = await at.engine(max_chain_depth=3)
    await at.load(engine, [reflex("a", PING)])
    id = await at.signal(engine)
    await at.put_fact(1, depth=4)
    await at.settle(engine)
    at.later(days=1)
    await at.load(engine, [reflex("a", PING), reflex("b", PING)])
    await engine.release(id, now=at.now)
    await at.settle(engine)
    assert await woken(at) == ["a"]
