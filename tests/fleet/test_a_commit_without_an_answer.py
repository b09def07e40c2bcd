"""A fleet over a store that loses the answers of COMMIT on every node, while owners change: each turn is found by its id.

Of every few commits one happened and nobody said so, and one never happened and nobody could tell; renewals of leases and
changes of owners among them.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from itertools import count
from typing import Any

import pytest

from onefold.host.routing import Router
from onefold.kernel.tables import ACTOR, TURN
from onefold.node import node as kernel
from onefold.node.lane import Lane
from onefold.node.node import Node as Kernel
from onefold.store.batch import Lost
from onefold.store.contract import Done, Query, Unknown
from onefold.store.postgres.failing import unavailable
from onefold.store.postgres.together import Together
from onefold.store.postgres.wire import Wire
from onefold.terms.errors import OnefoldError, OutcomeUnknown
from onefold.terms.ids import ActorId
from tests.fleet.nodes import SECRET, SLOTS, Fleet, Node, a_key, fleet_of, until
from tests.guarantees.shop import Accepted, Declined, Deposit, PayOut, Provider, make

CALLS, EACH = 60, 2  # of each caller, and callers of each key
HAND, HAPPENED, NEVER = 25, 3, 2  # of each so many commits: lost after they happened, and before
CELLS = 3
SEED = 11


class Lossy:
    """What becomes of each COMMIT of every world of this process while `losing`.

    Dealt, not rolled: how many commits there are is up to the group commit, and of each HAND of them the same share is lost.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.losing = False
        self.lost = {"happened": 0, "never": 0}
        self._chance = random.Random(SEED)
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
    chance, moved = random.Random(SEED), 0
    while not ends.is_set() or not moved:
        try:
            await chance.choice(nodes).app.fleet.seize(f"slot/{chance.randrange(SLOTS)}")
            moved += 1
        except OnefoldError:
            pass
        await asyncio.sleep(0.01)
    return moved


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


def retries_blindly(twin: pytest.MonkeyPatch) -> None:
    """What nobody knows of is folded again as if it were new."""
    fold = Kernel.fold

    async def again(node: Kernel, at: ActorId, event: str | None, *given: Any, **more: Any) -> Any:
        for n in count():
            try:
                return await fold(node, at, f"{event}~{n}" if n and event else event, *given, **more)
            except OutcomeUnknown:
                if event is None:
                    raise
        return None

    twin.setattr(kernel, "OutcomeUnknown", type("Unheard", (Exception,), {}))
    twin.setattr(Kernel, "fold", again)


def takes_it_for_done(twin: pytest.MonkeyPatch) -> None:
    """What nobody knows of is answered."""
    landed = Lane.landed
    twin.setattr(Lane, "landed", lambda lane, came: landed(lane, Done(None) if isinstance(came, Unknown) else came))


@pytest.mark.parametrize("broken", [retries_blindly, takes_it_for_done])
async def test_a_kernel_that_does_not_look_up_what_became_of_a_commit_is_caught(
    fleet: Fleet, lossy: Lossy, monkeypatch: pytest.MonkeyPatch, broken: Callable[[pytest.MonkeyPatch], None]
) -> None:
    with monkeypatch.context() as twin:
        broken(twin)
        keys, replies = await played(fleet, lossy)
    assert await wrong(fleet, keys, replies) != []
