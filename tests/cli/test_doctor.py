"""What `onefold doctor` says of a store that is whole, held, damaged, or older than it was."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any

import apsw
import pytest

from onefold.actuators.tables import RUNS
from onefold.kernel.chain import START, link
from onefold.kernel.tables import ACTOR, KERNEL, TURN
from onefold.store.contract import Append, Last
from onefold.store.sqlite import SqliteWorld
from onefold.terms.codec import parse


def clock() -> int:
    return 1_800_000_000_000


async def _grow(folder: Path, count: int, *, held: bool = False) -> SqliteWorld:
    """A store with `count` more commits in `main`; closed unless `held`."""
    world = SqliteWorld(folder, clock=clock)
    space = await world.open("main", (KERNEL,))
    for _ in range(count):
        number, turn = space.mint(ACTOR), space.mint(TURN)

        def body(number: int = number, turn: int = turn) -> Any:
            yield ()
            return Last((Append(ACTOR, [_actor(number)]), Append(TURN, [_turn(turn, number)])), None)

        await space.transact(body)
    await world.open("refund_order", (KERNEL, RUNS))
    if not held:
        await world.close()
    return world


def _actor(number: int) -> tuple[Any, ...]:
    """A row of ACTOR with something in each column."""
    told: dict[str, Any] = {"int": number, "text": f"k{number}", "bytes": b""}
    return tuple(number if column.name == ACTOR.key[0] else told[column.kind] for column in ACTOR.columns)


def _turn(number: int, actor: int) -> tuple[Any, ...]:
    """The first turn of an actor, with one fact."""
    facts = b'[{"type":"Added"}]'
    return (number, actor, 1, None, "d/e1", b"", None, facts, None, clock(), 0, link(START, facts))


def _by_hand(folder: Path, sql: str) -> None:
    db = apsw.Connection(str(folder / "main.db"))
    db.execute(sql)
    db.close()


def test_a_whole_store_is_said_to_be_whole(typed: Any, tmp_path: Path) -> None:
    asyncio.run(_grow(tmp_path / "onefold-data", 3))
    ended = typed("doctor")
    assert ended.exit_code == 0
    assert "main: ok" in ended.stdout
    assert "refund_order: ok" in ended.stdout


def test_json_has_every_file(typed: Any, tmp_path: Path) -> None:
    asyncio.run(_grow(tmp_path / "onefold-data", 3))
    found = parse(typed("doctor", "--json").stdout.encode())
    assert [(item["space"], item["state"]) for item in found["items"]] == [("main", "ok"), ("refund_order", "ok")]


def test_a_fact_changed_by_hand_is_named_with_its_actor_and_turn(typed: Any, tmp_path: Path) -> None:
    folder = tmp_path / "onefold-data"
    asyncio.run(_grow(folder, 3))
    _by_hand(folder, 'update _onefold_turn set facts=cast(\'[{"type":"Taken"}]\' as blob) where n=2')
    for how in ((), ("--json",)):
        ended = typed("doctor", *how)
        assert ended.exit_code == 1
        assert "k2 'k2', turn 2: its facts are not those that were committed here" in ended.stdout
    assert "refund_order: ok" in typed("doctor").stdout


def test_an_empty_folder_is_no_fault(typed: Any) -> None:
    assert typed("doctor").exit_code == 0


def test_an_older_copy_is_found_and_accepted_only_on_request(typed: Any, tmp_path: Path) -> None:
    folder = tmp_path / "onefold-data"
    asyncio.run(_grow(folder, 3))
    shutil.copy(folder / "main.db", tmp_path / "older.db")
    asyncio.run(_grow(folder, 3))
    shutil.copy(tmp_path / "older.db", folder / "main.db")
    for _ in range(2):
        ended = typed("doctor")
        assert ended.exit_code == 6
        assert "was acknowledged" in ended.stdout
    assert typed("doctor", "--accept-rollback").exit_code == 0
    assert typed("doctor").exit_code == 0


def test_a_damaged_file_is_named(typed: Any, tmp_path: Path) -> None:
    folder = tmp_path / "onefold-data"
    asyncio.run(_grow(folder, 50))
    raw = bytearray((folder / "main.db").read_bytes())
    raw[4096:] = b"\xff" * (len(raw) - 4096)
    (folder / "main.db").write_bytes(raw)
    ended = typed("doctor")
    assert ended.exit_code == 1
    assert "main: ok" not in ended.stdout
    assert "refund_order: ok" in ended.stdout


def test_a_store_that_an_app_holds_is_checked_and_left_alone(typed: Any, tmp_path: Path) -> None:
    world = asyncio.run(_grow(tmp_path / "onefold-data", 3, held=True))
    ended = typed("doctor")
    assert ended.exit_code == 0
    assert "held by process" in ended.stdout
    assert typed("doctor", "--accept-rollback").exit_code == 6
    world.abandon()


@pytest.mark.parametrize("store", ["memory:"])
def test_a_store_in_memory_has_nothing_to_check(typed: Any, store: str) -> None:
    assert typed("doctor", "--store", store).exit_code == 2
