"""A file has one writer: a second is told who holds it, a fork is refused, and a writer whose file is gone stops."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path

import pytest

from onefold.store.contract import Append, Done, Query, Refused
from onefold.store.sqlite import SqliteWorld, file
from onefold.terms.errors import LoadRefused, StoreLocked, StoreUnavailable
from tests.store.child import child, clock
from tests.store.shorthand import writing
from tests.store.tables import SCHEMA, TASK

ROW = (1, "a", None, None, None)


@pytest.mark.parametrize("how", [("alone", "alone"), ("alone", "shared"), ("shared", "alone")])
def test_a_second_process_is_told_who_holds_it(tmp_path: Path, how: tuple[str, str]) -> None:
    async def open_it() -> None:
        world = SqliteWorld(tmp_path, clock=clock, shared=how[1] == "shared")
        await world.open("main", [SCHEMA])
        await world.close()

    with child("hold", tmp_path, how[0]) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        with pytest.raises(StoreLocked) as locked:
            asyncio.run(open_it())
        assert f"process {process.pid} on {os.uname().nodename}" in locked.value.holder
        assert "node 'a'" in locked.value.holder
        assert "since 1970-01-01T00:00:01Z" in locked.value.holder
        process.kill()
        process.communicate()
        asyncio.run(open_it())


async def test_a_second_world_of_the_same_process_is_refused_too(tmp_path: Path) -> None:
    world = SqliteWorld(tmp_path, clock=clock)
    await world.open("main", [SCHEMA])
    other = SqliteWorld(tmp_path, clock=clock)
    with pytest.raises(StoreLocked):
        await other.open("main", [SCHEMA])
    await world.close()
    await other.open("main", [SCHEMA])
    await other.close()


async def test_a_forked_child_is_refused(tmp_path: Path) -> None:
    world = SqliteWorld(tmp_path, clock=clock)
    space = await world.open("main", [SCHEMA])
    pid = os.fork()  # noqa: TID251 - the fork is what is tested; the child leaves at once
    if pid == 0:
        code = 1
        try:
            space.engine.check()
        except StoreLocked as refused:
            code = 0 if f"process {os.getppid()}" in refused.holder else 2
        finally:
            os._exit(code)
    _, status = os.waitpid(pid, 0)  # noqa: ASYNC222 - the child leaves at once
    assert os.waitstatus_to_exitcode(status) == 0
    assert isinstance(await space.transact(writing(Append(TASK, [ROW]))), Done)
    await world.close()


@pytest.mark.parametrize("how", ["removed", "replaced", "mark removed"])
async def test_a_writer_whose_file_is_gone_stops(tmp_path: Path, how: str) -> None:
    world = SqliteWorld(tmp_path, clock=clock)
    space = await world.open("main", [SCHEMA])
    path = tmp_path / ("main.mark" if how == "mark removed" else "main.db")
    if how == "replaced":
        shutil.copy(path, tmp_path / "copy")
        os.replace(tmp_path / "copy", path)
    else:
        path.unlink()
    for number in range(file.BESIDE_EACH if how == "mark removed" else 0):
        await space.transact(writing(Append(TASK, [(100 + number, "a", None, None, None)])))
    outcome = await space.transact(writing(Append(TASK, [ROW])))
    assert isinstance(outcome, Refused)
    assert isinstance(outcome.error, StoreUnavailable)
    assert "removed or replaced" in outcome.error.why
    with pytest.raises(StoreUnavailable):
        await space.look(Query(TASK))
    world.abandon()


async def test_a_writer_whose_wal_is_gone_stops_soon(tmp_path: Path) -> None:
    world = SqliteWorld(tmp_path, clock=clock)
    space = await world.open("main", [SCHEMA])
    outcomes = []
    for number in range(4 * file.BESIDE_EACH):
        if number == 2 * file.BESIDE_EACH:
            (tmp_path / "main.db-wal").unlink()
        outcomes.append(await space.transact(writing(Append(TASK, [(number, "a", None, None, None)]))))
    assert isinstance(outcomes[2 * file.BESIDE_EACH - 1], Done)
    assert isinstance(outcomes[3 * file.BESIDE_EACH], Refused)
    await world.close()


@pytest.mark.parametrize("name", ["..", "../x", "a/b", "", "A", "a\0b", "x" * 65, ".hidden", "a..b", "é"])
async def test_no_name_reaches_outside_its_folder(tmp_path: Path, name: str) -> None:
    world = SqliteWorld(tmp_path / "store", clock=clock)
    with pytest.raises(LoadRefused):
        await world.open(name, [SCHEMA])
    with pytest.raises(LoadRefused):
        await world.soonest(name, Query(TASK))
    assert os.listdir(tmp_path) == []


async def test_a_new_file_is_its_owners_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        world = SqliteWorld(tmp_path, clock=clock)
        space = await world.open("main", [SCHEMA])
        assert isinstance(await space.transact(writing(Append(TASK, [ROW]))), Done)
        modes = _modes(tmp_path)
    finally:
        os.umask(before)
    assert modes == dict.fromkeys(("main.db", "main.db-wal", "main.db-shm", "main.mark"), 0o600)
    await world.close()


def _modes(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mode & 0o777 for path in folder.iterdir()}
