"""The door for facts: what it takes, what it refuses and in which words, and what a repeat is."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from onefold.reflex import intake
from onefold.reflex.words import OnSignal, Signal, Write
from onefold.terms.errors import BadArguments, Busy, NotFound, TooLarge, UnknownName
from onefold.terms.instant import down
from tests.reflex.ground import T0, At, reflex

NOW = down(T0)
WRITE = {"kind": "write", "entity": "orders", "op": "insert", "row": {"id": 1}}


def told(value: Any) -> list[str]:
    with pytest.raises(BadArguments) as refused:
        intake.parse(value)
    assert str(refused.value).startswith("Nothing was taken.")
    return [str(fault) for fault in refused.value.faults]


# --- the union ------------------------------------------------------------------------------------------


def test_each_kind_is_read() -> None:
    assert intake.parse(WRITE) == Write("orders", "insert", {"id": 1})
    given = {
        "kind": "signal",
        "name": "stripe",
        "payload": [1],
        "dedupeKey": "e1",
        "notBefore": "2026-03-02T01:00+01:00",
    }
    day = datetime(2026, 3, 2, tzinfo=UTC)
    assert intake.parse(given) == Signal("stripe", [1], dedupe_key="e1", not_before=day)


def test_a_write_without_an_entity_is_refused_and_not_stored_for_nobody() -> None:
    assert told({"kind": "write", "op": "insert", "row": {}}) == ["entity: is needed by a write"]
    assert told({"kind": "signal"}) == ["name: is needed by a signal", "payload: is needed by a signal"]


def test_a_field_of_another_kind_is_refused() -> None:
    assert told({**WRITE, "name": "stripe"}) == ["name: belongs to a signal, and this is a write"]
    assert told({**WRITE, "dedupe": "x"}) == ["dedupe: is no field of a fact; did you mean 'dedupeKey'?"]
    assert "is no field of a fact; a write has entity" in told({**WRITE, "zz": 1})[0]


@pytest.mark.parametrize("kind", ["manual", "run", "Write", None, 7, ["write"]])
def test_nobody_outside_makes_a_fact_of_another_kind(kind: Any) -> None:
    assert "must be 'write' or 'signal'" in told({**WRITE, "kind": kind})[0]


@pytest.mark.parametrize("value", [None, [], "write", 3])
def test_what_is_no_object_is_no_fact(value: Any) -> None:
    assert told(value)[0].startswith("a fact is an object")


@pytest.mark.parametrize("when", ["tomorrow", "2026-03-02T00:00:00", 5, "2026-13-01T00:00:00Z"])
def test_an_instant_without_an_offset_names_no_day(when: Any) -> None:
    assert "notBefore: must be an instant with an offset" in told({**WRITE, "notBefore": when})[0]


@pytest.mark.parametrize(
    "fact",
    [
        Write("", "insert", {}),
        Write("orders", "upsert", {}),  # type: ignore[arg-type]
        Write("orders", "insert", [1]),  # type: ignore[arg-type]
        Write("orders", "insert", {"a": {1, 2}}),
        Write("orders", "insert", {}, dedupe_key=""),
        Write("orders", "insert", {}, dedupe_key=7),  # type: ignore[arg-type]
        Write(3, "insert", {}),  # type: ignore[arg-type]
        Signal("ping", float("nan")),
        Signal("ping", "\ud800"),
        Signal("pi\0ng", 1),
        Signal("ping", 1, not_before=datetime(2026, 3, 2)),  # noqa: DTZ001 - a naive one is what is refused
        Signal("ping", 1, not_before="2026-03-02"),  # type: ignore[arg-type]
        {"kind": "signal"},
    ],
)
def test_what_could_not_be_stored_or_addressed_is_refused(fact: Any) -> None:
    with pytest.raises(BadArguments):
        intake.taken(fact, None, NOW)


def test_a_fact_has_a_size() -> None:
    with pytest.raises(TooLarge):
        intake.taken(Signal("ping", "x" * (1 << 20)), None, NOW)
    deep: Any = 1
    for _ in range(70):
        deep = [deep]
    with pytest.raises(BadArguments, match="deep"):
        intake.taken(Signal("ping", deep), None, NOW)


def test_templates_see_the_fact_in_one_shape() -> None:
    fact = intake.taken(Write("orders", "insert", {"id": 1}, dedupe_key="k"), "studio", NOW, depth=2, cause="task:4")
    assert fact.body == {
        "kind": "write",
        "entity": "orders",
        "op": "insert",
        "row": {"id": 1},
        "dedupeKey": "k",
        "at": "2026-03-01T00:00:00Z",
        "cause": "task:4",
    }
    row = intake.row_of(5, fact)
    back = intake.fact_of(row)
    assert (back.n, back.principal, back.depth, back.cause, back.body) == (5, "studio", 2, "task:4", fact.body)


# --- repeats ----------------------------------------------------------------------------------------------


async def test_a_repeat_of_a_key_counts_once_and_is_told_of(at: At) -> None:
    engine = await at.engine()
    first = await engine.ingest(Signal("stripe", 1, dedupe_key="evt_1"), now=at.now)
    again = await engine.ingest(Signal("stripe", 2, dedupe_key="evt_1"), now=at.later(days=400))
    assert (first.duplicate, again.duplicate, again.id) == (False, True, first.id)
    assert len(await at.facts()) == 1


async def test_a_repeat_is_told_of_after_the_first_was_delivered(at: At) -> None:
    engine = await at.engine()
    await at.load(engine, [reflex("a", OnSignal("stripe"))])
    for _ in range(2):
        await engine.ingest(Signal("stripe", 1, dedupe_key="evt_1"), now=at.now)
        await at.settle(engine)
    assert len(await at.runs()) == 1


async def test_another_entity_or_principal_or_no_key_is_another_fact(at: At) -> None:
    engine = await at.engine()
    for entity in ("orders", "refunds"):
        assert not (await engine.ingest(Write(entity, "insert", {}, dedupe_key="k"), now=at.now)).duplicate
    assert not (await engine.ingest(Write("orders", "insert", {}, dedupe_key="k"), "studio", now=at.now)).duplicate
    assert not (await engine.ingest(Signal("orders", {}, dedupe_key="k"), now=at.now)).duplicate
    for _ in range(2):
        assert not (await engine.ingest(Signal("ping", {}), now=at.now)).duplicate
    assert len(await at.facts()) == 6


async def test_keys_with_separators_in_them_are_not_each_other(at: At) -> None:
    engine = await at.engine()
    assert not (await engine.ingest(Signal('a","b', 1, dedupe_key="c"), now=at.now)).duplicate
    assert not (await engine.ingest(Signal("a", 1, dedupe_key='b","c'), now=at.now)).duplicate


# --- a bound ------------------------------------------------------------------------------------------------


async def test_a_full_intake_refuses_at_its_door_and_stores_nothing(at: At) -> None:
    engine = await at.engine(max_waiting=3)
    await at.load(engine, [reflex("a", OnSignal("ping"))])
    for _ in range(3):
        await at.signal(engine)
    for _ in range(2):
        with pytest.raises(Busy, match="3 waiting"):
            await at.signal(engine)
    with pytest.raises(Busy):
        await engine.fire("a", now=at.now)
    assert len(await at.facts()) == 3
    await engine.advance(at.now)
    assert await at.signal(engine)


async def test_facts_kept_for_a_later_day_and_facts_of_others_are_counted_as_they_are(at: At) -> None:
    engine, other = await at.engine(max_waiting=2), await at.engine()
    for _ in range(4):
        await at.signal(engine, not_before=at.now + timedelta(days=1))
    await at.signal(other)
    await at.signal(other)
    with pytest.raises(Busy):
        await at.signal(engine)


async def test_a_full_intake_is_counted_again_a_little_later(at: At) -> None:
    engine, other = await at.engine(max_waiting=1), await at.engine()
    await at.load(other, [reflex("a", OnSignal("ping"))])
    await at.signal(engine)
    with pytest.raises(Busy):
        await at.signal(engine)
    await at.settle(other)
    at.later(seconds=1)
    assert await at.signal(engine)


# --- people ---------------------------------------------------------------------------------------------------


async def test_nobody_fires_what_is_not_there_or_not_theirs(at: At) -> None:
    engine = await at.engine()
    await at.load(engine, [reflex("billing.charge", OnSignal("x"), principal="studio"), reflex("b", OnSignal("x"))])
    with pytest.raises(UnknownName, match=r"billing\.charge"):
        await engine.fire("billing.chrage", now=at.now, principal="studio")
    with pytest.raises(UnknownName) as refused:
        await engine.fire("billing.charge", now=at.now)
    assert refused.value.nearest is None
    assert await at.facts() == []


async def test_nobody_releases_what_is_not_there_or_not_theirs(at: At) -> None:
    engine = await at.engine()
    id = await at.signal(engine, principal="studio")
    for fact, whose in (("fact_99", None), ("fact_x", None), (id, ["other"]), (id, [None])):
        with pytest.raises(NotFound):
            await engine.release(fact, now=at.now, principals=whose)
    assert await engine.release(id, now=at.now, principals=["studio"]) is False
