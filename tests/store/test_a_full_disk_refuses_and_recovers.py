"""A disk that is full, read-only or failing: a clear error, nothing in part, and no restart needed where it recovers."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from onefold.store.contract import Append, Done, Put, Query, Refused, Unknown
from onefold.store.sqlite import SqliteWorld
from onefold.terms.errors import StoreUnavailable
from tests.store.child import clock
from tests.store.namespace import in_a_namespace
from tests.store.shorthand import turn, writing
from tests.store.tables import OWED, SCHEMA, SENT, TURN


async def test_a_statement_that_finds_no_room_fails_the_batch_and_its_bodies_run_singly(tmp_path: Path) -> None:
    """SQLite takes the whole transaction back: bodies that were fine must not be told that they are done by it."""
    world = SqliteWorld(tmp_path, clock=clock)
    space = await world.open("main", [SCHEMA])
    db = space.engine.file.conn
    assert db is not None
    db.pragma("max_page_count", db.pragma("page_count") + 3)
    before = await space.look(Query(TURN), Query(OWED), Query(SENT))
    bodies = [
        writing(Append(TURN, [turn(space, 1, "small")])),
        writing(Put(SENT, [(1, "k", b"")]), Append(OWED, [(space.mint(OWED), 1, bytes(200_000))])),
        writing(Append(TURN, [turn(space, 2, "small")]), Put(SENT, [(2, "k", b"")])),
    ]
    one, big, three = await asyncio.gather(*(space.transact(body) for body in bodies))
    assert isinstance(one, Done)
    assert isinstance(three, Done)
    assert isinstance(big, Refused)
    assert isinstance(big.error, StoreUnavailable)
    assert "the disk is full" in big.error.why
    turns, owed, sent = await space.look(Query(TURN), Query(OWED), Query(SENT))
    assert [r[3] for r in turns] == ["small", "small"]
    assert (owed, sent) == (before[1], [(2, "k", b"")])
    db.pragma("max_page_count", 1_000_000)
    assert isinstance(await space.transact(bodies[1]), Done)
    world.abandon()
    world = SqliteWorld(tmp_path, clock=clock)
    space = await world.open("main", [SCHEMA])
    assert [len(rows) for rows in await space.look(Query(TURN), Query(OWED), Query(SENT))] == [2, 1, 2]
    await world.close()


def test_a_file_that_may_not_grow_refuses_and_recovers(tmp_path: Path) -> None:
    """The limit on a file's size fails COMMIT itself, as a full disk does, and can be lifted from within."""
    script = """
import asyncio, os, resource, signal, sys
from pathlib import Path
from onefold.store.contract import Append, Done, Query
from onefold.store.sqlite import SqliteWorld
from tests.store.shorthand import writing
from tests.store.tables import OWED, SCHEMA
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
async def main(folder):
    world = SqliteWorld(folder, clock=lambda: 1)
    space = await world.open("main", [SCHEMA])
    assert isinstance(await space.transact(writing(Append(OWED, [(space.mint(OWED), 0, b"")]))), Done)
    size = (folder / "main.db-wal").stat().st_size
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 10_000, resource.RLIM_INFINITY))
    for number in range(1, 4):
        rows = [(space.mint(OWED), number, os.urandom(200_000))]
        outcome = await space.transact(writing(Append(OWED, rows)))
        (found,) = await space.look(Query(OWED, where=(("actor", "=", number),)))
        print(type(outcome).__name__, len(found), getattr(outcome, "error", ""))
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert isinstance(await space.transact(writing(Append(OWED, [(space.mint(OWED), 9, os.urandom(20_000))]))), Done)
    world.abandon()
    world = SqliteWorld(folder, clock=lambda: 1)
    space = await world.open("main", [SCHEMA])
    print([row[1] for row in (await space.look(Query(OWED, order=("n",))))[0]])
    await world.close()
asyncio.run(main(Path(sys.argv[1])))
"""
    run = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, timeout=60, check=False
    )
    assert run.returncode == 0, run.stderr
    *outcomes, left = run.stdout.splitlines()
    assert left == "[0, 9]"
    assert len(outcomes) == 3
    for line in outcomes:
        assert line.startswith("Refused 0 The store 'main' cannot be used now: its disk")


