"""A ring is bounded, says so, and every letter taken from it is a debt until somebody settles it."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onefold.fleet import Closed, Full, Mail, Ring, Taken, Unsettled
from onefold.fleet.ring import holding


@pytest.fixture(autouse=True)
def none_left() -> Iterator[None]:
    yield
    for ring in holding():
        ring.drop()


async def test_a_letter_is_offered_taken_and_settled() -> None:
    ring: Ring[str] = Ring(2)
    assert await ring.offer("a") == Taken()
    async for mail in ring:
        assert mail.letter == "a"
        assert ring.unsettled == 1
        await mail.settle()
        break
    assert (ring.waiting, ring.unsettled) == (0, 0)
    ring.check()


async def test_a_full_ring_says_so_and_keeps_nothing() -> None:
    ring: Ring[str] = Ring(2)
    assert [await ring.offer(each) for each in "abc"] == [Taken(), Taken(), Full()]
    mails = aiter(ring)
    first = await anext(mails)
    assert await ring.offer("c") == Full(), "a letter that is owed still has its place"
    await first.settle()
    assert await ring.offer("c") == Taken()


async def test_a_closed_ring_takes_nothing_and_hands_out_what_it_has() -> None:
    ring: Ring[str] = Ring(2)
    await ring.offer("a")
    ring.close()
    assert await ring.offer("b") == Closed()
    seen = []
    async for mail in ring:
        seen.append(mail.letter)
        await mail.settle()
    assert seen == ["a"]


async def test_an_unsettled_letter_is_told_to_who_asks_for_the_next() -> None:
    ring: Ring[str] = Ring(4)
    await ring.offer("a")
    await ring.offer("b")
    mails = aiter(ring)
    await anext(mails)
    with pytest.raises(Unsettled, match="1 letter was taken"):
        await anext(mails)
    with pytest.raises(Unsettled):
        ring.check()


async def test_a_debt_is_paid_once() -> None:
    ring: Ring[str] = Ring(4)
    await ring.offer("a")
    mail = await anext(aiter(ring))
    await mail.settle()
    with pytest.raises(Unsettled):
        await mail.settle()


async def test_a_debt_moves_on_with_its_letter() -> None:
    ring: Ring[str] = Ring(4)
    other: Ring[str] = Ring(1)
    for each in "ab":
        await ring.offer(each)
    mails = aiter(ring)
    first = await anext(mails)
    assert first.forward(other) == Taken()
    second = await anext(mails)
    assert second.forward(other) == Full()
    assert not second.settled
    await second.settle()
    moved = await anext(aiter(other))
    assert moved.letter == "a"
    await moved.settle()


async def test_who_waits_is_woken_by_a_letter_and_by_the_end() -> None:
    ring: Ring[int] = Ring(8)
    seen: list[int] = []

    async def consume() -> None:
        async for mail in ring:
            seen.append(mail.letter)
            await mail.settle()

    consumers = [asyncio.create_task(consume()) for _ in range(3)]
    for n in range(5):
        while isinstance(await ring.offer(n), Full):  # noqa: ASYNC110 - a full ring is an answer, and nothing to wait on
            await asyncio.sleep(0)
    ring.close()
    await asyncio.gather(*consumers)
    assert sorted(seen) == list(range(5))


async def test_a_ring_with_letters_is_known_of_until_each_is_settled_forwarded_or_dropped() -> None:
    ring: Ring[str] = Ring(4)
    assert ring not in holding()
    for each in "abc":
        await ring.offer(each)
    mails = aiter(ring)
    await (await anext(mails)).settle()
    other: Ring[str] = Ring(4)
    (await anext(mails)).forward(other)
    assert (ring in holding(), other in holding()) == (True, True)
    assert (ring.letters, other.letters) == (1, 1)
    last = await anext(mails)
    assert (ring in holding(), ring.letters, ring.unsettled) == (True, 1, 1)
    await last.settle()
    assert ring not in holding()
    assert (other.drop(), other.letters, other in holding()) == (1, 0, False)


async def test_a_ring_that_was_let_go_of_with_letters_is_still_known_of() -> None:
    before = holding()
    await Ring[str](1).offer("a")
    gc.collect()
    (left,) = set(holding()) - set(before)
    assert left.letters == 1


@pytest.mark.parametrize("capacity", [0, -1])
def test_a_ring_holds_at_least_one_letter(capacity: int) -> None:
    with pytest.raises(ValueError, match="at least one letter"):
        Ring[str](capacity)


@given(st.integers(1, 4), st.lists(st.sampled_from(["offer", "take", "settle", "forward"]), max_size=60))
def test_no_letter_is_lost_doubled_or_beyond_the_bound(capacity: int, steps: list[str]) -> None:
    async def play() -> None:
        ring, other = Ring[int](capacity), Ring[int](1_000)
        offered, taken, settled = 0, list[Mail[int]](), list[int]()
        for step in steps:
            if step == "offer":
                offered += isinstance(ring.put(offered), Taken)
            elif step == "take" and ring.waiting:
                taken.append(await anext(aiter(ring)))
            elif step == "settle" and taken:
                mail = taken.pop(0)
                await mail.settle()
                settled.append(mail.letter)
            elif step == "forward" and taken:
                assert taken.pop().forward(other) == Taken()
            assert ring.waiting + ring.unsettled <= capacity
            assert offered == ring.waiting + ring.unsettled + len(settled) + other.waiting

    asyncio.run(play())
