"""Letters that are handed over many at a time: in order for each sender and once each, whatever the store and the folds do.

And the check has teeth: a drain that goes on past a letter that failed is caught.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from onefold.fleet.mailbox import MAIL, Waiting, letter, unparked
from onefold.fleet.posting import Post, posting
from onefold.host import postman
from onefold.host.caller import Caller, inside
from onefold.host.config import settle
from onefold.host.handing import Handing, Opened
from onefold.host.host import Host
from onefold.host.opening import open_host
from onefold.kernel.fold import Folder
from onefold.node.brought import Brought
from onefold.node.lane import Lane
from onefold.node.owning import UNGUARDED
from onefold.node.sweeping import committed
from onefold.store.contract import Done, Outcome, Refusal, Remove, Unknown
from onefold.terms.codec import canonical
from onefold.terms.errors import OnefoldError, StoreUnavailable
from onefold.terms.ids import ActorId
from onefold.testing import VirtualClock
from tests.cell.rooms import Room
from tests.contracts.backends import store_of

SENDERS = ("ada", "bob")
EACH = 60
SECRET = {"ONEFOLD_SECRET": "known to every test, and of no use"}
STORES = ("memory", "sqlite", "postgres")


class Faults:
    """What becomes of commits with letters in them, and of folds, by chance. `over`: nothing fails any more."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self._lost: set[int] = set()
        self.over = False
        self.sizes: list[int] = []
        self.failed = 0

    def _is(self, share: float) -> bool:
        found = not self.over and self._chance.random() < share
        self.failed += found
        return found

    @contextmanager
    def among(self) -> Iterator[None]:
        """A fold may fail, by itself; a commit's outcome may be unknown, whether it was made or not, or it is refused."""
        fold, body, landed = Folder.fold, Lane.body, Lane.landed

        def folded(folder: Folder, *given: Any, **more: Any) -> Any:
            if self._is(0.03):
                raise StoreUnavailable("main", "by chance")
            return fold(folder, *given, **more)

        def bodied(lane: Lane, answers: Any) -> Any:
            found = body(lane, answers)
            if found is None or not self._is(0.1):
                return found
            self._lost.add(id(lane._flying[-1]))
            return refusing

        def came(lane: Lane, outcome: Outcome[Any]) -> None:
            if lane._flying:
                batch, unknown = lane._flying[0], Unknown(StoreUnavailable("main", "by chance"))
                self.sizes.append(len(batch.turns))
                if id(batch) in self._lost:
                    self._lost.discard(id(batch))
                    outcome = unknown if self._chance.random() < 0.5 else outcome
                elif isinstance(outcome, Done) and self._is(0.1):
                    outcome = unknown
            landed(lane, outcome)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Folder, "fold", folded)
            patch.setattr(Lane, "body", bodied)
            patch.setattr(Lane, "landed", came)
            yield


def refusing() -> Any:
    yield ()
    raise Refusal(StoreUnavailable("main", "by chance"))


async def rest(host: Host) -> None:
    while not host.quiet:  # noqa: ASYNC110 - quiet is a state of many parts, and nothing to wait on
        await asyncio.sleep(0)


async def later(host: Host, clock: VirtualClock, done: Callable[[], bool]) -> None:
    """Let time pass until it is so."""
    for _ in range(10_000):
        await rest(host)
        if done():
            return
        clock.step_to(clock.next_stop(clock.now() + 60_000))
    raise AssertionError("it never came to an end")


def sent(n: int, who: str, mixed: bool) -> str:
    name = f"{who}-{n}"
    return f"x = '{name}'\nenter(x, at_most=1000)" if mixed and n % 13 == 5 else f"enter('{name}', at_most=1000)"


