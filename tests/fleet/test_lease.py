"""A lease counts from when its renewal left, ends before the store's, and is renewed whatever the loop is busy with."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from onefold.fleet.ownership import CLOSED, FLEET, LEAVING, LIVE, NODE, Me, NodeRow, closing, joining, telling
from onefold.host.lease import AGAIN_PART, MARGIN_PART, PART, Lease, Renewal, Transact
from onefold.kernel.tables import KERNEL
from onefold.store.contract import Body, Done, Outcome, Query, Refused, Space, Unknown
from onefold.store.memory import MemoryWorld
from onefold.terms.errors import StoreUnavailable

MS = 8_000


class Both:
    """The boot clock of this machine, and the store's, a thousand seconds ahead."""

    def __init__(self) -> None:
        self.boot = 5_000

    def __call__(self) -> int:
        return self.boot

    def store(self) -> int:
        return self.boot + 1_000_000


@pytest.fixture
def clock() -> Both:
    return Both()


@pytest.fixture
async def space(clock: Both) -> Space:
    return await MemoryWorld(clock=clock.store).open("main", (KERNEL, FLEET))


async def joined(space: Space, name: str = "a") -> Me:
    outcome = await space.transact(joining(name, None, MS, 8))
    assert isinstance(outcome, Done)
    return outcome.value.me


async def row(space: Space) -> NodeRow:
    (rows,) = await space.look(Query(NODE, on=("name",), keys=[("a",)]))
    return NodeRow.of(rows[0])


async def test_a_lease_is_over_here_before_it_is_in_the_store(space: Space, clock: Both) -> None:
    me, lease = await joined(space), Lease(MS, clock)
    assert lease.left_ms() <= 0
    assert await lease.renew(me, space.transact) == MS // PART
    assert lease.left_ms() == MS - MS // MARGIN_PART
    clock.boot += MS - MS // MARGIN_PART
    assert lease.left_ms() == 0
    assert (await row(space)).until > clock.store()


async def test_a_renewal_counts_from_when_it_left_not_from_its_answer(space: Space, clock: Both) -> None:
    me, lease = await joined(space), Lease(MS, clock)

    async def slow(body: Body[int | None]) -> Outcome[int | None]:
        outcome = await space.transact(body)
        clock.boot += 3_000
        return outcome

    await lease.renew(me, slow)
    assert lease.left_ms() == MS - MS // MARGIN_PART - 3_000
    assert lease.now() <= clock.store()


async def test_a_renewal_that_fails_is_tried_again_soon_and_changes_nothing(space: Space, clock: Both) -> None:
    me, lease = await joined(space), Lease(MS, clock)
    await lease.renew(me, space.transact)
    left = lease.left_ms()

    async def refused(body: Body[int | None]) -> Outcome[int | None]:
        return Refused(StoreUnavailable("main", "it is away"))

    async def unknown(body: Body[int | None]) -> Outcome[int | None]:
        await space.transact(body)
        return Unknown(StoreUnavailable("main", "its answer was lost"))

    async def raises(body: Body[int | None]) -> Outcome[int | None]:
        raise StoreUnavailable("main", "it is away")

    for fails in (refused, unknown, raises):
        assert await lease.renew(me, fails) == MS // AGAIN_PART
        assert (lease.left_ms(), lease.closed) == (left, False)


async def test_a_life_that_was_closed_by_another_has_nothing_left(space: Space, clock: Both) -> None:
    me, lease = await joined(space), Lease(MS, clock)
    await lease.renew(me, space.transact)
    clock.boot += MS + 1
    other = await joined(space, "b")
    assert isinstance(await space.transact(closing(other, MS, ["a"])), Done)
    await lease.renew(me, space.transact)
    assert lease.closed
    assert lease.left_ms() == 0
    assert (await row(space)).state == CLOSED


async def test_that_a_life_was_closed_is_said_once(space: Space, clock: Both, caplog: pytest.LogCaptureFixture) -> None:
    me, lease = await joined(space), Lease(MS, clock)
    assert isinstance(await space.transact(telling(me, LIVE, CLOSED)), Done)
    for _ in range(3):
        await lease.renew(me, space.transact)
    assert [record.getMessage() for record in caplog.records] == [
        "node a was closed by another: it owns nothing any more"
    ]


async def test_a_node_that_wants_other_slots_does_not_join(space: Space) -> None:
    await joined(space)
    before = await space.look(Query(NODE))
    for name in ("a", "b"):
        outcome = await space.transact(joining(name, None, MS, 16, strict=True))
        assert isinstance(outcome, Done)
        assert outcome.value.slots == 8
        assert await space.look(Query(NODE)) == before
    outcome = await space.transact(joining("b", None, MS, 8, strict=True))
    assert isinstance(outcome, Done)
    assert outcome.value.me == Me("b", 1)


async def test_a_node_that_leaves_renews_as_such(space: Space, clock: Both) -> None:
    me, lease = await joined(space), Lease(MS, clock)
    await lease.renew(me, space.transact)
    lease.state = LEAVING
    await space.transact(telling(me, LIVE, LEAVING))
    clock.boot += 1_000
    assert await lease.renew(me, space.transact) == MS // PART
    assert lease.left_ms() == MS - MS // MARGIN_PART
    assert (await row(space)).state == LEAVING


async def test_the_store_s_clock_is_followed_and_never_run_ahead_of(space: Space, clock: Both) -> None:
    me, lease = await joined(space), Lease(MS, clock)
    await lease.renew(me, space.transact)
    assert lease.now() == clock.store()
    clock.boot += 1_234
    assert lease.now() == clock.store()


class Renewed:
    """Renewals of a thread, over a store of its own."""

    def __init__(self, faults: int = 0) -> None:
        self.count = 0
        self.closed = 0
        self.faults = faults
        self.enough = threading.Event()
        self.threads: set[int] = set()

    async def open(self) -> tuple[Transact, Callable[[], None]]:
        if self.faults:
            self.faults -= 1
            raise StoreUnavailable("main", "it is away")
        return self._transact, self._close

    async def _transact(self, body: Body[int | None]) -> Any:
        self.threads.add(threading.get_ident())
        self.count += 1
        if self.count >= 3:
            self.enough.set()
        return Done(1)

    def _close(self) -> None:
        self.closed += 1


async def test_a_loop_that_is_blocked_does_not_lose_the_lease() -> None:
    lease, renewed = Lease(40), Renewed()
    renewal = Renewal(lease, renewed.open)
    renewal.begin(Me("a", 1))
    assert renewed.enough.wait(30)  # blocks this loop: the three came from beside it
    renewal.end()
    await renewal.ended()
    assert threading.get_ident() not in renewed.threads
    assert renewed.closed == 1


async def test_a_store_that_is_away_is_opened_again_until_it_is_there() -> None:
    lease, renewed = Lease(40), Renewed(faults=2)
    renewal = Renewal(lease, renewed.open)
    renewal.begin(Me("a", 1))
    assert await asyncio.to_thread(renewed.enough.wait, 30)
    renewal.end()
    await renewal.ended()


async def test_a_renewal_that_is_ended_as_it_begins_does_not_wait_for_its_next() -> None:
    for _ in range(20):
        renewed = Renewed()
        renewal = Renewal(Lease(3_600_000), renewed.open)
        renewal.begin(Me("a", 1))
        renewal.end()
        async with asyncio.timeout(60):  # else a quarter of an hour
            await renewal.ended()
        assert renewed.count <= 1
