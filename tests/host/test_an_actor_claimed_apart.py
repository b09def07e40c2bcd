"""An actor that one node claimed is not its slot's owner's any more, whatever that one has heard of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

import onefold
from bench.contenders.counting import Total, counter, event_bytes, notice
from onefold.fleet.words import Claimed
from onefold.host.fleet import Fleet
from onefold.terms.ids import SLOTS, ActorId, slot_of
from tests.postgres import fresh_database

Apps = tuple[onefold.App, onefold.App]


@pytest.fixture
async def apps(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Apps]:
    """Two nodes of one fleet, each with slots of its own."""
    monkeypatch.setenv("ONEFOLD_SECRET", "a secret of this test")
    url = fresh_database()
    async with AsyncExitStack() as stack:
        one, two = [
            await stack.enter_async_context(onefold.App(counter, notice, store=url, node={"name": name}))
            for name in ("one", "two")
        ]
        while not fleet(two).membership.standing.held_slots():
            await fleet(one).membership.look()
            await fleet(two).membership.look()
        yield one, two


def fleet(app: onefold.App) -> Fleet:
    assert app.host.fleet is not None
    return app.host.fleet


async def add(app: onefold.App, who: int, tag: str) -> None:
    await app.host.deliver_raw("counter", event_bytes(tag, who, 0), caller=app.caller)


async def count(app: onefold.App, who: int) -> int:
    total = await app.read(counter, f"c{who}")
    assert isinstance(total, Total)
    return total.count


def two_of_a_slot(app: onefold.App) -> tuple[int, int]:
    """Two counters of one slot that this node owns."""
    slots, met = set(fleet(app).membership.standing.held_slots()), dict[int, int]()
    for who in range(SLOTS * SLOTS):
        slot = slot_of(ActorId("counter", None, f"c{who}"), SLOTS)
        if slot in slots and met.setdefault(slot, who) != who:
            return met[slot], who
    raise AssertionError("no two")


async def test_its_slots_owner_learns_of_it_with_the_new_epoch_of_the_slot(
    apps: Apps, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The owner's beat does not come and nobody tells it: all it hears is that a commit of its slot was refused."""
    one, two = apps
    claimed, beside = two_of_a_slot(two)
    task = fleet(two).membership._task
    assert task is not None
    task.cancel()
    monkeypatch.setattr(fleet(one).router, "tell", lambda peer: None)
    for who in (claimed, beside):
        await add(two, who, "before")
    assert isinstance(await one.fleet.claim(f"counter/c{claimed}"), Claimed)
    await add(one, claimed, "first")
    await add(two, beside, "behind the claim")  # refused once, and decided again under the slot's new epoch
    await add(two, claimed, "second")
    await add(one, claimed, "third")
    assert await count(one, claimed) == 4
    assert await count(two, beside) == 2
