"""A node that is cut off from the database, or from the other nodes, or whose answers get lost on their way."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.simulation.cables import Cable, database
from tests.simulation.fleet_callers import KEYS, Load
from tests.simulation.fleets import LEASE_MS, TAKEN_OVER_S, Fleet, Member, client, within

SEEDS = range(8) if os.environ.get("ONEFOLD_DEEP") else range(1)
pytestmark = pytest.mark.parametrize("seed", SEEDS)


@pytest.fixture
async def fleet(postgres: str, tmp_path: Path) -> AsyncIterator[Fleet]:
    async with Fleet(postgres, tmp_path) as fleet:
        yield fleet


async def behind(fleet: Fleet, stack: AsyncExitStack, name: str, twins: Sequence[str] = ()) -> tuple[Member, Cable]:
    """A node that reaches the database over a cable of the test's."""
    to, url = database(fleet.store)
    cable = await stack.enter_async_context(Cable(to))
    return await fleet.node(name, store=url.format(port=cable.port), twins=twins), cable


@pytest.mark.parametrize("how", ["cut", "hold"])
async def test_a_node_without_its_database_ends_by_itself_before_another_begins(
    fleet: Fleet, seed: int, how: str
) -> None:
    async with AsyncExitStack() as stack:
        await fleet.nodes("bc")
        lost, cable = await behind(fleet, stack, "a")
        await fleet.settled("abc")
        fleet.watch()
        away: list[Member] = []  # a caller that asks it waits for as long as it may
        load = Load(fleet, seed, lambda: [each.url for each in fleet.members.values() if each not in away])
        async with load, client(30.0) as patient:
            await load.some(100)
            key = (await fleet.cells_of("a", KEYS))[0]
            before, _ = (await fleet.lives())["a"]
            away.append(lost)
            await (cable.cut() if how == "cut" else cable.hold())
            others = [member.url for member in fleet.members.values() if member is not lost]
            async with asyncio.timeout(TAKEN_OVER_S):
                written = await load.turn(key, "count", f"after-{seed}", others)
            asked = [asyncio.create_task(load.read(key, lost.url, patient)) for _ in range(4)]
            await load.some(50)
            await cable.mend()
            away.clear()
            for shown in await asyncio.gather(*asked):
                assert shown is None or shown["total"] >= written

            async def back() -> bool:
                incarnation, state = (await fleet.lives())["a"]
                return incarnation > before and state == "live"

            await within(2 * TAKEN_OVER_S, "it is back, in a new life", back)
            await fleet.settled("abc")
            await load.some(50)
        assert await load.judge() == []


async def test_a_node_that_went_in_the_middle_of_a_commit_holds_up_nobody_who_takes_its_place(
    fleet: Fleet, seed: int
) -> None:
    async with AsyncExitStack() as stack:
        await fleet.node("b")
        _, cable = await behind(fleet, stack, "a")
        await fleet.settled("ab")
        load = Load(fleet, seed, lambda: [fleet.members["b"].url])
        key = (await fleet.cells_of("a", KEYS))[0]
        async with load:
            await load.some(60)
            await cable.hold("back")  # what it asks arrives, and locks rows; it never hears of it, and never commits
            async with asyncio.timeout(LEASE_MS / 1000 * 1.25 + 4.0):
                assert await load.turn(key, "count", f"after-{seed}", [fleet.members["b"].url])
            fleet.members.pop("a").send(signal.SIGKILL)
            await cable.mend()
        assert await load.judge() == []


async def test_what_one_node_has_shown_no_other_shows_older(fleet: Fleet, seed: int) -> None:
    other = await fleet.node("b")
    owner = await fleet.node("a", twins=["hears_late"])
    await fleet.settled("ab")
    load = Load(fleet, seed)
    key = (await fleet.cells_of("a", KEYS))[0]
    for n in (1, 2):
        writing = asyncio.create_task(load.turn(key, "count", f"{n}", [owner.url]))

        async def shown(total: int = n) -> bool:
            return bool((await load.read(key, other.url) or {}).get("total") == total)

        await within(TAKEN_OVER_S, "the other node shows the turn, out of the rows", shown)
        await load.read(key, owner.url)
        await writing
    assert await load.judge() == []


async def test_between_two_nodes_that_do_not_reach_each_other_turns_go_as_letters(fleet: Fleet, seed: int) -> None:
    async with AsyncExitStack() as stack:
        cables = await advertised(fleet, stack, "ab")
        await fleet.settled("ab")
        fleet.watch()
        load = Load(fleet, seed)
        async with load:
            await load.some(60)
            for cable in cables:
                await cable.cut()
            await load.some(40)
            turns = (load.turn(key, "count", f"{key}-{url}", [url]) for key in KEYS for url in fleet.urls)
            assert all(await asyncio.gather(*turns))
            for cable in cables:
                await cable.mend()
            await load.some(50)
        assert await load.judge() == []
        assert not load.met.keys() & {"421", "503", "ReadTimeout"}  # each was answered where it was asked


async def test_a_turn_whose_answer_was_lost_between_two_nodes_counts_once(fleet: Fleet, seed: int) -> None:
    async with AsyncExitStack() as stack:
        cables = await advertised(fleet, stack, "ab")
        await fleet.settled("ab")
        load = Load(fleet, seed)
        async with load:
            await load.some(60)
            for cable in cables:
                await cable.swallow()
            for n in range(2):
                for key in KEYS[:4]:
                    asked = (load.turn(key, "count", f"{key}-{n}", [url]) for url in fleet.urls)
                    first, second = await asyncio.gather(*asked)  # one id, at both nodes at once
                    assert first == second
            await load.some(50)
            assert sum(cable.swallowed for cable in cables) > 3
            for cable in cables:
                await cable.mend()
        assert await load.judge() == []


async def advertised(fleet: Fleet, stack: AsyncExitStack, names: str) -> list[Cable]:
    """Nodes that reach each other over cables alone; callers reach them past these."""
    cables = []
    for name in names:
        cable = await stack.enter_async_context(Cable(None))
        node = await fleet.node(name, advertise=f"http://127.0.0.1:{cable.port}")
        cable.leads_to("127.0.0.1", int(node.url.rpartition(":")[2]))
        cables.append(cable)
    return cables
