"""Loading: where each reflex begins, what moves and what does not, and which set an engine may match with."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from datetime import UTC, datetime
from typing import Any

import pytest

from onefold.almanac import START
from onefold.reflex import engine as module
from onefold.reflex.acting import committed
from onefold.reflex.grammar import parse
from onefold.reflex.load import LoadedSet, loading, reflex_of, reloading
from onefold.reflex.tables import REFLEX_TEXT, STATE
from onefold.reflex.words import Reflex
from onefold.store.contract import Done, Last, Put
from onefold.terms.errors import LoadRefused, NotFound
from onefold.terms.instant import down, moment
from tests.reflex.definitions import plain
from tests.reflex.ground import STORES, At, ground

DAILY = {"clock": {"every": "day", "at": "09:00", "tz": "UTC"}}
LATER = {"clock": {"every": "day", "at": "10:00", "tz": "UTC"}}
NOON = datetime(2026, 3, 10, 12, tzinfo=UTC)


def day(n: int, hour: int = 12) -> datetime:
    return datetime(2026, 3, n, hour, tzinfo=UTC)


@pytest.fixture(params=(*STORES, "postgres"))
async def at(request: pytest.FixtureRequest) -> AsyncIterator[At]:
    async with ground(request.param) as found:
        yield found


async def load(at: At, *definitions: dict[str, Any], on: datetime = NOON) -> int:
    return await put(at, [parse(definition) for definition in definitions], on)


async def put(at: At, reflexes: Iterable[Reflex], on: datetime = NOON) -> int:
    outcome = await (await at.space()).transact(loading(reflexes, down(on)))
    assert isinstance(outcome, Done)
    return outcome.value


async def rows(at: At) -> dict[str, dict[str, Any]]:
    return {row["reflex"]: row for row in await at.table(STATE)}


# --- the generation --------------------------------------------------------------------------------------


async def test_the_generation_is_raised_when_the_set_changed_and_only_then(at: At) -> None:
    assert await load(at) == 0
    assert await load(at, plain("a")) == 1
    assert await load(at, plain("a"), on=day(11)) == 1
    assert await load(at, plain("a"), plain("b")) == 2  # one entered
    assert await load(at, plain("b")) == 3  # one left
    assert await load(at, plain("b", params={"n": 1})) == 4  # another version
    assert await load(at, plain("b", params={"n": 1}, enabled=False)) == 5  # paused
    assert await load(at, plain("b", params={"n": 1}, enabled=False)) == 5
    assert await load(at, {**plain("b", params={"n": 1}, enabled=False), "as": "s"}) == 6
    assert await load(at) == 7
    assert (await rows(at))[""]["gen"] == 7


async def test_an_unchanged_reload_changes_no_row(at: At) -> None:
    await load(at, plain("a", DAILY), plain("b", {"fact": {"entity": "x"}}), plain("c", enabled=False))
    before = await at.table(STATE), await at.table(REFLEX_TEXT)
    await load(at, plain("c", enabled=False), plain("b", {"fact": {"entity": "x"}}), plain("a", DAILY), on=day(20))
    assert (await at.table(STATE), await at.table(REFLEX_TEXT)) == before


async def test_all_of_the_set_bear_its_generation_and_who_left_keeps_its_own(at: At) -> None:
    await load(at, plain("a", DAILY), plain("b", DAILY))
    await load(at, plain("b", DAILY), plain("c"))
    found = await rows(at)
    assert {id: row["gen"] for id, row in found.items()} == {"": 2, "a": 1, "b": 2, "c": 2}
    assert found["a"]["next_at"] is None
    assert found["b"]["next_at"] is not None


async def test_two_engines_that_load_the_same_set_at_once_make_one_generation(at: At) -> None:
    import asyncio

    space = await at.space()
    reflexes = [parse(plain("a", DAILY)), parse(plain("b"))]
    outcomes = await asyncio.gather(*(space.transact(loading(reflexes, down(NOON))) for _ in range(8)))
    assert [getattr(outcome, "value", None) for outcome in outcomes] == [1] * 8


async def test_of_two_sets_loaded_at_once_one_is_whole_and_the_newest(at: At) -> None:
    import asyncio

    space = await at.space()
    sets = [[parse(plain("a", DAILY)), parse(plain("b"))], [parse(plain("b", params={"n": 1})), parse(plain("c"))]]
    one, other = await asyncio.gather(*(space.transact(loading(reflexes, down(NOON))) for reflexes in sets))
    assert isinstance(one, Done)
    assert isinstance(other, Done)
    assert sorted([one.value, other.value]) == [1, 2]
    held = await stored(at)
    assert set(held.by_id) == ({"a", "b"} if one.value == 2 else {"b", "c"})


# --- where a reflex begins -------------------------------------------------------------------------------


async def test_a_reflex_that_enters_begins_at_the_load(at: At) -> None:
    await load(at, plain("a", DAILY), plain("b", {"fact": {"entity": "x"}}))
    found = await rows(at)
    assert (found["a"]["watermark"], moment(found["a"]["next_at"])) == ("2026-03-10", day(11, 9))
    assert (found["b"]["watermark"], found["b"]["next_at"]) == (None, None)
    assert {found[id]["armed_at"] for id in "ab"} == {down(NOON)}


async def test_an_occurrence_at_the_very_instant_of_the_load_has_passed(at: At) -> None:
    await load(at, plain("a", DAILY), on=day(10, 9))
    assert moment((await rows(at))["a"]["next_at"]) == day(11, 9)


async def test_a_clock_that_was_never_before_begins_at_the_start_and_comes(at: At) -> None:
    once = {"clock": {"at": "2026-03-12T09:00", "tz": "UTC"}}
    await load(at, plain("a", once))
    row = (await rows(at))["a"]
    assert (row["watermark"], moment(row["next_at"])) == (START, day(12, 9))


async def test_a_one_shot_that_is_over_rings_no_more(at: At) -> None:
    once = {"clock": {"at": "2026-03-12T09:00", "tz": "UTC"}}
    await load(at, plain("a", once), on=day(13))
    assert (await rows(at))["a"]["next_at"] is None


async def test_coming_back_is_not_the_same_as_never_having_left(at: At) -> None:
    await load(at, plain("a", DAILY), plain("b"), on=day(1))
    await load(at, plain("b"), on=day(2))
    await load(at, plain("a", DAILY), plain("b"), on=day(10))
    row = (await rows(at))["a"]
    assert (row["armed_at"], row["watermark"]) == (down(day(10)), "2026-03-10")


async def test_becoming_enabled_begins_at_the_load_and_pausing_moves_nothing(at: At) -> None:
    await load(at, plain("a", DAILY), on=day(1))
    first = (await rows(at))["a"]
    await load(at, plain("a", DAILY, enabled=False), on=day(3))
    paused = (await rows(at))["a"]
    assert (paused["armed_at"], paused["watermark"], paused["next_at"]) == (
        first["armed_at"],
        first["watermark"],
        first["next_at"],
    )
    await load(at, plain("a", DAILY), on=day(10))
    again = (await rows(at))["a"]
    assert (again["armed_at"], again["watermark"]) == (down(day(10)), "2026-03-10")


async def test_an_edit_keeps_where_it_has_got_to(at: At) -> None:
    await load(at, plain("a", DAILY), on=day(1))
    await load(at, plain("a", DAILY, params={"n": 1}), on=day(10))
    row = (await rows(at))["a"]
    assert (row["armed_at"], row["watermark"], moment(row["next_at"])) == (down(day(1)), "2026-03-01", day(2, 9))


async def test_another_clock_begins_at_the_load_and_the_arming_stands(at: At) -> None:
    await load(at, plain("a", DAILY), on=day(1))
    await load(at, plain("a", LATER), on=day(10))
    row = (await rows(at))["a"]
    assert (row["armed_at"], row["watermark"], moment(row["next_at"])) == (down(day(1)), "2026-03-10", day(11, 10))


async def test_the_same_clock_written_in_another_order_is_the_same(at: At) -> None:
    await load(at, plain("a", DAILY), on=day(1))
    turned = {"clock": dict(reversed(DAILY["clock"].items()))}
    await load(at, plain("a", turned, params={"n": 1}), on=day(10))
    assert (await rows(at))["a"]["watermark"] == "2026-03-01"


async def test_a_clock_that_replaces_a_fact_begins_at_the_load_and_back(at: At) -> None:
    await load(at, plain("a", {"fact": {"entity": "x"}}), on=day(1))
    await load(at, plain("a", DAILY), on=day(10))
    assert (await rows(at))["a"]["watermark"] == "2026-03-10"
    await load(at, plain("a", {"fact": {"entity": "x"}}), on=day(11))
    row = (await rows(at))["a"]
    assert (row["watermark"], row["next_at"]) == (None, None)


async def test_another_principal_is_another_watcher(at: At) -> None:
    await load(at, plain("a", DAILY), on=day(1))
    await load(at, {**plain("a", DAILY), "as": "s"}, on=day(10))
    row = (await rows(at))["a"]
    assert (row["principal"], row["armed_at"], row["watermark"]) == ("=s", down(day(10)), "2026-03-10")


async def test_a_watermark_never_goes_back_whatever_clock_the_loader_has(at: At) -> None:
    await load(at, plain("a", DAILY), on=day(20))
    await load(at, on=day(20))
    await load(at, plain("a", DAILY), on=day(10))  # ten days behind
    assert (await rows(at))["a"]["watermark"] == "2026-03-20"


async def test_the_next_instant_is_that_of_todays_zone_data(at: At) -> None:
    """The key stands; a row written under other data is put right by the next load, in the same generation."""
    await load(at, plain("a", DAILY), on=day(1))
    (row,) = await at.table(STATE, reflex="a")
    moved = tuple((row | {"next_at": row["next_at"] + 3_600_000}).values())

    def body() -> Any:
        yield ()
        return Last((Put(STATE, [moved]),), None)

    await (await at.space()).transact(body)
    assert await load(at, plain("a", DAILY), on=day(5)) == 1
    assert moment((await rows(at))["a"]["next_at"]) == day(2, 9)


# --- definitions -----------------------------------------------------------------------------------------


async def test_a_definition_is_kept_once_for_each_version_and_for_ever(at: At) -> None:
    await load(at, plain("a"))
    await load(at, plain("a", params={"n": 1}))
    await load(at, plain("a"))
    await load(at, plain("a", enabled=False))
    kept = {row["version"]: row["body"] for row in await at.table(REFLEX_TEXT)}
    assert set(kept) == {parse(plain("a")).version, parse(plain("a", params={"n": 1})).version}
    for version, body in kept.items():
        assert reflex_of(version, body).version == version


async def test_a_stored_definition_that_was_touched_is_refused_by_its_hash(at: At) -> None:
    await load(at, plain("a"))
    (row,) = await at.table(REFLEX_TEXT)
    with pytest.raises(LoadRefused, match="damaged"):
        reflex_of(row["version"], row["body"].replace(b"Note it", b"Note me"))


# --- the newest set, from the store ----------------------------------------------------------------------


async def stored(at: At) -> LoadedSet:
    outcome = await (await at.space()).transact(reloading)
    assert isinstance(outcome, Done)
    return outcome.value.loaded()


async def test_the_newest_set_is_read_from_the_store_as_it_was_loaded(at: At) -> None:
    assert (await stored(at)).generation == 0
    assert (await stored(at)).by_id == {}
    await load(at, plain("gone"), plain("a", DAILY))
    wanted = [plain("a", DAILY, enabled=False), {**plain("b", {"fact": {"signal": "x"}}, when=1), "as": "s"}]
    await load(at, *wanted)
    held = await stored(at)
    assert held.generation == 2
    assert list(held.by_id.values()) == [parse(definition) for definition in wanted]


async def test_an_engine_that_fell_behind_reads_the_newest_set_and_matches_again(at: At) -> None:
    one, other = await at.engine(), await at.engine()
    heard = {"fact": {"signal": "ping"}}
    await one.load([plain("a", heard, "act")], NOON)
    await other.load([plain("a", heard, "act"), plain("b", heard, "act")], NOON)
    assert await one.reload() is True
    assert await one.reload() is False
    at.now = day(11)
    await at.signal(one)
    await at.settle(one)
    assert sorted(row["reflex"] for row in await at.runs()) == ["a", "b"]


async def test_of_two_loads_at_once_an_engine_holds_the_newer(at: At, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer to the first commit comes after that to the second."""
    import asyncio

    engine = await at.engine()
    sound, second = committed, asyncio.Event()

    async def late(space: Any, body: Any) -> Any:
        value = await sound(space, body)
        if value == 1:
            await second.wait()
        return value

    monkeypatch.setattr(module, "committed", late)
    first = asyncio.create_task(engine.load([plain("a", effect="act")], NOON))
    await asyncio.sleep(0)
    await engine.load([plain("b", effect="act")], NOON)
    second.set()
    await first
    assert await engine.reload() is False
    assert [reflex.id for reflex in engine.graph().reflexes] == ["b"]


