"""Who has a file alone and who shares it never mix; whoever ends leaves the others going on, and nothing is forgotten."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
import pytest

from onefold.store import lane
from onefold.store.batch import commit
from onefold.store.contract import Append, Done, Query, Refused, Remove
from onefold.store.lane import Single
from onefold.store.sqlite import SqliteWorld, chain, connect, wal
from onefold.store.sqlite.checkup import checkup
from onefold.store.sqlite.mint import BLOCK
from onefold.store.sqlite.seats import SharedSidecar
from onefold.store.sqlite.space import SqliteSpace
from onefold.terms.errors import StoreLocked, StoreRolledBack, StoreUnavailable
from onefold.testing.faulty_disk import FaultyDisk
from tests.store.child import clock
from tests.store.company import BOTH, does, following, history, sizes, world_of
from tests.store.shorthand import turn, writing
from tests.store.tables import OWED, SCHEMA, SENT, TASK, TURN


async def test_alone_and_shared_never_mix(tmp_path: Path) -> None:
    alone = world_of(tmp_path, shared=False, node="alone")
    await alone.open("main", BOTH)
    with pytest.raises(StoreLocked) as locked:
        await world_of(tmp_path).open("main", BOTH)
    assert "node 'alone'" in locked.value.holder
    await alone.close()
    worlds = [world_of(tmp_path, node=f"n{i}") for i in range(2)]
    spaces = [await world.open("main", BOTH) for world in worlds]
    for left in (2, 1):
        with pytest.raises(StoreLocked) as locked:
            await alone.open("main", BOTH)
        assert f"process {os.getpid()}" in locked.value.holder
        assert locked.value.holder.count("node 'n") == left
        (found,) = checkup(tmp_path, TURN)
        assert found.holder == locked.value.holder
        await does(spaces[left - 1], Append(TASK, [(left, "a", None, None, None)]))
        worlds[left - 1].abandon() if left == 2 else await worlds[0].close()
    space = await alone.open("main", BOTH)
    assert len((await space.look(Query(TASK)))[0]) == 2
    assert sorted(os.listdir(tmp_path)) == ["main.db", "main.db-shm", "main.db-wal", "main.mark"]
    await alone.close()


async def test_every_other_space_is_its_openers_alone(tmp_path: Path) -> None:
    worlds = [world_of(tmp_path, node=f"n{i}") for i in range(2)]
    for world in worlds:
        await world.open("main", BOTH)
    space = await worlds[0].open("refund", [SCHEMA])
    await does(space, Append(TASK, [(1, "a", None, 5, None)]))
    with pytest.raises(StoreLocked) as locked:
        await worlds[1].open("refund", [SCHEMA])
    assert "node 'n0'" in locked.value.holder
    query = Query(TASK, order=("ready",), limit=1)
    assert await worlds[1].soonest("refund", query) == ([(1, "a", None, 5, None)],)
    await worlds[0].close()
    space = await worlds[1].open("refund", [SCHEMA])
    assert (await space.look(query))[0] == [(1, "a", None, 5, None)]
    await worlds[1].close()


async def test_a_writer_that_does_not_end_is_waited_for_and_then_named_as_what_it_is(
    two: tuple[SqliteSpace, SqliteSpace], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = two
    monkeypatch.setattr(connect, "PAUSES", 20)
    monkeypatch.setattr(lane, "WAIT_S", 0.02)
    row = (1, "a", None, None, None)
    held = other.engine.file.conn
    assert held is not None
    held.execute("begin immediate")
    outcome = await one.transact(writing(Append(TASK, [row])))
    assert isinstance(outcome, Refused)
    assert isinstance(outcome.error, StoreUnavailable)
    assert "other processes kept its file" in outcome.error.why
    assert (await one.look(Query(TASK)))[0] == []
    with pytest.raises(StoreUnavailable, match="other processes"):
        [one.mint(OWED) for _ in range(2 * BLOCK)]
    held.execute("rollback")
    await does(one, Append(TASK, [row]))
    await does(other, Append(OWED, [(other.mint(OWED), 1, b"")]))
    assert (await other.look(Query(TASK)))[0] == [row]


@pytest.fixture
def taken(two: tuple[SqliteSpace, SqliteSpace]) -> Iterator[apsw.Connection]:
    """The second of two is in the middle of a commit, and stays there."""
    held = two[1].engine.file.conn
    assert held is not None
    held.execute("begin immediate")
    yield held
    if held.in_transaction:
        held.execute("rollback")


def kept(number: int) -> Append:
    return Append(TASK, [(number, "a", None, None, None)])


async def test_the_loop_goes_on_while_another_process_writes(
    two: tuple[SqliteSpace, SqliteSpace], taken: apsw.Connection
) -> None:
    one, other = two
    writes = [asyncio.ensure_future(one.transact(writing(kept(number)))) for number in (1, 2)]
    await asyncio.wait(writes, timeout=0.01)
    late = asyncio.ensure_future(one.transact(writing(kept(3))))
    assert (await one.look(Query(TASK), Query(SENT)))[0] == []  # and reads are answered
    assert one.mint(TURN)
    await asyncio.wait([*writes, late], timeout=0.02)
    assert not any(write.done() for write in [*writes, late])
    taken.execute("rollback")
    assert [type(await write) for write in [*writes, late]] == [Done] * 3
    assert [row[0] for row in (await other.look(Query(TASK, order=("id",))))[0]] == [1, 2, 3]
    assert one.idle


async def test_who_decided_before_another_process_wrote_meets_what_it_wrote(
    two: tuple[SqliteSpace, SqliteSpace], taken: apsw.Connection
) -> None:
    one, other = two
    waits = asyncio.ensure_future(one.transact(following(one, 7, "e")))
    await asyncio.wait((waits,), timeout=0.02)
    taken.execute("rollback")
    first = await other.transact(following(other, 7, "e"))
    assert isinstance(first, Done)
    outcome = await waits
    assert isinstance(outcome, Done)
    assert {first.value, outcome.value} == {(await history(one, 7))[0][0], None}


@pytest.mark.parametrize("ends", ["close", "abandon", "cancel", "hold"])
async def test_who_waits_for_another_process_is_there_or_not_whatever_becomes_of_its_own(
    two: tuple[SqliteSpace, SqliteSpace], taken: apsw.Connection, monkeypatch: pytest.MonkeyPatch, ends: str
) -> None:
    one, other = two
    waits = asyncio.ensure_future(one.transact(writing(kept(1))))
    await asyncio.wait((waits,), timeout=0.02)
    held = asyncio.ensure_future(one._lane._hold())
    await asyncio.sleep(0)
    assert not held.done()  # behind what is on its way
    if ends == "abandon":
        one._lane.abandon()
    elif ends == "cancel":
        waits.cancel()
    taken.execute("rollback")
    if ends == "close":
        one._lane.close()
    if ends == "hold":
        await held
        assert isinstance(await waits, Done)
        one._lane._release()
    await asyncio.wait((waits, held), timeout=0.1)
    held.cancel()
    waits.cancel()
    await asyncio.gather(held, waits, return_exceptions=True)
    assert len((await other.look(Query(TASK)))[0]) == (0 if ends == "abandon" else 1)


# --- ends, clean and not ----------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["close", "abandon"])
@pytest.mark.parametrize("before, after", [(False, True), (True, False), (True, True)])
async def test_keys_and_heads_outlive_a_change_of_company(
    tmp_path: Path, end: str, before: bool, after: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a process that was alone kept in memory, those that share the file find; and the other way round."""
    monkeypatch.setattr(chain, "GENERATION", 16)
    monkeypatch.setattr(chain, "LUMP", 2)
    world = world_of(tmp_path, shared=before)
    space = await world.open("main", BOTH)
    for number in range(100):
        assert isinstance(await space.transact(following(space, number % 7, f"e{number}")), Done)
    await world.close() if end == "close" else world.abandon()
    world = world_of(tmp_path, shared=after)
    space = await world.open("main", BOTH)
    plan = space.engine._chains[0]
    assert after or end == "abandon" or plan.marker == plan.top, "a clean end leaves nothing to be read again"
    assert plan.top - plan.marker <= 2 * chain.GENERATION, "nor does a kill leave more than two generations"
    keys = [(number % 7, f"e{number}") for number in range(100)]
    (found,) = await space.look(Query(TURN, on=("actor", "event"), keys=keys))
    assert len(found) == 100
    assert sum([len(await history(space, actor)) for actor in range(7)]) == 100
    for number in range(100, 120):
        assert isinstance(await space.transact(following(space, number % 7, f"e{number}")), Done)
    assert sum([len(await history(space, actor)) for actor in range(7)]) == 120
    await world.close()


