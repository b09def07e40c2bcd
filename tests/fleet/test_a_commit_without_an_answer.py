"""A fleet over a store that loses the answers of COMMIT on every node, while owners change: each turn is found by its id.

Of every few commits one happened and nobody said so, and one never happened and nobody could tell; renewals of leases and
changes of owners among them.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from onefold.host.routing import Router
from onefold.kernel.tables import ACTOR, TURN
from onefold.store.batch import Lost
from onefold.store.contract import Query
from onefold.store.postgres.failing import unavailable
from onefold.store.postgres.together import Together
from onefold.store.postgres.wire import Wire
from onefold.terms.errors import OnefoldError
from tests.fleet.nodes import SECRET, SLOTS, Fleet, Node, a_key, fleet_of, until
from tests.guarantees.shop import Accepted, Declined, Deposit, PayOut, Provider, make

CALLS, EACH = 60, 2  # of each caller, and callers of each key
HAND, HAPPENED, NEVER = 25, 3, 2  # of each so many commits: lost after they happened, and before
CELLS = 3


class Lossy:
    """What becomes of each COMMIT of every world of this process while `losing`.

    Dealt, not rolled: how many commits there are is up to the group commit, and of each HAND of them the same share is lost.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.losing = False
        self.lost = {"happened": 0, "never": 0}
        self._chance = random.Random(11)
        self._hand: list[str] = []
        commits: Callable[..., Any] = Together._commit

        async def commit(together: Together, wire: Wire) -> None:
            fate = self._dealt() if self.losing else "kept"
            if fate != "never":
                await commits(together, wire)
            if fate == "kept":
                return
            self.lost[fate] += 1
            together.sent = True
            raise Lost(unavailable("08"))

        monkeypatch.setattr(Together, "_commit", commit)

    def _dealt(self) -> str:
        if not self._hand:
            self._hand = ["happened"] * HAPPENED + ["never"] * NEVER + ["kept"] * (HAND - HAPPENED - NEVER)
            self._chance.shuffle(self._hand)
        return self._hand.pop()


@pytest.fixture
def lossy(monkeypatch: pytest.MonkeyPatch) -> Lossy:
    monkeypatch.setenv("ONEFOLD_SECRET", SECRET)
    monkeypatch.setattr(Router, "tell", lambda self, peer: None)  # whose names were seized hears of it at its own beat
    return Lossy(monkeypatch)


@pytest.fixture
def provider() -> Provider:
    return Provider()


@pytest.fixture
async def fleet(lossy: Lossy, provider: Provider) -> AsyncIterator[Fleet]:
    async with fleet_of(make(), provider.dedupes()) as fleet:
        yield fleet
        lossy.losing = False


async def told(nodes: list[Node], event: Deposit | PayOut, first: int) -> Any:
    """What became of it, asked of one node after the other until one of them knows."""
    for n in range(1_000):
        try:
            return await nodes[(first + n) % len(nodes)].app.deliver(make(), event)
        except OnefoldError as fault:
            if fault.retry == "never":
                raise
            await asyncio.sleep(0.005)
    raise AssertionError(f"nobody ever said what became of {event.id}")


async def owners_change(nodes: list[Node], ends: asyncio.Event) -> int:
    """Slots are seized by whoever comes, whatever is on its way."""
    chance, count = random.Random(3), 0
    while not ends.is_set():
        try:
            await chance.choice(nodes).app.fleet.seize(f"slot/{chance.randrange(SLOTS)}")
            count += 1
        except OnefoldError:
            pass
        await asyncio.sleep(0.01)
    return count


async def played(fleet: Fleet, lossy: Lossy) -> tuple[list[str], dict[str, list[Any]]]:
    """Deposits and a payment of each caller, and what each was told; the keys, and the replies by key."""
    nodes = list(fleet.nodes.values())
    keys = [a_key(node, "bank", of=f"{n}k") for n in range(CELLS) for node in nodes]
    replies: dict[str, list[Any]] = {key: [] for key in keys}

    async def calls(key: str, who: int) -> None:
        for n in range(CALLS):
            replies[key].append(await told(nodes, Deposit(f"{who}.{n}", key, 1), who + n))
        assert isinstance(await told(nodes, PayOut(f"out{who}", key, 1), who), Accepted | Declined)

    ends = asyncio.Event()
    lossy.losing = True
    moving = asyncio.create_task(owners_change(nodes, ends))
    await asyncio.gather(*(calls(key, who) for key in keys for who in range(EACH)))
    ends.set()
    assert await moving > 0
    lossy.losing = False
    return keys, replies


async def wrong(fleet: Fleet, keys: list[str], replies: dict[str, list[Any]]) -> list[str]:
    """Everything that counted twice, not at all, or on a state that was another's by then."""
    node = next(iter(fleet.nodes.values()))
    found = []
    space = await node.host._core.space("main")
    for key in keys:
        counted = CALLS * EACH
        state = await node.app.read(make(), key)
        if state.balance != counted - EACH:
            found.append(f"{key} has {state.balance} of {counted - EACH}")
        if len({(reply.balance, n) for n, reply in enumerate(replies[key])}) != counted:
            found.append(f"{key} was answered {len(replies[key])} times")
        ((actor, *_),) = (await space.look(Query(ACTOR, on=("kind", "principal", "key"), keys=[("bank", "-", key)])))[0]
        (turns,) = await space.look(Query(TURN, where=(("actor", "=", actor),), order=("n",)))
        before = [row[TURN.at["prev"]] for row in turns]
        if before != [None, *(row[0] for row in turns[:-1])]:
            found.append(f"the turns of {key} do not follow each other")
        deposits = [row for row in turns if str(row[TURN.at["event"]]).startswith("d/")]
        if len(deposits) != counted + EACH:
            found.append(f"{key} has {len(deposits)} turns of {counted + EACH} events")
    return found


async def test_each_turn_is_found_by_its_id_and_nothing_counts_twice(
    fleet: Fleet, lossy: Lossy, provider: Provider
) -> None:
    keys, replies = await played(fleet, lossy)
    assert (
        min(lossy.lost.values()) >= CALLS // HAND * NEVER
    )  # a caller's events follow each other: as many commits at least

    async def paid() -> bool:
        node = next(iter(fleet.nodes.values()))
        return not any([(await node.app.read(make(), key)).held for key in keys])

    await until(paid)
    assert await wrong(fleet, keys, replies) == []
    assert len(provider.paid) == len(keys) * EACH  # each payment once, by its key, however often it was tried