# --- the engine's verb -----------------------------------------------------------------------------------


async def test_load_says_what_is_armed_and_what_was_let_pass(at: At) -> None:
    engine = await at.engine()
    loaded = await engine.load(
        [plain("b", {"fact": {"run": "nobody"}}, "act"), plain("a", effect="act", enabled=False)], NOON
    )
    assert loaded.armed == ("b",)
    assert [found.level for found in loaded.findings] == ["warning"]


async def test_a_refused_load_leaves_the_set_and_the_store_as_they_were(at: At) -> None:
    engine = await at.engine()
    await engine.load([plain("a", DAILY, "act")], NOON)
    before = await at.table(STATE), await at.table(REFLEX_TEXT)
    with pytest.raises(LoadRefused) as caught:
        await engine.load([plain("b", effect="act"), plain("c", effect="atc"), {}], day(11))
    assert "did you mean 'act'?" in str(caught.value)
    assert (await at.table(STATE), await at.table(REFLEX_TEXT)) == before
    assert {edge.target for edge in engine.graph().edges} == set()
    assert [reflex.id for reflex in engine.graph().reflexes] == ["a"]


async def test_what_changed_between_two_versions_is_read_from_the_store(at: At) -> None:
    engine = await at.engine()
    await engine.load([plain("a", effect="act", params={"n": 1})], NOON)
    old = engine.graph().reflexes[0].version
    await engine.load([plain("a", effect="act", params={"n": 2})], NOON)
    new = engine.graph().reflexes[0].version
    assert [str(change) for change in await engine.difference(old, new)] == ["params.n: 1 → 2"]
    with pytest.raises(NotFound):
        await engine.difference(old, "0" * 64)


