"""A set is loaded whole or not at all, wherever the process dies, and whoever else loads at the same time."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from onefold.reflex.grammar import parse
from onefold.reflex.load import LoadedSet, loading, reloading
from onefold.reflex.tables import LEDGER, STATE
from onefold.store.contract import Done, Query, Space
from onefold.store.postgres import PostgresWorld
from onefold.terms.instant import down
from onefold.testing.store_suite.ground import quietly
from tests.postgres import fresh_database
from tests.reflex.definitions import plain
from tests.reflex.ground import STORES, T0, At, ground
from tests.reflex.test_a_crash_loses_nothing import Death, live

DAILY = {"clock": {"every": "day", "at": "09:00", "tz": "UTC"}}
HEARS = {"fact": {"entity": "x"}}
FIRST = [plain("a", DAILY), plain("b", HEARS), plain("c", DAILY)]
SECOND = [plain("a", DAILY, params={"n": 1}), plain("b", HEARS, enabled=False), plain("d", DAILY)]


def armed(definitions: list[Any]) -> dict[str, tuple[str, bool]]:
    return {reflex.id: (reflex.version, reflex.enabled) for reflex in map(parse, definitions)}


async def held(space: Space) -> LoadedSet:
    outcome = await space.transact(reloading)
    assert isinstance(outcome, Done)
    return outcome.value.loaded()


def of(held: LoadedSet) -> dict[str, tuple[str, bool]]:
    return {id: (reflex.version, reflex.enabled) for id, reflex in held.by_id.items()}


def loads(definitions: list[Any]) -> Any:
    async def load(at: At) -> None:
        await (await at.space()).transact(loading([parse(one) for one in definitions], down(T0)))

    return load


async def lives(store: str, hit: int) -> bool:
    """Dies once, at this failpoint of the second load. False: it was never met."""
    async with ground(store) as at:
        await live(at, None, loads(FIRST))
        died = await live(at, Death(hit), loads(SECOND))
        await at.reopen()
        found = await held(await at.space())
        assert (found.generation, of(found)) in [(1, armed(FIRST)), (2, armed(SECOND))]
        await live(at, None, loads(SECOND))
        found = await held(await at.space())
        assert (found.generation, of(found)) == (2, armed(SECOND))
        assert (await at.state("c"))["next_at"] is None
        return died


@pytest.mark.parametrize("store", [*STORES, "postgres"])
async def test_a_load_that_dies_anywhere_was_whole_or_was_not(store: str) -> None:
    async with quietly():
        hit = 1
        while await lives(store, hit):
            hit += 1
    assert hit >= 5, f"{hit} places"


async def test_two_nodes_that_load_at_once_leave_one_whole_set_and_know_which() -> None:
    """On connections of their own: each load is one of a row that all of them lock first."""
    url = fresh_database()
    worlds = [PostgresWorld(url, node=name, durability="lossy-on-power-cut") for name in ("a", "b", "c")]
    chance = random.Random(7)
    sets = [[plain(f"r{n}", DAILY, params={"of": k}) for n in chance.sample(range(30), 12)] for k in range(9)]
    try:
        spaces = [await world.open("main", [LEDGER]) for world in worlds]

        async def node(space: Space, mine: list[list[Any]]) -> list[tuple[int, dict[str, Any]]]:
            told = []
            for definitions in mine:
                outcome = await space.transact(loading([parse(one) for one in definitions], down(T0)))
                assert isinstance(outcome, Done), outcome
                told.append((outcome.value, armed(definitions)))
            return told

        by_node = await asyncio.gather(*(node(space, sets[k::3]) for k, space in enumerate(spaces)))
        loaded = dict(pair for told in by_node for pair in told)
        assert sorted(loaded) == list(range(1, 10))  # nine different sets, nine generations, none given twice
        for space in spaces:
            found = await held(space)
            assert (found.generation, of(found)) == (9, loaded[9])
        (rows,) = await spaces[0].look(Query(STATE))
        assert {row[0] for row in rows if row[STATE.at["gen"]] == 9} == {"", *loaded[9]}
        assert all(row[STATE.at["next_at"]] is None for row in rows if row[STATE.at["gen"]] != 9)
    finally:
        for world in worlds:
            await world.close()