async def test_the_end_of_a_table_is_remembered_whoever_removed_it(tmp_path: Path) -> None:
    """The highest number is another process's, and is gone; then this one removes a lower one of its own."""
    worlds = [world_of(tmp_path) for _ in range(2)]
    one, other = [await world.open("main", BOTH) for world in worlds]
    for space, event in ((one, "low"), (other, "high"), (one, "lowest")):
        row = turn(space, space.mint(OWED), event)
        await does(space, Append(TURN, [row]))
        await does(space, Remove(TURN, keys=[(row[0],)]))
    for world in worlds:
        world.abandon()
    for shared in (True, False, True):
        world = world_of(tmp_path, shared=shared)
        space = await world.open("main", BOTH)
        assert (await space.look(Query(TURN)))[0] == []
        await world.close()


@pytest.mark.parametrize("first", [0, 1])
async def test_one_that_ends_leaves_the_other_going_on(tmp_path: Path, first: int) -> None:
    worlds = [world_of(tmp_path) for _ in range(2)]
    spaces = [await world.open("main", BOTH) for world in worlds]
    for number in range(30):
        await does(spaces[number % 2], Append(TASK, [(number, "a", None, None, None)]))
    worlds[first].abandon() if first else await worlds[first].close()
    for number in range(30, 60):
        await does(spaces[1 - first], Append(TASK, [(number, "a", None, None, None)]))
    worlds[first] = world_of(tmp_path)
    again = await worlds[first].open("main", BOTH)
    assert len((await again.look(Query(TASK)))[0]) == 60
    for world in worlds:
        await world.close()
    assert "main.db-wal" not in sizes(tmp_path)


