"""Any sequence of loads, by any clock, leaves what the rule in one sentence says: who is new begins now, none else moves."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from onefold.almanac import START
from onefold.reflex.grammar import parse
from onefold.reflex.load import loading, reloading
from onefold.reflex.tables import LEDGER, STATE
from onefold.reflex.words import OnClock, Reflex
from onefold.store.contract import Done, Query
from onefold.store.memory import MemoryWorld
from onefold.terms.ids import principal_text
from onefold.terms.instant import Instant
from tests.reflex.definitions import plain

EXAMPLES = int(os.environ.get("ONEFOLD_REFLEX_EXAMPLES", "60"))
DAY = 86_400_000
BEGIN = 1_774_000_000_000  # a few days before the clocks of Vienna go forward

TRIGGERS: list[Any] = [
    {"clock": {"every": "day", "at": "02:30", "tz": "Europe/Vienna"}},
    {"clock": {"tz": "Europe/Vienna", "at": "02:30", "every": "day"}},
    {"clock": {"every": "week", "at": "09:00", "tz": "UTC"}},
    {"clock": {"at": "2026-03-29T02:30", "tz": "Europe/Vienna"}},
    {"fact": {"entity": "x"}},
    {"manual": {}},
]


@st.composite
def sets(draw: st.DrawFn) -> list[Reflex]:
    found = []
    for id in draw(st.sets(st.sampled_from("abc"))):
        more: dict[str, Any] = {"enabled": draw(st.booleans()), "params": {"n": draw(st.integers(0, 1))}}
        if draw(st.booleans()):
            more["as"] = "s"
        found.append(parse(plain(id, draw(st.sampled_from(TRIGGERS)), **more)))
    return found


@dataclass
class Was:
    """What the last load that had it left of a reflex."""

    reflex: Reflex
    armed: int
    mark: str | None


def mark_at(reflex: Reflex, at: Instant) -> str | None:
    if not isinstance(reflex.on, OnClock):
        return None
    last = reflex.on.rule.latest(at)
    return START if last is None else last.key


def later(reflex: Reflex, one: str | None, other: str | None) -> str | None:
    """The later of two keys of its clock."""
    assert isinstance(reflex.on, OnClock)
    rule = reflex.on.rule
    return max((one, other), key=lambda key: -1 if not key else rule.plan(key).at)  # type: ignore[arg-type]


def same_clock(one: Reflex, other: Reflex) -> bool:
    return (
        isinstance(one.on, OnClock) and isinstance(other.on, OnClock) and dict(one.on.clause) == dict(other.on.clause)
    )


def expected(was: Was | None, stayed: bool, reflex: Reflex, at: Instant) -> Was:
    new = (
        was is None
        or not stayed
        or was.reflex.principal != reflex.principal
        or (reflex.enabled and not was.reflex.enabled)
    )
    mark = mark_at(reflex, at)
    if was is not None and same_clock(was.reflex, reflex):
        mark = later(reflex, was.mark, mark) if new else was.mark
    return Was(reflex, at if new or was is None else was.armed, mark)


@settings(max_examples=EXAMPLES)
@given(st.lists(st.tuples(sets(), st.integers(-3, 12)), min_size=1, max_size=8))
async def test_every_sequence_of_loads_is_what_the_rule_says(steps: list[tuple[list[Reflex], int]]) -> None:
    space = await MemoryWorld(clock=lambda: 0).open("main", [LEDGER])
    known: dict[str, Was] = {}
    held: dict[str, tuple[Any, ...]] = {}
    generation, now = 0, BEGIN
    for reflexes, days in steps:
        now += days * DAY // 2
        at = Instant(now)
        outcome = await space.transact(loading(reflexes, at))
        assert isinstance(outcome, Done)
        coming = {r.id: (r.principal, r.version, r.enabled) for r in reflexes}
        generation += coming != held
        assert outcome.value == generation
        known |= {r.id: expected(known.get(r.id), r.id in held, r, at) for r in reflexes}
        held = coming
        (rows,) = await space.look(Query(STATE, where=(("gen", "=", generation), ("reflex", "!=", ""))))
        found = {row[0]: dict(zip(STATE.at, row, strict=True)) for row in rows}
        assert set(found) == set(held)
        for id, row in found.items():
            was = known[str(id)]
            told = (row["principal"], row["version"], row["enabled"], row["armed_at"], row["watermark"])
            wanted = (principal_text(was.reflex.principal), was.reflex.version, was.reflex.enabled, was.armed, was.mark)
            assert told == wanted
            coming_at = was.reflex.on.rule.next(was.mark) if isinstance(was.reflex.on, OnClock) else None  # type: ignore[arg-type]
            assert row["next_at"] == (None if coming_at is None else coming_at.at)
        stored = await space.transact(reloading)
        assert isinstance(stored, Done)
        assert dict(stored.value.loaded().by_id) == {r.id: r for r in reflexes}
