"""A deployed file does what the same file does in this process: results, step keys, ids of events, every fact."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from onefold.ports.sandbox import Deployment
from tests.actuators.home import World
from tests.ports.sandbox import programs
from tests.ports.sandbox.home import BoxedWorld, deployed

SOURCE = Path(programs.__file__).read_text()
Acts = Callable[[World], Any]


def agrees(name: str, **more: Any) -> Acts:
    return lambda world: world.decide(name, approve=True, **more)


def sends(name: str, body: bytes) -> Acts:
    return lambda world: world.send(name, body)


def rings(world: World) -> None:
    world.ring()


def raw(text: bytes) -> Any:
    from msgspec import Raw

    return Raw(text)


CASES: dict[str, tuple[str, dict[str, Any], list[Acts]]] = {
    "a small refund": ("refund_order", {"order_id": "7", "amount": "40"}, []),
    "a refund that is agreed to": ("refund_order", {"order_id": "7", "amount": "140.50"}, [agrees("manager")]),
    "a refund that is rejected": (
        "refund_order",
        {"order_id": "7", "amount": "140"},
        [lambda world: world.decide("manager", approve=False, reason="no")],
    ),
    "a refund that nobody decides": ("refund_order", {"order_id": "7", "amount": "140"}, []),
    "sleeps and an event": ("tells", {"n": 3}, [rings, sends("Ready", b'{"what":"go"}')]),
    "sleeps and no event": ("tells", {"n": 3}, []),
    "steps that fail": ("tries", {"n": 2}, []),
    "joins": ("joins", {"n": 4}, []),
    "a plain function": ("waits", {"n": 2}, []),
    "database steps": ("counts", {"n": 1}, []),
    "ports": ("sends", {"n": 1}, []),
    "an offer as it is": ("offers", {"n": 1}, [agrees("boss")]),
    "an offer that is edited": ("offers", {"n": 1}, [agrees("boss", value=raw(b'{"amount":"7","days":1}'))]),
    "an exception": ("fails", {"n": 1}, []),
    "an unfit result": ("unfit", {"n": 1}, []),
    "stuck": ("stuck", {"n": 1}, []),
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def there() -> AsyncIterator[Deployment]:
    async with deployed(SOURCE) as deployment:
        yield deployment


PLACE = re.compile(rb'"place":(?:null|"[^"]*")')


def told(world: World) -> tuple[Any, ...]:
    """All that is kept. Steps that run at once may be committed in any order; where a statement failed is of no account."""
    rows = world.rows
    tables = [list(rows.tables.execute(f"SELECT * FROM {name}")) for name in named(world)]  # noqa: S608 - ours
    turns = sorted(
        PLACE.sub(b'"place":0', turn) if b"result" in turn and b"rror_offset" in turn else turn for turn in rows.turns
    )
    return turns, sorted(rows.replies), world.state.status, bytes(world.state.result), rows.owed, tables


def named(world: World) -> list[str]:
    return [str(name) for (name,) in world.rows.tables.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("case", CASES)
async def test_every_fact_is_the_same(there: Deployment, case: str) -> None:
    name, arguments, people = CASES[case]
    trusted = World(getattr(programs, name), getattr(programs, name).check(arguments), key="k", principal="ann")
    boxed = next(one for one in there.actuators if one.name == name)
    away = BoxedWorld(boxed, await boxed.checked(arguments), key="k", principal="ann")
    for world in (trusted, away):
        world.people = list(people)
        await world.play()
    assert told(away) == told(trusted)


@pytest.mark.asyncio(loop_scope="module")
async def test_killed_at_every_commit_it_does_each_act_once(there: Deployment) -> None:
    boxed = next(one for one in there.actuators if one.name == "refund_order")
    for before in (True, False):
        kill_at = 1
        while True:
            world = BoxedWorld(boxed, await boxed.checked({"order_id": "7", "amount": "40"}))
            died = await world.survive(kill_at, before=before)
            await world.play()
            (row,) = world.rows.tables.execute("SELECT order_id, refund_id FROM refunds")
            assert row == ("7", world.result["refund_id"])
            assert len(world.state.journal) == 8
            if not died:
                break
            kill_at += 1
        assert kill_at > 8


@pytest.mark.asyncio(loop_scope="module")
async def test_a_race_has_its_winner(there: Deployment) -> None:
    """Which waits are registered while a step runs depends on how long it takes; what the function sees does not."""
    boxed = next(one for one in there.actuators if one.name == "races")
    world = BoxedWorld(boxed, await boxed.checked({"n": 4}))
    await world.play()
    assert world.result == "0 8"


@pytest.mark.asyncio(loop_scope="module")
async def test_a_journal_of_the_one_is_gone_on_with_by_the_other(there: Deployment) -> None:
    """A file is deployed that was trusted before: its runs go on in the box where they were."""
    arguments = {"order_id": "7", "amount": "140"}
    world = World(programs.refund_order, programs.refund_order.check(arguments))
    await world.play(until=lambda one: bool(one.state.open))
    world.decide("manager", approve=True)
    world.actuator = next(one for one in there.actuators if one.name == "refund_order")
    world.Life = BoxedWorld.Life
    world.restart()
    await world.play()
    assert world.state.status == "done"
    assert b"re_7_160/" in bytes(world.state.result)
