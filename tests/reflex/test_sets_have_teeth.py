"""What loading, grammar and graph promise, each as a scenario that the sound ones pass and a planted twin does not."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from onefold.reflex.load import reloading
from onefold.reflex.tables import STATE
from onefold.reflex.watch import is_newest, newest
from onefold.store.contract import Done, Last, Put
from onefold.terms.errors import LoadRefused
from onefold.terms.instant import down, moment
from onefold.testing.broken.reflex_sets import BROKEN_SETS, BrokenSets, Sets
from tests.reflex.definitions import plain
from tests.reflex.ground import Act, At, ground

Scenario = Callable[[Sets, At], Awaitable[None]]
SCENARIOS: dict[str, Scenario] = {}

DAILY = {"clock": {"every": "day", "at": "09:00", "tz": "UTC"}}
LATER = {"clock": {"every": "day", "at": "10:00", "tz": "UTC"}}
HEARS = {"fact": {"entity": "x"}}


def day(n: int, hour: int = 12) -> datetime:
    return datetime(2026, 3, n, hour, tzinfo=UTC)


def scenario(run: Scenario) -> Scenario:
    SCENARIOS[run.__name__] = run
    return run


async def load(sets: Sets, at: At, on: datetime, *definitions: Any) -> int:
    reflexes = [sets.parse(definition) for definition in definitions]
    outcome = await (await at.space()).transact(sets.loading(reflexes, down(on)))
    assert isinstance(outcome, Done)
    return outcome.value


# --- loads -----------------------------------------------------------------------------------------------


@scenario
async def a_pause_is_a_pause(sets: Sets, at: At) -> None:
    """Eight days off are no eight occurrences on the way back."""
    await load(sets, at, day(1), plain("a", DAILY, enabled=False))
    await load(sets, at, day(9), plain("a", DAILY))
    assert moment((await at.state("a"))["next_at"]) == day(10, 9)


@scenario
async def enablement_is_what_the_definition_says(sets: Sets, at: At) -> None:
    await load(sets, at, day(1), plain("a", DAILY))
    await load(sets, at, day(2), plain("a", DAILY, enabled=False))
    outcome = await (await at.space()).transact(reloading)
    assert isinstance(outcome, Done)
    assert outcome.value.loaded().armed == ()


@scenario
async def an_older_set_is_known_as_older(sets: Sets, at: At) -> None:
    one = sets.held([sets.parse(plain("a"))], await load(sets, at, day(1), plain("a")))
    other = sets.held([sets.parse(plain("b"))], await load(sets, at, day(2), plain("b")))
    (rows,) = await (await at.space()).look(newest())
    assert (is_newest(one, rows), is_newest(other, rows)) == (False, True)


@scenario
async def an_unchanged_reload_keeps_everything(sets: Sets, at: At) -> None:
    await load(sets, at, day(1), plain("a", HEARS), plain("b", DAILY))
    before = await at.state("a")
    await load(sets, at, day(2), plain("a", HEARS), plain("b", DAILY), plain("c"))
    assert await at.state("a") == before | {"gen": 2}


@scenario
async def another_clock_begins_at_the_load(sets: Sets, at: At) -> None:
    await load(sets, at, day(1), plain("a", DAILY))
    await load(sets, at, day(9), plain("a", LATER))
    assert moment((await at.state("a"))["next_at"]) == day(10, 10)


@scenario
async def who_left_the_set_rings_no_more(sets: Sets, at: At) -> None:
    await load(sets, at, day(1), plain("a", DAILY), plain("b"))
    await load(sets, at, day(2), plain("b"))
    assert (await at.state("a"))["next_at"] is None


@scenario
async def the_key_stands_and_its_instant_is_todays(sets: Sets, at: At) -> None:
    await load(sets, at, day(1), plain("a", DAILY))
    row = await at.state("a")

    def body() -> Any:  # as other zone data had it
        yield ()
        return Last((Put(STATE, [tuple((row | {"next_at": row["next_at"] + 3_600_000}).values())]),), None)

    await (await at.space()).transact(body)
    await load(sets, at, day(1), plain("a", DAILY))
    assert (await at.state("a"))["next_at"] == row["next_at"]


@scenario
async def a_watermark_never_goes_back(sets: Sets, at: At) -> None:
    await load(sets, at, day(20), plain("a", DAILY, enabled=False))
    await load(sets, at, day(10), plain("a", DAILY))  # by a clock that is ten days behind
    assert (await at.state("a"))["watermark"] == "2026-03-20"


# --- the set, the grammar --------------------------------------------------------------------------------


@scenario
async def no_fact_crosses_a_principal(sets: Sets, at: At) -> None:
    """Two studios welcome who joins; each hears of its own."""
    mine, theirs = (sets.parse({**plain(f"welcome.{who}", HEARS), "as": who}) for who in ("s1", "s2"))
    held = sets.held([mine, theirs, sets.parse(plain("nobody", HEARS))], 1)
    assert list(held.watching("write", "x", "s1")) == [mine]
    assert [reflex.id for reflex in held.watching("write", "x", None)] == ["nobody"]


def refused(sets: Sets, definition: Any) -> bool:
    try:
        sets.parse(definition)
    except LoadRefused:
        return True
    return False


@scenario
async def an_unknown_word_is_refused(sets: Sets, at: At) -> None:
    assert refused(sets, plain("a", DAILY, policy={"catchup": "skip"}))


@scenario
async def a_when_goes_with_a_fact(sets: Sets, at: At) -> None:
    assert refused(sets, plain("a", DAILY, when={"$": "false"}))
    assert refused(sets, plain("a", when={"$": "false"}))
    assert not refused(sets, plain("a", HEARS, when={"$": "false"}))


@scenario
async def flipping_the_switch_is_no_edit(sets: Sets, at: At) -> None:
    assert sets.parse(plain("a", enabled=False)).version == sets.parse(plain("a")).version


@scenario
async def a_knob_is_an_edit(sets: Sets, at: At) -> None:
    assert sets.parse(plain("a", params={"days": 3})).version != sets.parse(plain("a", params={"days": 7})).version


@scenario
async def order_is_no_edit(sets: Sets, at: At) -> None:
    assert sets.parse(dict(reversed(plain("a").items()))).version == sets.parse(plain("a")).version


# --- the graph -------------------------------------------------------------------------------------------


def levels(sets: Sets, *definitions: Any, **writes: Any) -> list[str]:
    effects = {"note": Act("note")} | {name: Act(name, writes=told) for name, told in writes.items()}
    return sorted(found.level for found in sets.findings([sets.parse(one) for one in definitions], effects))


def on(entity: str) -> Any:
    return {"fact": {"entity": entity}}


def after(id: str) -> Any:
    return {"fact": {"run": id}}


@scenario
async def a_loop_through_a_run_is_refused(sets: Sets, at: At) -> None:
    loop = [plain("a", on("x")), plain("b", after("a")), plain("c", after("b"), "to_x")]
    assert levels(sets, *loop, to_x=["x"]) == ["refused"]


@scenario
async def a_guarded_loop_is_told_and_loaded(sets: Sets, at: At) -> None:
    """A drip that wakes itself until its rows are done."""
    drip = plain("drip", on("x"), "to_x", select={"query": 1, "mode": "batch"})
    assert levels(sets, drip, to_x=["x"]) == ["warning"]


@scenario
async def each_loop_needs_a_guard_of_its_own(sets: Sets, at: At) -> None:
    knot = [plain("a", on("x"), "to_x"), plain("b", on("x"), "to_x", when={"$": "fact.row.open"})]
    assert "refused" in levels(sets, *knot, to_x=["x"])


@scenario
async def the_graph_stays_within_a_principal(sets: Sets, at: At) -> None:
    one, other = (
        {**plain(who, on(hears), does), "as": who} for who, hears, does in (("s1", "x", "y"), ("s2", "y", "x"))
    )
    assert levels(sets, one, other, x=["x"], y=["y"]) == []


@scenario
async def a_blind_edge_is_named(sets: Sets, at: At) -> None:
    assert levels(sets, plain("a", effect="blind"), blind=None) == ["warning"]


# --- sound and broken ------------------------------------------------------------------------------------


@pytest.mark.parametrize("store", ["memory", "sqlite"])
@pytest.mark.parametrize("name", SCENARIOS)
async def test_the_sound_sets_keep_it(name: str, store: str) -> None:
    async with ground(store) as at:
        await SCENARIOS[name](Sets(), at)
        assert not at.engines


@pytest.mark.parametrize("twin", BROKEN_SETS, ids=lambda twin: twin.name.replace(" ", "-"))
async def test_a_twin_falls_over_the_scenario_that_is_there_for_it(twin: BrokenSets) -> None:
    async with ground("memory") as at:
        with pytest.raises(AssertionError):
            await SCENARIOS[twin.caught_by](twin.make(), at)


def test_each_scenario_is_there_for_a_twin() -> None:
    assert sorted(SCENARIOS) == sorted({twin.caught_by for twin in BROKEN_SETS})