@pytest.mark.needs_root
def test_a_full_disk_refuses_and_recovers_without_a_restart(tmp_path: Path) -> None:
    lines = in_a_namespace(
        'mount -t tmpfs -o size=2500k tmpfs "$2"; "$0" -m tests.store.child "$1" "$2"', "fill", tmp_path
    )
    ends = [line.split()[0] for line in lines]
    first = ends.index("refused")
    assert set(ends[:first]) == {"done"}
    assert lines[first + 1].startswith("why The store 'main' cannot be used now: the disk is full")
    assert "left 0" in lines
    assert "left 3" not in lines
    assert ends[-2:] == ["rows", "closed"]
    assert lines[-2] == f"rows {3 * ends.count('done')}"


@pytest.mark.needs_root
def test_a_disk_turned_read_only_refuses_and_recovers(tmp_path: Path) -> None:
    script = """
import asyncio, subprocess, sys
from pathlib import Path
from onefold.store.contract import Append, Done, Query
from onefold.store.sqlite import SqliteWorld
from onefold.terms.errors import StoreUnavailable
from tests.store.shorthand import writing
from tests.store.tables import OWED, SCHEMA
def remount(how, folder):
    subprocess.run(["mount", "-o", f"remount,{how}", str(folder)], check=True)
async def main(folder):
    world = SqliteWorld(folder / "store", clock=lambda: 1)
    space = await world.open("main", [SCHEMA])
    assert isinstance(await space.transact(writing(Append(OWED, [(space.mint(OWED), 0, b"")]))), Done)
    await world.close()
    remount("ro", folder)
    try:
        await SqliteWorld(folder / "store", clock=lambda: 1).open("main", [SCHEMA])
    except StoreUnavailable as error:
        print(error)
    remount("rw", folder)
    world = SqliteWorld(folder / "store", clock=lambda: 1)
    space = await world.open("main", [SCHEMA])
    assert isinstance(await space.transact(writing(Append(OWED, [(space.mint(OWED), 1, b"")]))), Done)
    print(len((await space.look(Query(OWED)))[0]))
    await world.close()
asyncio.run(main(Path(sys.argv[1])))
"""
    path = tmp_path / "script.py"
    path.write_text(script)
    disk = tmp_path / "disk"
    disk.mkdir()
    lines = in_a_namespace('mount -t tmpfs tmpfs "$2"; PYTHONPATH="$3" "$0" "$1" "$2"', path, disk, os.getcwd())
    assert lines[0].startswith("The store 'main' cannot be used now: its ")
    assert "read-only" in lines[0].lower()
    assert lines[1:] == ["2"]


async def test_an_unknown_commit_is_looked_up(tmp_path: Path) -> None:
    """An error after COMMIT: the file is opened anew and says whether it happened."""
    lost: list[str] = []

    def fail(point: str) -> None:
        if lost and point == lost[0]:
            lost.clear()
            raise OSError(5, "injected")

    world = SqliteWorld(tmp_path, clock=clock, failpoint=fail)
    space = await world.open("main", [SCHEMA])
    lost.append("after-commit")
    first = turn(space, 1, "a")
    assert await space.transact(writing(Append(TURN, [first]))) == Done(None, ([None],))
    lost.append("after-commit")
    assert isinstance(await space.transact(writing(Put(SENT, [(1, "k", b"")]))), Unknown), "nothing tells it apart"
    assert await space.look(Query(TURN), Query(SENT)) == ([first], [(1, "k", b"")])
    second = turn(space, 1, "b", int(str(first[0])))
    assert isinstance(await space.transact(writing(Append(TURN, [second]))), Done)
    assert second[0] != first[0]
    world.abandon()
    world = SqliteWorld(tmp_path, clock=clock)
    space = await world.open("main", [SCHEMA])
    assert await space.look(Query(TURN, where=(("actor", "=", 1),))) == ([second, first],)
    await world.close()