async def in_order(store: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Post beside each other, with faults all the while; how many turns each commit had.

    Raises: AssertionError where a letter was lost, counted twice, or went before one that its sender had posted before.
    """
    clock, faults = VirtualClock(), Faults(seed)
    monkeypatch.setattr(postman, "TOGETHER", 32)
    host = await open_host(settle(code={"store": store}, environ=SECRET), [Room], clock=clock)
    try:
        await host.cells.spawn("Room", "lobby", caller=inside(None))

        async def posts(who: str) -> None:
            for n in range(EACH):
                caller: Caller = replace(inside(None), name=who)
                await host.cells.post("Room", "lobby", sent(n, who, seed % 2 == 0), key=f"{who}-{n}", caller=caller)
                if n % 17 == 0:
                    with suppress(OnefoldError):
                        await host.cells.evict("Room", "lobby", caller=inside(None))

        with faults.among():
            await asyncio.gather(*map(posts, SENDERS))
            await later(host, clock, lambda: host._core.postman.next_due is None)
        faults.over = True
        assert faults.failed
        names = (await host.cells.read("Room", "lobby", caller=inside(None))).state["occupants"]
        for who in SENDERS:
            assert [name for name in names if name.startswith(who)] == [f"{who}-{n}" for n in range(EACH)]
        assert len(names) == len(SENDERS) * EACH
        assert await host.parked_count() == 0
    finally:
        faults.over = True
        await host.close()
    return faults.sizes


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kind", STORES)
async def test_letters_keep_their_order_and_count_once_whatever_fails(
    kind: str, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = await in_order(store_of(kind, tmp_path), seed, monkeypatch)
    assert max(sizes) > 8, "letters of one sender share commits"


async def test_a_drain_that_goes_on_past_a_letter_that_failed_is_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Brought, "is_under", lambda brought, resident: True)
    caught = 0
    for seed in range(6):
        try:
            await in_order(str(tmp_path / str(seed)), seed, monkeypatch)
        except AssertionError:
            caught += 1
    assert caught >= 3


async def test_a_drain_that_takes_letters_away_before_their_turn_is_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opens = Handing.open

    def opened(handing: Handing, mail: Waiting) -> Opened:
        found = opens(handing, mail)

        def turn(after: Brought | None) -> tuple[Brought, Awaitable[Any]]:
            brought, received = found.turn(after)

            async def early() -> None:
                space = await handing._core.space("main")
                await committed(space, UNGUARDED, (Remove(MAIL, keys=[(mail.n,)]),), "a letter")
                await received

            return brought, early()

        return Opened(found.alone, turn)

    monkeypatch.setattr(Handing, "open", opened)
    with pytest.raises(AssertionError):
        await in_order(str(tmp_path), 0, monkeypatch)


@pytest.fixture
async def host(tmp_path: Path) -> Any:
    host = await open_host(settle(code={"store": str(tmp_path)}), [Room], clock=VirtualClock())
    yield host
    await host.close()


async def raw(host: Host, id: str, source: str, key: str) -> None:
    """A letter as other code may have left it: nobody read it before it was posted."""
    space = await host.space("main")
    at, now = ActorId("Room", None, id), host._core.clock.now()
    row = letter(space.mint(MAIL), at, f"d/{key}", inside(None).name, canonical({"program": source}), now)
    assert isinstance(await space.transact(posting([Post(row)])), Done)


async def test_a_letter_that_is_no_program_is_parked_and_those_around_it_go_on(host: Host) -> None:
    caller = inside(None)
    await host.cells.spawn("Room", "lobby", caller=caller)
    host._core.postman.abandon()
    for n in range(20):
        bad = {5: "nosuch()", 6: "greet(", 12: "x" * 20_000}.get(n)
        await raw(host, "lobby", bad or f"enter('{n}', at_most=1000)", str(n))
    host._core.postman.look()
    await rest(host)
    seen = (await host.cells.read("Room", "lobby", caller=caller)).state["occupants"]
    assert seen == [str(n) for n in range(20) if n not in (5, 6, 12)]
    assert await host.parked_count() == 3


async def test_a_letter_whose_caller_went_away_is_carried_at_once(host: Host) -> None:
    caller = inside(None)
    await host.cells.spawn("Room", "lobby", caller=caller)
    await rest(host)
    post = asyncio.ensure_future(host.cells.post("Room", "lobby", "greet('a')", key="k", caller=caller))
    while host._core.letterbox._queues.get("main") is None:  # noqa: ASYNC110 - nobody is told that it is on its way
        await asyncio.sleep(0)
    post.cancel()
    with pytest.raises(asyncio.CancelledError):
        await post
    await asyncio.sleep(0.01)
    await rest(host)
    assert (await host.cells.read("Room", "lobby", caller=caller)).state["visits"] == 1


async def test_a_box_that_could_not_be_read_is_read_again(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    caller, clock = inside(None), host._core.clock
    assert isinstance(clock, VirtualClock)
    await host.cells.spawn("Room", "lobby", caller=caller)
    asked = unparked

    def fails(to: ActorId, limit: int) -> Any:
        monkeypatch.setattr(postman, "unparked", asked)
        raise StoreUnavailable("main", "by chance")

    monkeypatch.setattr(postman, "unparked", fails)
    await raw(host, "lobby", "greet('a')", "k")
    host._core.postman.look()
    await rest(host)
    assert (await host.cells.read("Room", "lobby", caller=caller)).state["visits"] == 0
    clock.step_to(clock.now() + 2_000)
    await rest(host)
    assert (await host.cells.read("Room", "lobby", caller=caller)).state["visits"] == 1


async def test_a_retired_cells_letters_wait_for_it_in_order(host: Host) -> None:
    caller, clock = inside(None), host._core.clock
    assert isinstance(clock, VirtualClock)
    await host.cells.spawn("Room", "lobby", caller=caller)
    posts = [
        host.cells.post("Room", "lobby", f"enter('{n}', at_most=1000)", key=str(n), caller=caller) for n in range(50)
    ]
    await asyncio.gather(*posts[:25])
    await host.cells.retire("Room", "lobby", caller=caller)
    await asyncio.gather(*posts[25:])
    await rest(host)
    await host.cells.spawn("Room", "lobby", caller=caller)
    await later(host, clock, lambda: host._core.postman.next_due is None)
    seen = (await host.cells.read("Room", "lobby", caller=caller)).state["occupants"]
    assert seen == [str(n) for n in range(50)][-len(seen) :]
    assert len(seen) >= 25


async def test_a_box_that_is_slow_to_empty_keeps_no_other_from_being_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postman, "AT_ONCE", 3)
    host, caller = await open_host(settle(code={"store": str(tmp_path)}), [Room], clock=VirtualClock()), inside(None)
    for id in ("slow", "other"):
        await host.cells.spawn("Room", id, caller=caller)
    host._core.postman.abandon()
    for n in range(20):
        await raw(host, "slow", "greet('a')", str(n))
    await raw(host, "other", "greet('a')", "k")
    held = object()
    await host.cells.take("Room", "slow", caller=caller, holder=held)
    host._core.postman.look()
    while not (await host.cells.read("Room", "other", caller=caller)).state["visits"]:  # noqa: ASYNC110 - as above
        await asyncio.sleep(0)
    assert (await host.cells.read("Room", "slow", caller=caller)).state["visits"] == 0
    await host.cells.let_go("Room", "slow", caller=caller, holder=held)
    await rest(host)
    assert (await host.cells.read("Room", "slow", caller=caller)).state["visits"] == 20
    await host.close()
