"""`onefold backup` and `restore`: the whole store, or nothing; the same runs afterwards."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

SHOP = """
from pydantic import BaseModel

from onefold import App, Run, actuator


class Order(BaseModel):
    id: str


def pay(id: str) -> str:
    return "re_" + id


@actuator(migrations=["CREATE TABLE paid (id TEXT)"])
async def refund(run: Run, order: Order) -> str:
    await run.db.execute("INSERT INTO paid VALUES (:id)", id=order.id)
    return await run.step(pay)(order.id)


app = App(refund)
"""


@pytest.fixture
def shop(typed: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    (tmp_path / "shop.py").write_text(SHOP)
    (tmp_path / "onefold.toml").write_text('app = "shop.py"\n')
    monkeypatch.setenv("ONEFOLD_LISTEN", "127.0.0.1:1")
    assert typed("call", "refund", "id=7", "--key", "k").exit_code == 0
    return typed


def test_what_was_copied_is_there_again(shop: Any, tmp_path: Path) -> None:
    kept = json.loads(shop("runs", "--json").stdout)["items"]
    ended = shop("backup", "copy")
    assert (ended.exit_code, ended.stdout) == (0, f"Copied 2 spaces of {tmp_path}/onefold-data to copy.\n")
    assert shop("call", "refund", "id=8", "--key", "later").exit_code == 0
    (tmp_path / "onefold-data").rename(tmp_path / "lost")
    assert shop("restore", "copy", "--json").stdout == '{"spaces":["main","refund"]}\n'
    assert json.loads(shop("runs", "--json").stdout)["items"] == kept
    assert "'re_7'" not in shop("export", "refund", "--sql").stdout
    again = shop("call", "refund", "id=7", "--key", "k", "--json")
    assert json.loads(again.stdout)["run_id"] == kept[0]["run_id"], "its key is still taken"
    assert shop("doctor").exit_code == 0
    assert sorted(path.name for path in tmp_path.glob(".*")) == []


def test_nothing_is_overwritten(shop: Any, tmp_path: Path) -> None:
    assert shop("backup", "copy").exit_code == 0
    before = {path.name: path.read_bytes() for path in (tmp_path / "copy").iterdir()}
    for command in (("backup", "copy"), ("restore", "copy")):
        ended = shop(*command)
        assert ended.exit_code == 2
        assert "is there already and not empty. Nothing was written." in ended.stderr
    assert {path.name: path.read_bytes() for path in (tmp_path / "copy").iterdir()} == before


def test_a_damaged_backup_is_not_put_in_place(shop: Any, tmp_path: Path) -> None:
    assert shop("backup", "copy").exit_code == 0
    file = tmp_path / "copy" / "refund.db"
    raw = bytearray(file.read_bytes())
    raw[4096 * 2 : 4096 * 3] = b"\xff" * 4096
    file.write_bytes(raw)
    ended = shop("restore", "copy", "--store", "fresh")
    assert (ended.exit_code, (tmp_path / "fresh").exists()) == (1, False)
    assert ended.stderr.startswith("refund: ")


def test_what_is_no_folder_and_what_is_no_store_are_told(shop: Any, tmp_path: Path) -> None:
    assert "pg_dump" in shop("backup", "copy", "--store", "postgres://db.example.com/x").stderr
    assert shop("backup", "copy", "--store", "memory:").exit_code == 2
    assert "There is no store in" in shop("backup", "copy", "--store", "nowhere").stderr
    (tmp_path / "empty").mkdir()
    assert "There is no backup in" in shop("restore", "empty").stderr
    assert not (tmp_path / "copy").exists()


def test_a_store_that_is_never_still_is_held(shop: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from onefold.store.sqlite import backup

    def never(*_: Any) -> bool:
        raise backup.Moving

    monkeypatch.setattr(backup, "_copied", never)
    ended = shop("backup", "copy")
    assert (ended.exit_code, (tmp_path / "copy").exists()) == (6, False)
    assert "never still" in ended.stderr
