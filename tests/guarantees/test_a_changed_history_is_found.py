"""Promises 1 and 10: a history that is not the one that was committed is named, with its actor and its turn."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import apsw
import pytest

from onefold.host.audit import audit
from onefold.kernel.chain import START, Audit, link
from onefold.kernel.prune import emptied
from onefold.kernel.tables import KERNEL, TURN
from onefold.node.owning import UNGUARDED
from onefold.node.sweeping import committed
from onefold.store.contract import Create, Put, Query
from onefold.store.sqlite import SqliteWorld
from onefold.terms.damage import HistoryDamaged
from onefold.testing import Stage, staged
from tests.guarantees.conftest import Stages
from tests.guarantees.shop import Deposit, PayOut, Provider, bank, make


async def history(stage: Stage) -> None:
    """Six turns of `a`, with a decline and an answer among them, and two of `b`."""
    caller = stage.caller()
    for number in range(3):
        await stage.host.deliver(bank, Deposit(f"d{number}", "a", 10), caller=caller)
        if number < 2:
            await stage.host.deliver(bank, Deposit(f"d{number}", "b", 10), caller=caller)
    await stage.host.deliver(bank, PayOut("p1", "a", 900), caller=caller)
    await stage.host.deliver(bank, PayOut("p2", "a", 5, minutes=100_000), caller=caller)
    await stage.settle()


async def told(stage: Stage) -> list[str]:
    return await audit(await stage.host.space("main"))


async def test_a_history_that_nobody_touched_is_whole(stage: Stage) -> None:
    await history(stage)
    assert await told(stage) == []
    await stage.crash()
    await stage.host.deliver(bank, Deposit("d9", "a", 1), caller=stage.caller())
    assert await told(stage) == []


async def test_a_changed_fact_is_named_where_it_stands_and_nowhere_else(stage: Stage) -> None:
    await history(stage)
    space = await stage.host.space("main")
    (rows,) = await space.look(Query(TURN, where=(("event", "=", "d/d1"),), order=("n",)))
    row: Any = rows[0]
    at = TURN.at["facts"]
    changed = (*row[:at], row[at].replace(b"10", b"99"), *row[at + 1 :])

    await committed(space, UNGUARDED, (Put(TURN, [changed]),), "a hand")
    (only,) = await told(stage)
    assert only == f"bank 'a', turn {row[0]}: its facts are not those that were committed here"


@pytest.fixture
async def by_hand(tmp_path: Path, provider: Provider) -> Any:
    """Make a history in a file, change the file with SQL, and hear what is said of it."""

    async def run(*statements: str) -> list[str]:
        async with staged(bank, provider.dedupes(), store=tmp_path / "store") as stage:
            await history(stage)
        db = apsw.Connection(str(tmp_path / "store" / "main.db"))
        for statement in statements:
            db.execute(statement)
        db.close()
        world = SqliteWorld(tmp_path / "store", clock=lambda: 1)
        try:
            return await audit(await world.open("main", (KERNEL,)))
        finally:
            await world.close()

    return run


async def test_a_turn_that_is_gone_is_named(by_hand: Any) -> None:
    (only,) = await by_hand("delete from _onefold_turn where n=3")
    assert only.startswith("bank 'a', turn 5: the turn before it, 3, is missing")


async def test_a_turn_that_is_gone_is_named_also_when_its_neighbours_were_joined(by_hand: Any) -> None:
    joined = "update _onefold_turn set prev=1 where prev=3"
    told = await by_hand("delete from _onefold_turn where n=3", joined)
    assert told == ["bank 'a', turn 5: its facts are not those that were committed here"]


async def test_two_turns_in_another_order_are_named(by_hand: Any) -> None:
    told = await by_hand(
        "create temp table t as select * from _onefold_turn where n in (3, 5)",
        "update _onefold_turn set event='x' where n=5",
        "update _onefold_turn set (event, facts, link)=(select event, facts, link from t where t.n=5) where n=3",
        "update _onefold_turn set (event, facts, link)=(select event, facts, link from t where t.n=3) where n=5",
    )
    assert [line.partition(":")[0] for line in told] == ["bank 'a', turn 3", "bank 'a', turn 5", "bank 'a', turn 6"]


async def test_a_decline_that_is_gone_is_named_though_it_held_no_fact(by_hand: Any) -> None:
    joined = "update _onefold_turn set prev=5 where prev=6"
    (only,) = await by_hand("delete from _onefold_turn where event='d/p1'", joined)
    assert only.startswith("bank 'a', turn 7: ")


async def test_a_cut_end_is_seen_by_the_heads_that_the_store_keeps(by_hand: Any) -> None:
    (only,) = await by_hand("delete from _onefold_turn where n=4")
    assert only == "bank 'b', turn 2: its newest turns are missing"


async def test_a_cut_end_whose_head_was_moved_too_is_not_seen(by_hand: Any) -> None:
    """What a chain alone cannot see, said in the documents: nothing that is left disagrees."""
    assert await by_hand("delete from _onefold_turn where n=4", "update _onefold_turn__head set _n=2 where _n=4") == []


async def test_links_that_were_made_anew_are_seen_only_against_a_link_noted_elsewhere() -> None:
    rows: list[Any] = []
    before = START
    for n, facts in enumerate((b'[{"type":"A"}]', b'[{"type":"B"}]'), 1):
        before = link(before, facts)
        rows.append((n, 1, n, n - 1 or None, f"d/{n}", b"", None, facts, None, 0, 0, before))
    reading = Audit()
    assert [reading.read(row) for row in rows] == [None, None]
    assert link(link(START, b'[{"type":"X"}]'), b'[{"type":"B"}]') != before


async def test_a_history_that_was_cut_at_its_beginning_goes_on_from_there() -> None:
    rows: list[Any] = []
    before = START
    for n in range(1, 6):
        facts = b'[{"type":"A"}]'
        before = link(before, facts)
        rows.append((n, 1, n, n - 1 or None, f"d/{n}", b"", None, facts, None, 0, 0, before))
    reading = Audit()
    assert [reading.read(row) for row in rows[2:]] == [None] * 3
    reading = Audit()
    broken = [*rows[2:4], (*rows[4][:7], b"[]", *rows[4][8:])]
    assert [found is None for found in map(reading.read, broken)] == [True, True, False]


async def test_a_pruned_history_goes_on_from_its_snapshot(stages: Stages, tmp_path: Path) -> None:
    pruning = make(snapshot_every=4)
    stage = await stages(pruning)
    caller = stage.caller()
    for n in range(10):
        await stage.host.deliver(pruning, Deposit(f"d{n}", "a", 1), caller=caller)
    assert (await stage.host.prune(pruning, "a", caller=caller)).facts > 0
    assert await told(stage) == []
    await stage.host.deliver(pruning, Deposit("d10", "a", 1), caller=caller)
    assert await told(stage) == []
    space = await stage.host.space("main")
    (rows,) = await space.look(Query(TURN, order=("-n",), limit=1))
    await committed(space, UNGUARDED, (emptied([int(rows[0][0] or 0)]),), "a hand")
    (only,) = await told(stage)
    assert only.endswith("its facts are gone, and those before it are not")


async def test_a_store_of_before_there_were_links_opens_and_is_chained_from_then_on(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    old_turn = replace(TURN, columns=TURN.columns[:-1])
    (first, *_) = KERNEL.migrations
    names = {step.table.name for step in first.steps if isinstance(step, Create)}
    tables = tuple(old_turn if t is TURN else t for t in KERNEL.tables if t.name in names)
    world = SqliteWorld(folder, clock=lambda: 1)
    await world.open("main", (replace(KERNEL, tables=tables, migrations=(first,)),))
    await world.close()
    db = apsw.Connection(str(folder / "main.db"))
    db.execute("insert into _onefold_actor values(1,'bank','-','a',0)")
    facts = b'[{"type":"Deposited","amount":7}]'
    for n in (1, 2):
        row = (n, 1, n, n - 1 or None, f"d/d{n}", b"", b"null", facts, None, 1, 0)
        db.execute("insert into _onefold_turn values(?,?,?,?,?,?,?,?,?,?,?)", row)
    db.close()
    async with staged(bank, store=folder) as stage:
        for n in (3, 4):
            await stage.host.deliver(bank, Deposit(f"d{n}", "a", 1), caller=stage.caller())
        assert (await stage.host.read(bank, "a", caller=stage.caller())).balance == 16
        assert await told(stage) == []
    db = apsw.Connection(str(folder / "main.db"))
    assert db.execute("select link is null from _onefold_turn order by n").fetchall() == [(1,), (1,), (0,), (0,)]
    db.execute("update _onefold_turn set facts=cast('[]' as blob) where n=3")
    db.close()
    async with staged(bank, store=folder) as stage:
        assert len(await told(stage)) == 1


async def test_the_links_of_actors_that_share_commits_are_whole_after_a_kill(
    stages: Stages, provider: Provider
) -> None:
    stage = await stages(bank, provider.dedupes())
    caller = stage.caller()
    for life in range(2):
        events = [Deposit(f"d{life}.{n}", str(n % 4), 1) for n in range(60)]
        await asyncio.gather(*(stage.host.deliver(bank, event, caller=caller) for event in events))
        await stage.crash()
    assert await told(stage) == []


@pytest.mark.parametrize("prev", ["n", "n + 1", "99999", "-1"])
async def test_a_history_that_runs_in_a_circle_is_named_and_holds_nobody_up(
    tmp_path: Path, provider: Provider, prev: str
) -> None:
    module = make(snapshot_every=1_000)
    async with staged(module, provider.dedupes(), store=tmp_path / "store") as stage:
        caller = stage.caller()
        for number in range(300):
            await stage.host.deliver(module, Deposit(f"d{number}", "a", 10), caller=caller)
        await stage.close()
        db = apsw.Connection(str(tmp_path / "store" / "main.db"))
        db.execute(f"update _onefold_turn set prev={prev} where n > 250")  # noqa: S608 - the words above
        db.close()
        await stage.open()
        for act in (
            stage.host.read(module, "a", caller=caller),
            stage.host.history(module, "a", caller=caller),
            stage.host.prune(module, "a", caller=caller),
            stage.host.fork(module, "a", "b", id="f1", caller=caller),
        ):
            await asyncio.wait_for(asyncio.gather(act, return_exceptions=True), 60)
        for damaged in (
            stage.host.read(module, "a", caller=caller),
            stage.host.deliver(module, Deposit("d900", "a", 1), caller=caller),
        ):
            with pytest.raises(HistoryDamaged):  # and not a balance of what is left
                await damaged
        (item,) = await stage.host.parked_list(caller=caller)
        assert "those before it are missing" in item.cause
        await stage.host.deliver(module, Deposit("d1", "c", 1), caller=caller)
        assert any(line.startswith("bank 'a', turn 2") for line in await told(stage))
