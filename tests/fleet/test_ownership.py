"""Two who reach for one thing at the same moment, on a store that serves both at once: one has it, the other knows."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from onefold.fleet.claims import claiming
from onefold.fleet.ownership import (
    CLOSED,
    FLEET,
    LEAVING,
    LIVE,
    OWNER,
    Me,
    OwnerRow,
    joining,
    over_in,
    slot_name,
    taking,
)
from onefold.fleet.words import Claimed
from onefold.kernel.tables import KERNEL
from onefold.store.contract import Body, Done, Query, Space
from onefold.store.postgres import PostgresWorld
from tests.postgres import fresh_database

LEASE = 60_000
TIMES = 30  # each race is lost more often than not where nothing stands against it


@pytest.fixture
async def spaces() -> AsyncIterator[Sequence[Space]]:
    """One space, as two processes have it."""
    url = fresh_database()
    worlds = [PostgresWorld(url) for _ in range(2)]
    yield [await world.open("main", (KERNEL, FLEET)) for world in worlds]
    for world in worlds:
        await world.close()


async def both(spaces: Sequence[Space], *bodies: Body[Any]) -> list[Any]:
    """What two bodies stand for that begin together."""
    outcomes = await asyncio.gather(*(space.transact(body) for space, body in zip(spaces, bodies, strict=True)))
    done = [outcome.value for outcome in outcomes if isinstance(outcome, Done)]
    assert len(done) == len(outcomes), outcomes
    return done


async def test_two_processes_that_join_under_one_name_have_two_lives(spaces: Sequence[Space]) -> None:
    for number in range(TIMES):
        bodies = [joining(f"node-{number}", None, LEASE, 8) for _ in spaces]
        one, two = [joined.me for joined in await both(spaces, *bodies)]
        assert {one.incarnation, two.incarnation} == {1, 2}


async def test_a_name_that_nobody_ever_had_is_taken_or_claimed_by_one(spaces: Sequence[Space]) -> None:
    ann, bob = [joined.me for joined in await both(spaces, *(joining(name, None, LEASE, 8) for name in ("ann", "bob")))]
    for number in range(TIMES):
        name = slot_name(number)
        taken, claimed = await both(spaces, taking(ann, {name: 0}, 1), claiming(name, None, bob, LEASE, 1))
        (rows,) = await spaces[0].look(Query(OWNER, on=("name",), keys=[(name,)]))
        told: list[tuple[Me, int]] = [(ann, taken[name])] if taken else []
        told += [(bob, claimed.epoch)] if isinstance(claimed, Claimed) else []
        row = OwnerRow.of(rows[0])
        assert told == [(Me(row.node, row.incarnation), row.epoch)]


async def test_a_name_that_nobody_ever_had_is_claimed_by_one_of_two(spaces: Sequence[Space]) -> None:
    lives = [joined.me for joined in await both(spaces, *(joining(name, None, LEASE, 8) for name in ("ann", "bob")))]
    for number in range(TIMES):
        name = f"Room/{number}"
        answers = await both(spaces, *(claiming(name, slot_name(0), me, None, 1) for me in lives))
        assert sum(isinstance(answer, Claimed) for answer in answers) == 1


def test_a_life_is_over_once_its_row_is_closed_or_is_the_next_ones() -> None:
    rows = [("a", 3, 0, LIVE, None, 0), ("b c", 2, 0, CLOSED, None, 0), ("d", 1, 0, LEAVING, None, 0)]
    over = over_in(rows)
    assert [over(Me(*life).text) for life in (("a", 2), ("b c", 2), ("b c", 1))] == [True, True, True]
    told = [over(Me(*life).text) for life in (("a", 3), ("a", 4), ("d", 1), ("e", 1))]
    assert [*told, over(""), over("x a"), over("1")] == [False] * 7
