"""What `onefold doctor` says of a store that is whole, held, damaged, or older than it was."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any

import apsw
import pytest
from pydantic import BaseModel

from onefold import Run, actuator
from onefold.actuators.tables import RUNS
from onefold.kernel.chain import START, link
from onefold.kernel.tables import ACTOR, KERNEL, TURN
from onefold.store.contract import Append, Last
from onefold.store.sqlite import SqliteWorld
from onefold.terms.codec import parse
from onefold.testing import staged
from tests.guarantees.documents import Printer, Write, documents


class Said(BaseModel):
    text: str


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


def test_a_store_that_is_not_there_was_not_checked(typed: Any) -> None:
    for arguments in ((), ("--store", "nope")):
        ended = typed("doctor", *arguments)
        assert (ended.exit_code, "nothing was checked" in ended.stdout) == (4, True)


ELSEWHERE = """
import onefold
from onefold import Run, actuator
from pydantic import BaseModel

class Asked(BaseModel):
    name: str

@actuator
async def greet(run: Run, asked: Asked) -> str:
    \"\"\"Say hello.\"\"\"
    return asked.name

app = onefold.App(greet, store="stock-data")
"""


def test_the_store_that_the_code_names_is_the_one_checked(typed: Any, tmp_path: Path) -> None:
    asyncio.run(_grow(tmp_path / "stock-data", 3))
    (tmp_path / "stock.py").write_text(ELSEWHERE)
    (tmp_path / "onefold.toml").write_text('app = "stock.py"\n')
    ended = typed("doctor")
    assert (ended.exit_code, "stock-data" in ended.stdout, "main: ok" in ended.stdout) == (0, True, True)


def test_an_app_that_cannot_be_loaded_leaves_the_store_to_be_named(typed: Any, tmp_path: Path) -> None:
    asyncio.run(_grow(tmp_path / "stock-data", 3))
    (tmp_path / "gone.py").write_text('import os\nos.environ["NO_SUCH_VARIABLE"]\n')
    (tmp_path / "onefold.toml").write_text('app = "gone.py"\n')
    ended = typed("doctor")
    assert (ended.exit_code, "gone.py:2" in ended.stderr, "--store" in ended.stderr) == (2, True, True)
    assert typed("doctor", "--store", "stock-data").exit_code == 0


def test_turns_are_counted_however_far_their_numbers_are(typed: Any, tmp_path: Path) -> None:
    asyncio.run(_grow(tmp_path / "onefold-data", 3))
    _by_hand(tmp_path / "onefold-data", "update _onefold_turn set n=n+4000 where seq=1")
    found = parse(typed("doctor", "--json").stdout.encode())
    assert {item["space"]: item["turns"] for item in found["items"]} == {"main": 3, "refund_order": 0}


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


# --- blobs -------------------------------------------------------------------------------------------------


async def _with_blobs(folder: Path, *, home: str = "database") -> str:
    """A store with a spilled reply, a spilled owed body, a put that an event names, and one that nothing names."""
    printer = Printer(failing=1)
    async with staged(documents, printer.port(), store=folder, settings={"blobs": home}) as stage:
        caller = stage.caller("a")
        name = await stage.host.blobs_put(b"named", caller=caller)
        await stage.host.blobs_put(b"named by nobody", caller=caller)
        await stage.host.deliver(documents, Write("w", "d", text=name, reply=9_000, owed=8_000), caller=caller)
        await stage.settle()
    return name


@pytest.mark.parametrize("home", ["database", "files"])
def test_whole_blobs_are_counted_and_those_that_nothing_names_too(typed: Any, tmp_path: Path, home: str) -> None:
    asyncio.run(_with_blobs(tmp_path / "onefold-data", home=home))
    ended = typed("doctor", "--json")
    assert ended.exit_code == 0
    (main,) = parse(ended.stdout.encode())["items"]
    assert (main["state"], main["blobs"], main["unreferenced"]) == ("ok", 4, 1)
    assert "unreferenced" in typed("doctor").stdout


@pytest.mark.parametrize("home", ["database", "files"])
def test_a_damaged_blob_is_named_by_its_digest(typed: Any, tmp_path: Path, home: str) -> None:
    folder = tmp_path / "onefold-data"
    name = asyncio.run(_with_blobs(folder, home=home))
    if home == "files":
        (file,) = [one for one in (folder / "blobs").rglob("*") if one.is_file() and one.read_bytes() == b"named"]
        file.write_bytes(b"nemad")
    else:
        _by_hand(folder, "update _onefold_blob_part set bytes=cast('nemad' as blob) where bytes=cast('named' as blob)")
    ended = typed("doctor")
    assert ended.exit_code == 1
    assert f"the blob {name} is damaged: its bytes are others than were put" in ended.stdout


@pytest.mark.parametrize("row", ["turn", "owed"])
def test_a_blob_that_is_missing_is_named_with_the_row_that_points_at_it(typed: Any, tmp_path: Path, row: str) -> None:
    folder = tmp_path / "onefold-data"
    asyncio.run(_with_blobs(folder))
    delete = (
        "delete from _onefold_blob where size=9000" if row == "turn" else "delete from _onefold_blob where size=8000"
    )
    _by_hand(folder, delete)
    ended = typed("doctor")
    assert ended.exit_code == 1
    assert f"is missing, and {row} 1 points at it" in ended.stdout


def test_a_long_value_of_a_run_that_is_missing_is_named(typed: Any, tmp_path: Path) -> None:
    @actuator
    async def echo(run: Run, said: Said) -> str:
        return said.text

    async def play() -> None:
        async with staged(echo, store=tmp_path / "onefold-data") as stage:
            await stage.host.start("echo", {"text": "long " * 2_000}, key="k", caller=stage.caller("a"))
            await stage.settle()

    asyncio.run(play())
    db = apsw.Connection(str(tmp_path / "onefold-data" / "echo.db"))
    db.execute("delete from _onefold_blob")
    db.close()
    ended = typed("doctor")
    assert ended.exit_code == 1
    assert ended.stdout.count("is missing, and turn 1 points at it") == 2


def test_a_lost_folder_of_blobs_is_told_in_few_words(typed: Any, tmp_path: Path) -> None:
    async def play() -> None:
        async with staged(store=tmp_path / "onefold-data", settings={"blobs": "files"}) as stage:
            for n in range(30):
                await stage.host.blobs_put(b"%d" % n, caller=stage.caller("a"))

    asyncio.run(play())
    shutil.rmtree(tmp_path / "onefold-data" / "blobs")
    ended = typed("doctor")
    assert ended.exit_code == 1
    assert ended.stdout.count("its file is gone") == 20
    assert "and 10 more" in ended.stdout


def test_a_blob_of_main_that_a_run_names_in_its_own_space_counts_as_named(typed: Any, tmp_path: Path) -> None:
    @actuator
    async def keep(run: Run, said: Said) -> str:
        return said.text

    async def play() -> None:
        async with staged(keep, store=tmp_path / "onefold-data") as stage:
            name = await stage.host.blobs_put(b"named elsewhere", caller=stage.caller("a"))
            await stage.host.start("keep", {"text": name}, caller=stage.caller("a"))
            await stage.settle()

    asyncio.run(play())
    items = {item["space"]: item for item in parse(typed("doctor", "--json").stdout.encode())["items"]}
    assert (items["main"]["blobs"], items["main"]["unreferenced"]) == (1, 0)