async def test_the_log_is_checked_in_by_whoever_may_and_stays_short(
    two: tuple[SqliteSpace, SqliteSpace], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wal, "LONGEST", 100)
    monkeypatch.setattr(wal, "AHEAD", 100_000)
    for number in range(600):
        await does(two[number % 2], Append(TASK, [(number, "a" * 3_000, None, None, None)]))
    assert sizes(tmp_path)["main.db-wal"] < 300 * wal.FRAME
    with two[0].engine.file._turn(wait=True):  # one is checking in: the others do not wait for it, nor do they too
        before = (tmp_path / "main.db").read_bytes()
        for number in range(600, 750):
            await does(two[1], Append(TASK, [(number, "a" * 3_000, None, None, None)]))
        assert (tmp_path / "main.db").read_bytes() == before
    db = apsw.Connection(str(tmp_path / "main.db"), flags=apsw.SQLITE_OPEN_READONLY)
    assert db.execute("pragma integrity_check").fetchall() == [("ok",)]
    db.close()


async def test_a_reader_that_does_not_end_keeps_the_log_and_nobody_waits_for_it(
    two: tuple[SqliteSpace, SqliteSpace], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wal, "LONGEST", 40)
    reader = apsw.Connection(str(tmp_path / "main.db"), flags=apsw.SQLITE_OPEN_READONLY)
    reader.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    reader.execute("begin")
    reader.execute("select count(*) from _onefold_task").fetchall()
    for number in range(200):
        await does(two[number % 2], Append(TASK, [(number, "a" * 3_000, None, None, None)]))
    reader.execute("commit")
    reader.close()
    for number in range(200, 300):
        await does(two[number % 2], Append(TASK, [(number, "a", None, None, None)]))
    assert two[1].engine.file.wal_pages < 60


async def test_what_a_failed_sync_left_in_the_log_never_comes_back(tmp_path: Path) -> None:
    """Its frames are there, and nobody sees them until a crash reads the log anew."""
    disk = FaultyDisk()
    failing = SqliteWorld(tmp_path, clock=clock, shared=True, disk=disk)
    space = await failing.open("main", BOTH)
    world = world_of(tmp_path)
    other = await world.open("main", BOTH)
    for number in range(4):
        await does((space, other)[number % 2], Append(SENT, [(number, "k", b"")]))
    disk.fail("io", kinds=("sync",), on="-wal")
    outcome = await space.transact(writing(Append(TASK, [(1, "a", None, None, None)])))
    assert isinstance(outcome, Refused)
    assert disk.struck == 1
    assert await other.look(Query(TASK)) == await space.look(Query(TASK)) == ([],)
    failing.abandon()
    world.abandon()
    assert "main.db-shm" in sizes(tmp_path)
    (tmp_path / "main.db-shm").unlink()
    world = world_of(tmp_path)
    other = await world.open("main", BOTH)
    (tasks, sent) = await other.look(Query(TASK), Query(SENT))
    assert (tasks, len(sent)) == ([], 4)
    await world.close()
    disk.close()


