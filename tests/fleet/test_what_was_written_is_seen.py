"""Who was told that something is written sees it through every node, and whoever waits for a change misses none."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from onefold.host.receipts import Receipt
from onefold.reflex import Reflexes
from onefold.terms.ids import ActorId, run_id
from tests.fleet.matrix import STORES, fleet_on, having
from tests.fleet.nodes import Fleet, Node, a_key, until
from tests.fleet.shared import PARTS, Ask, Fed, hears
from tests.guarantees.shop import Deposit, bank
from tests.host.automated import Effect, reflex


@pytest.fixture(params=STORES)
async def fleet(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Fleet]:
    async with fleet_on(request.param, tmp_path, monkeypatch, *PARTS) as fleet:
        yield fleet


def pair(fleet: Fleet) -> tuple[Node, Node]:
    """Who has runs of `hears`, and the other one."""
    owner = having(fleet, "hears")[0]
    return owner, next(node for node in fleet.nodes.values() if node is not owner)


async def test_a_set_that_was_loaded_through_one_node_is_the_set_of_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with fleet_on("sqlite", tmp_path, monkeypatch, Reflexes([], effects=[Effect()])) as fleet:
        a, b = fleet.nodes.values()
        for node in (a, b):
            node.host._core.nudged.clear()  # told of nothing
        for n, (loads, looks) in enumerate(((a, b), (b, a))):
            await loads.app.reflexes.load([reflex(id=f"shop.n{n}")])
            assert [row.id for row in await looks.app.reflexes.list()] == [f"shop.n{n}"]
            assert f"shop.n{n}" in (await looks.app.reflexes.graph()).text
            assert (await looks.app.reflexes.preview(f"shop.n{n}")).reflex == f"shop.n{n}"
            assert (await looks.app.reflexes.fire(f"shop.n{n}")).id


async def test_whoever_was_taken_from_shows_what_the_next_owner_wrote(fleet: Fleet) -> None:
    for owner, other in (nodes := list(fleet.nodes.values()), nodes[::-1]):
        owner.part.membership.nudge = lambda: None  # type: ignore[method-assign]  # it looks when it must, and no sooner
        for n, verb in enumerate((other.app.fleet.seize, other.app.fleet.claim)):
            key = a_key(owner, "bank", of=f"taken{n}")
            name = f"bank/{key}" if n else owner.part.membership.standing.name_of(ActorId("bank", None, key))
            await owner.app.deliver(bank, Deposit("d", key, 1))
            epoch = (await verb(name)).epoch  # type: ignore[union-attr]
            await other.app.deliver(bank, Deposit("e", key, 1))
            assert (await owner.app.read(bank, key)).balance == 2
            await other.app.fleet.release(name, epoch=epoch)
            if n:
                await owner.app.deliver(bank, Deposit("f", key, 1))
                assert (await other.app.read(bank, key)).balance == 3


async def waiting(owner: Node) -> Receipt[int]:
    """A run of this node that waits for an event."""
    key = next(key for key in map(str, range(1_000)) if owner.owns("hears", run_id(None, "hears", key)))
    receipt = await owner.app.start(hears, Ask(n=1), key=key)

    async def waits() -> bool:
        return (await owner.app.receipt(receipt.run_id)).status == "waiting"

    await until(waits)
    return receipt


async def test_whoever_waits_from_afar_says_what_was_seen_and_misses_nothing(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = pair(fleet)
    receipt = await waiting(a)
    router = b.host._core.router
    assert router is not None
    watch, missed = router.watch, []

    async def late(at: ActorId, seen: int) -> None:
        """The run ends between the look and the watch."""
        await receipt.send(Fed(n=1))
        await receipt.result()
        missed.append(seen >= (await a.host._core.node.seen(at)).durable_seq)
        await watch(at, seen)

    monkeypatch.setattr(router, "watch", late)
    await (await b.app.receipt(receipt.run_id)).result()
    assert missed == [False]


async def test_what_another_node_has_shown_is_shown_by_the_owner_too(fleet: Fleet) -> None:
    """Also while the owner has not heard yet that its own commit is done."""
    a, b = pair(fleet)
    receipt = await waiting(a)
    at = ActorId("hears", None, receipt.run_id)

    resident = await a.host._core.node.activate(at)
    before, seq = resident.durable, resident.durable_seq
    await b.app.runs.cancel(receipt.run_id)
    resident.durable, resident.durable_seq, resident.pending = before, seq, 1  # as while its batch is on its way
    try:
        for node in (b, a):
            assert (await node.app.receipt(receipt.run_id)).status == "cancelled"
            assert [r.status for r in (await node.app.runs.list(program="hears")).items][:1] == ["cancelled"]
            assert (await node.app.approvals.list()) == []
    finally:
        resident.pending = 0
        a.host._core.node.evict(at)
