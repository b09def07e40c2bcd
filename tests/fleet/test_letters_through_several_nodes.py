"""Letters of one sender are turns in the order of posting, through whichever nodes they were posted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from onefold.fleet.mailbox import MAIL, MAILS, Waiting, box, letter, waiting
from onefold.host.letterbox import AT_ONCE, Letterbox
from onefold.store.contract import AuthorSpace, Last, Remove
from onefold.store.postgres import PostgresWorld
from onefold.store.sqlite import SqliteWorld
from onefold.terms.errors import StoreUnavailable
from onefold.terms.ids import ActorId
from tests.postgres import fresh_database

ROOM = ActorId("Room", None, "lobby")


class Node:
    """A process, as far as it posts."""

    def __init__(self, space: AuthorSpace) -> None:
        self.space = space
        self.told: list[Waiting] = []
        self._box = Letterbox(self._tells, shared=True)

    def _tells(self, to: ActorId, mail: Waiting | None) -> None:
        if mail is not None:
            self.told.append(mail)

    async def post(self, key: str, n: int = 0) -> None:
        """n: the number it has; without one, the next."""
        row = letter(n or self.space.mint(MAIL), ROOM, f"d/{key}", "ada", b"{}", 0)
        await self._box.post(self.space, row, None)

    async def holds(self) -> list[str]:
        (rows,) = await self.space.look(box(ROOM, 10_000))
        return [waiting(row).event[2:] for row in rows]


@pytest.fixture(params=["sqlite", "postgres"])
async def pair(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[tuple[Node, Node]]:
    url = fresh_database() if request.param == "postgres" else ""

    def world(name: str) -> Any:
        return PostgresWorld(url, node=name) if url else SqliteWorld(tmp_path, clock=lambda: 0, shared=True, node=name)

    worlds = [world("a"), world("b")]
    first, second = [Node(await each.open("main", (MAILS,))) for each in worlds]
    yield first, second
    for each in worlds:
        await each.close()


def taken_away(numbers: list[Any]) -> Any:
    def body() -> Any:
        yield ()
        return Last((Remove(MAIL, keys=[(n,) for n in numbers]),), None)

    return body


async def minted(space: AuthorSpace) -> int:
    """The next number, once it has come."""
    while True:
        try:
            return space.mint(MAIL)
        except StoreUnavailable:
            await asyncio.sleep(0)


async def test_letters_keep_their_order_through_nodes_by_turns(pair: tuple[Node, Node]) -> None:
    for n in range(12):
        await pair[n % 2 if n < 8 else n // 2 % 2].post(str(n))
    assert await pair[0].holds() == [str(n) for n in range(12)]


async def test_many_that_are_posted_at_once_stay_behind_those_of_another_node(pair: tuple[Node, Node]) -> None:
    """More than one commit takes; the first of them is numbered anew."""
    last, first = pair
    await last.post("numbers")
    await first.post("numbers")
    await first.post("before")
    await asyncio.gather(*(last.post(str(n)) for n in range(AT_ONCE + 8)))
    assert (await first.holds())[-AT_ONCE - 9 :] == ["before", *(str(n) for n in range(AT_ONCE + 8))]


async def test_one_that_is_high_enough_waits_for_its_senders_before_it(pair: tuple[Node, Node]) -> None:
    last, first = pair
    low = last.space.mint(MAIL)
    while (before := await minted(first.space)) <= low:
        pass
    await first.post("before", before)
    while (high := await minted(last.space)) <= before:
        pass
    await asyncio.gather(last.post("low", low), last.post("high", high))
    assert (await first.holds())[-3:] == ["before", "low", "high"]


class Gated:
    """A space whose commits wait until they are let in, one at a time."""

    def __init__(self, space: Any) -> None:
        self._space = space
        self.waiting: list[Any] = []

    def join(self, party: Any) -> None:
        self.waiting.append(party)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._space, name)

    async def lets_one_in(self) -> None:
        party, done = self.waiting.pop(0), asyncio.Event()
        landed = party.landed

        def lands(outcome: Any, /) -> None:
            landed(outcome)
            done.set()

        party.landed = lands
        self._space.join(party)
        await done.wait()


async def test_letters_that_are_numbered_anew_are_not_passed_by_those_posted_after_them(
    pair: tuple[Node, Node],
) -> None:
    """What overtook them is a turn by the time those behind them are looked at, which then seem to be high enough."""
    last, first = pair
    await last.post("numbers")
    await first.post("numbers")
    await first.post("before")
    gated = last.space = Gated(last.space)
    posts = asyncio.gather(*(last.post(str(n)) for n in range(AT_ONCE + 8)))
    await asyncio.sleep(0)
    await gated.lets_one_in()
    (rows,) = await first.space.look(box(ROOM, 10))
    await first.space.transact(taken_away([row[0] for row in rows]))
    while not posts.done():
        if gated.waiting:
            await gated.lets_one_in()
        await asyncio.sleep(0)  # numbers may be on their way
    await posts
    assert await first.holds() == [str(n) for n in range(AT_ONCE + 8)]


async def test_a_postman_is_told_the_number_that_a_letter_got(pair: tuple[Node, Node]) -> None:
    for n in range(6):
        await pair[1 - n % 2].post(str(n))
    (rows,) = await pair[0].space.look(box(ROOM, 100))
    told = sorted((mail for node in pair for mail in node.told), key=lambda mail: mail.n)
    assert told == [waiting(row) for row in rows]