async def test_an_error_of_one_is_told_to_one_and_the_other_goes_on(tmp_path: Path) -> None:
    hits: list[str] = []

    def fail(point: str) -> None:
        if hits and point == hits[0]:
            hits.clear()
            raise OSError(5, "the test's disk failed")

    failing = SqliteWorld(tmp_path, clock=clock, shared=True, failpoint=fail)
    space = await failing.open("main", BOTH)
    world = world_of(tmp_path)
    other = await world.open("main", BOTH)
    for point, number in (("before-commit", 1), ("after-commit", 2), ("statement", 3)):
        hits.append(point)
        outcome = await space.transact(writing(Append(TASK, [(number, point, None, None, None)])))
        (there,) = await other.look(Query(TASK, on=("id",), keys=[(number,)]))
        assert isinstance(outcome, Done) == bool(there), (point, outcome)
        await does(other, Append(SENT, [(number, "k", b"")]))
        await does(space, Append(SENT, [(number, "l", b"")]))
    failing.abandon()
    world.abandon()
    world = world_of(tmp_path)
    other = await world.open("main", BOTH)
    assert [row[0] for row in (await other.look(Query(TASK)))[0]] == [2]
    assert len((await other.look(Query(SENT)))[0]) == 6
    await world.close()


@pytest.mark.parametrize("later", ["alone", "shared"])
@pytest.mark.parametrize("ends", ["killed", "the last of them closed", "the first of them closed"])
async def test_what_any_of_them_acknowledged_is_missed(tmp_path: Path, ends: str, later: str) -> None:
    """Whoever acknowledged it, and whoever ended before."""
    worlds = [world_of(tmp_path) for _ in range(3)]
    spaces = [await world.open("main", [SCHEMA]) for world in worlds]
    for number in range(5):
        await does(spaces[number % 3], Append(TASK, [(number, "a", None, None, None)]))
    for space in spaces:
        assert isinstance(await space.transact(following(space, 1, space.engine.name)), Done)
    older = {name: (tmp_path / name).read_bytes() for name in sizes(tmp_path) if "mark" not in name}
    for event in ("new", "newer"):
        assert isinstance(await spaces[1].transact(following(spaces[1], 1, event)), Done)
    if ends == "the last of them closed":
        await worlds[1].close()
    if ends == "the first of them closed":
        await worlds[0].close()
    for world in worlds:
        world.abandon()
    for name, content in older.items():
        (tmp_path / name).write_bytes(content)
    for _ in range(2):
        with pytest.raises(StoreRolledBack):
            await world_of(tmp_path, shared=later == "shared").open("main", [SCHEMA])
    accepting = SqliteWorld(tmp_path, clock=clock, shared=later == "shared", accept_rollback=True)
    space = await accepting.open("main", [SCHEMA])
    assert len(await history(space, 1)) == 1
    accepting.abandon()
    for shared in (later != "shared", later == "shared"):
        world = world_of(tmp_path, shared=shared)
        await does(await world.open("main", [SCHEMA]), Append(SENT, [(shared, "k", b"")]))
        await world.close()


async def test_what_others_check_in_while_one_waits_to_open_is_no_loss(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The main file's first page is another one by the time that it is compared."""
    worlds = [world_of(tmp_path) for _ in range(2)]
    one = await worlds[0].open("main", BOTH)
    turn_of, loop, waited = SharedSidecar.turn, asyncio.get_running_loop(), list[int]()

    @contextmanager
    def waiting(self: SharedSidecar, *, wait: bool) -> Iterator[bool]:
        if wait and not waited:
            for number in range(50):
                waited.append(number)
                row = (number, "a" * 3_000, None, None, None)
                commit(one.engine, [Single(writing(Append(TASK, [row])), loop.create_future())])
            one.engine.file.checkpoint()
        with turn_of(self, wait=wait) as mine:
            yield mine

    with monkeypatch.context() as patch:
        patch.setattr(SharedSidecar, "turn", waiting)
        other = await worlds[1].open("main", BOTH)
    assert len((await other.look(Query(TASK)))[0]) == len(waited) == 50
    for world in worlds:
        await world.close()


async def test_an_older_main_file_under_their_newer_log_is_missed(tmp_path: Path) -> None:
    worlds = [world_of(tmp_path) for _ in range(2)]
    one, other = [await world.open("main", [SCHEMA]) for world in worlds]
    for number in range(30):
        await does((one, other)[number % 2], Append(TASK, [(number, "a" * 2_000, None, None, None)]))
    one.engine.file.checkpoint()
    older = (tmp_path / "main.db").read_bytes()
    for number in range(30, 60):
        await does((one, other)[number % 2], Append(TASK, [(number, "a" * 2_000, None, None, None)]))
    other.engine.file.checkpoint()
    await does(one, Append(TASK, [(60, "a", None, None, None)]))
    for world in worlds:
        world.abandon()
    (tmp_path / "main.db").write_bytes(older)
    with pytest.raises(StoreRolledBack):
        await world_of(tmp_path).open("main", [SCHEMA])
