"""Numbers are given without asking, are nobody else's, and grow along a history whoever wrote the last of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from onefold.store.contract import Append, Done, Query
from onefold.store.postgres import PostgresWorld
from onefold.store.postgres.ddl import BLOCK
from onefold.store.postgres.mint import AHEAD, MOST, Numbers
from onefold.terms.errors import StoreUnavailable
from onefold.testing.store_suite.ground import turns, writing
from onefold.testing.store_suite.tables import MAIL, SCHEMA, TURN


class Sequence:
    """A sequence that several processes take blocks of; `slow` holds an answer back."""

    def __init__(self) -> None:
        self.next = 1
        self.slow: asyncio.Event | None = None
        self.down = False

    async def __call__(self, table: str, count: int) -> list[int]:
        if self.down:
            raise StoreUnavailable("postgres", "it is down")
        first = [self.next + i * BLOCK for i in range(count)]
        self.next += count * BLOCK
        if self.slow is not None:
            await self.slow.wait()
        return first[-MOST:]


async def numbers_of(sequence: Sequence) -> Numbers:
    numbers = Numbers(sequence)
    await numbers.known(["turn"])
    return numbers


async def test_the_next_block_arrives_before_the_last_is_used_up() -> None:
    numbers = await numbers_of(Sequence())
    given = []
    for _ in range(40):
        given += [numbers.mint("turn") for _ in range(BLOCK // 2)]
        await turns(3)
    assert given == sorted(set(given))


async def test_numbers_that_ran_out_are_told_and_more_are_kept_from_then_on() -> None:
    sequence = Sequence()
    numbers = await numbers_of(sequence)
    sequence.slow = asyncio.Event()
    for _ in range(AHEAD * BLOCK):
        numbers.mint("turn")
    with pytest.raises(StoreUnavailable, match="numbers"):
        numbers.mint("turn")
    sequence.slow.set()
    await turns(3)
    for _ in range(AHEAD * BLOCK):
        numbers.mint("turn")


async def test_a_server_that_is_down_costs_no_number_that_is_there_and_the_next_are_fetched_once_it_is_back() -> None:
    sequence = Sequence()
    numbers = await numbers_of(sequence)
    sequence.down = True
    for _ in range(AHEAD * BLOCK):
        numbers.mint("turn")
    await turns(3)
    with pytest.raises(StoreUnavailable):
        numbers.mint("turn")
    await turns(3)
    sequence.down = False
    with pytest.raises(StoreUnavailable):
        numbers.mint("turn")
    await turns(3)
    assert numbers.mint("turn") == AHEAD * BLOCK + 1


@pytest.mark.parametrize("number", [1, 5, BLOCK, BLOCK + 7, 5 * BLOCK, 40 * BLOCK + 3, 10**8])
async def test_what_comes_next_is_above_a_number_that_was_read_and_skips_none_twice(number: int) -> None:
    sequence = Sequence()
    one, two = await numbers_of(sequence), await numbers_of(sequence)
    given = [one.mint("turn") for _ in range(3)] + [two.mint("turn") for _ in range(3)]
    await one.above("turn", number)
    more = [one.mint("turn") for _ in range(BLOCK // 2)]
    assert min(more) > number
    given += more + [two.mint("turn") for _ in range(BLOCK)]
    assert len(set(given)) == len(given)


async def test_others_are_given_numbers_while_a_history_of_another_process_is_caught_up_with() -> None:
    sequence = Sequence()
    numbers = await numbers_of(sequence)
    sequence.next += 100 * BLOCK
    sequence.slow = asyncio.Event()
    raising = asyncio.create_task(numbers.above("turn", 50 * BLOCK))
    await turns(3)
    assert numbers.mint("turn") < 50 * BLOCK
    sequence.slow.set()
    await raising
    assert numbers.mint("turn") > 50 * BLOCK


async def test_a_block_that_was_on_its_way_before_another_process_took_its_own_is_not_used_above_it() -> None:
    sequence = Sequence()
    one = await numbers_of(sequence)
    sequence.slow = asyncio.Event()
    for _ in range(BLOCK):
        one.mint("turn")
    await turns(3)  # the next is on its way
    foreign = sequence.next + 5
    sequence.next += BLOCK
    waiting = asyncio.create_task(one.above("turn", foreign))
    await turns(3)
    sequence.slow.set()
    await waiting
    assert one.mint("turn") > foreign


@pytest.fixture
async def worlds(postgres: str) -> AsyncIterator[list[PostgresWorld]]:
    worlds = [PostgresWorld(postgres) for _ in range(3)]
    yield worlds
    for world in worlds:
        await world.close()


async def test_processes_mint_apart_and_a_history_that_moves_between_them_grows(worlds: list[PostgresWorld]) -> None:
    spaces = [await world.open("main", [SCHEMA]) for world in worlds]
    prev = None
    for place in (2, 0, 1, 0, 2, 1):
        space = spaces[place]
        (found,) = await space.look(Query(TURN, (("actor", "=", 7),), order=("-n",), limit=1))
        assert [row[0] for row in found] == ([] if prev is None else [prev])
        n = space.mint(TURN)
        assert prev is None or n > prev
        outcome = await space.transact(writing(Append(TURN, [(n, 7, prev, f"e{n}", b"")])))
        assert isinstance(outcome, Done)
        prev = n
    minted = [space.mint(MAIL) for space in spaces for _ in range(1000)]
    assert len(set(minted)) == 3000


async def test_processes_that_open_a_new_database_at_once_make_it_once(postgres: str) -> None:
    worlds = [PostgresWorld(postgres) for _ in range(6)]
    spaces = await asyncio.gather(*[world.open(f"s{i % 3}", [SCHEMA]) for i, world in enumerate(worlds)])
    assert len({space.number for space in spaces}) == 3
    for world in worlds:
        await world.close()
