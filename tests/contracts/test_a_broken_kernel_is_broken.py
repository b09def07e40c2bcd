"""Each broken twin of the kernel does its work when nothing fails, and breaks its one promise where something does."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from onefold import Answer, Decision, Module, Owed, Step, port
from onefold.kernel.tables import ALARM
from onefold.store.contract import Query
from onefold.terms.errors import OnefoldError
from onefold.testing import Stage, staged
from onefold.testing.broken.kernels import BROKEN_KERNELS, BrokenKernel, broken_kernel


@dataclass(frozen=True)
class Purse:
    coins: int = 0
    until: datetime | None = None


@dataclass(frozen=True)
class Add:
    id: str
    coins: int


@dataclass(frozen=True)
class Take:
    id: str
    coins: int


@dataclass(frozen=True)
class Changed:
    by: int
    until: datetime | None


@dataclass(frozen=True)
class Kept:
    purse: Purse


@dataclass(frozen=True)
class Left:
    coins: int


@dataclass(frozen=True)
class Short:
    by: int


@dataclass(frozen=True)
class Receipt:
    left: int  # of the state, so that whoever decides again sends something else


Fact = Changed | Kept


def decide(purse: Purse, event: Add | Take, now: datetime) -> Decision[Fact, Left | Short]:
    match event:
        case Add(coins=coins):
            return Decision(facts=[Changed(coins, purse.until)], reply=Left(purse.coins + coins))
        case Take(coins=coins) if coins > purse.coins:
            return Decision(reply=Short(coins - purse.coins))
        case Take(id=id, coins=coins):
            left = purse.coins - coins
            return Decision(
                facts=[Changed(-coins, now + timedelta(hours=1))],
                owed=[Owed("print", id, Receipt(left))],
                reply=Left(left),
            )


def evolve(purse: Purse, fact: Fact) -> Purse:
    match fact:
        case Changed(by, until):
            return Purse(purse.coins + by, until)
        case Kept(kept):
            return kept


def on_answer(purse: Purse, answer: Answer[int], now: datetime) -> Decision[Fact, None]:
    return Decision()


def on_alarm(purse: Purse, now: datetime) -> Decision[Fact, None]:
    return Decision(facts=[Changed(0, None)])


def view(purse: Purse) -> Purse:
    return purse


def snapshot(purse: Purse) -> Kept:
    return Kept(purse)


purses: Module[Purse, Add | Take, Fact, Left | Short, Purse] = Module(
    "purses",
    initial=Purse(),
    key=lambda event: "p",
    decide=decide,
    evolve=evolve,
    view=view,
    on_answer=on_answer,
    on_alarm=on_alarm,
    wake=lambda purse: purse.until,
    snapshot=snapshot,
    snapshot_every=3,
)


class Printer:
    """The other side of the port: what came under each key, and how often it is to fail."""

    def __init__(self) -> None:
        self.printed: list[tuple[str, Receipt]] = []
        self.fails = 0

    def part(self) -> port.Port[Receipt, int]:
        @port.dedupes("print")
        async def print_it(step: Step, body: Receipt) -> int:
            self.printed.append((step.key, body))
            if self.fails:
                self.fails -= 1
                raise OSError("no paper")
            return len(self.printed)

        return print_it


def failing_commit(stage: Stage, hit: int) -> None:
    """The disk fails once, at the `hit`-th commit from now."""
    left = hit

    def fail(point: str) -> None:
        nonlocal left
        left -= point == "before-commit"
        if left == 0 and point == "before-commit":
            raise OSError(errno.EIO, "Input/output error")

    stage.failpoint = fail


async def say(stage: Stage, event: Add | Take) -> Any:
    try:
        return await stage.host.deliver(purses, event, caller=stage.caller())
    except OnefoldError as fault:
        return type(fault)


async def coins(stage: Stage) -> int:
    purse: Purse = await stage.host.read(purses, "p", caller=stage.caller())
    return purse.coins


async def it_works(stage: Stage, printer: Printer) -> bool:
    """A day on which nothing fails."""
    assert await say(stage, Add("a1", 10)) == Left(10)
    assert await say(stage, Take("t1", 4)) == Left(6)
    assert await say(stage, Take("t2", 40)) == Short(34)
    await stage.settle()
    assert await say(stage, Take("t1", 4)) == Left(6)
    await stage.advance("2h")
    await stage.crash()
    assert await stage.host.read(purses, "p", caller=stage.caller()) == Purse(6)
    return [body for _, body in printer.printed] == [Receipt(6)]


async def counts_once(stage: Stage, printer: Printer) -> bool:
    failing_commit(stage, 2)
    await say(stage, Add("a1", 10))
    await say(stage, Add("a2", 1))
    await stage.crash()
    await say(stage, Add("a1", 10))
    await say(stage, Add("a2", 1))
    return await coins(stage) == 11


async def arms(stage: Stage, printer: Printer) -> bool:
    await say(stage, Add("a1", 10))
    failing_commit(stage, 2)
    await say(stage, Take("t1", 1))
    space = await stage.host.space("main")
    (rows,) = await space.look(Query(ALARM))
    return bool(rows)


async def sends_the_same(stage: Stage, printer: Printer) -> bool:
    printer.fails = 1
    await say(stage, Add("a1", 10))
    await say(stage, Take("t1", 1))
    await stage.settle()
    await say(stage, Add("a2", 5))
    await stage.advance("10m")
    return [body for _, body in printer.printed] == [Receipt(9)] * 2


async def keeps_what_it_answered(stage: Stage, printer: Printer) -> bool:
    stage.kill_at("before-commit")
    telling = asyncio.create_task(say(stage, Add("a1", 10)))
    await stage.let_die()
    answered = telling.done()
    telling.cancel()
    stage.live_on()
    await stage.open()
    return await coins(stage) == (10 if answered else 0)


async def keeps_its_first_answer(stage: Stage, printer: Printer) -> bool:
    await say(stage, Add("a1", 10))
    failing_commit(stage, 1)
    _, second = await asyncio.gather(say(stage, Take("t1", 10)), say(stage, Take("t2", 10)))
    again = await say(stage, Take("t2", 10))
    return isinstance(second, type) or again == second


async def remembers(stage: Stage, printer: Printer) -> bool:
    for n in range(5):
        await say(stage, Add(f"a{n}", 1))
    await stage.settle()
    return await say(stage, Add("a0", 1)) == Left(1) and await coins(stage) == 5


async def remembers_what_was_pruned(stage: Stage, printer: Printer) -> bool:
    for n in range(5):
        await say(stage, Add(f"a{n}", 1))
    await stage.settle()
    await stage.host.prune(purses, "p", caller=stage.caller())
    return await say(stage, Add("a0", 1)) == Left(1) and await coins(stage) == 5


SHOWN: dict[str, Callable[[Stage, Printer], Awaitable[bool]]] = {
    "id-apart": counts_once,
    "alarm-apart": arms,
    "bytes-rebuilt": sends_the_same,
    "reply-early": keeps_what_it_answered,
    "decline-early": keeps_its_first_answer,
    "ids-freed": remembers,
    "ids-pruned": remembers_what_was_pruned,
}


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return "memory:" if request.param == "memory" else str(tmp_path)


async def seen(twin: BrokenKernel | None, store: str, scene: Callable[[Stage, Printer], Awaitable[bool]]) -> bool:
    printer = Printer()
    async with staged(purses, printer.part(), store=store, fit=None if twin is None else twin.fit) as stage:
        return await scene(stage, printer)


@pytest.mark.parametrize("name", SHOWN)
async def test_the_sound_kernel_keeps_what_each_twin_breaks(store: str, name: str) -> None:
    assert await seen(None, store, SHOWN[name])


@pytest.mark.parametrize("twin", BROKEN_KERNELS, ids=lambda twin: twin.name)
async def test_a_twin_breaks_its_promise(store: str, twin: BrokenKernel) -> None:
    assert not await seen(twin, store, SHOWN[twin.name])


@pytest.mark.parametrize("twin", BROKEN_KERNELS, ids=lambda twin: twin.name)
async def test_a_twin_works_while_nothing_fails(store: str, twin: BrokenKernel) -> None:
    assert await seen(twin, store, it_works)


def test_every_twin_is_shown_and_found_by_its_name() -> None:
    assert set(SHOWN) == {twin.name for twin in BROKEN_KERNELS}
    assert [broken_kernel(name).name for name in SHOWN] == list(SHOWN)
    assert replace(broken_kernel("id-apart"), name="x").fault == broken_kernel("id-apart").fault