async def test_a_draft_is_anchored_and_arms_nothing(at: At) -> None:
    engine = await at.engine()
    draft = engine.draft(plain("a", {"clock": {"in": "2 minutes"}}, "atc"), NOON)
    assert draft.definition["on"] == {"clock": {"at": "2026-03-10T12:02", "tz": "UTC"}}
    assert ["did you mean 'act'?" in found.problem for found in draft.findings] == [True]
    assert await at.table(STATE) == []


# --- the set as a value ----------------------------------------------------------------------------------


def test_who_watches_is_found_by_kind_subject_and_principal() -> None:
    held = LoadedSet(
        [
            parse(plain("w", {"fact": {"entity": "x", "op": "insert"}})),
            parse({**plain("w2", {"fact": {"entity": "x"}}), "as": "s"}),
            parse(plain("s", {"fact": {"signal": "x"}})),
            parse(plain("r", {"fact": {"run": "x"}})),
            parse(plain("off", {"fact": {"entity": "x"}}, enabled=False)),
            parse({**plain("hand"), "as": "s"}),
        ],
        3,
    )
    ids = {
        key: [reflex.id for reflex in held.watching(*key)]
        for key in [("write", "x", None), ("write", "x", "s"), ("signal", "x", None), ("run", "x", None)]
    }
    assert list(ids.values()) == [["w"], ["w2"], ["s"], ["r"]]
    assert [reflex.id for reflex in held.watching("manual", "off", None)] == ["off"]
    assert held.watching("manual", "hand", None) == ()
    assert held.watching("write", "x", "None") == ()
    assert held.armed == ("hand", "r", "s", "w", "w2")
    assert held.definition(held.by_id["w"].version) is held.by_id["w"]
    assert held.definition("0" * 64) is None
