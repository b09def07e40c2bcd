"""`onefold export`: a tool's tables as a file, whole or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apsw
import pytest

TABLE = "/tools/refund_order/tables/refunds"
EXPORT = "/tools/refund_order/export"


def test_a_table_is_written_as_csv(typed: Any, told: Any, tmp_path: Path) -> None:
    told.answer("GET", TABLE, b"order_id\r\n7\r\n", media="text/csv; charset=utf-8")
    ended = typed("export", "refund_order", "--csv", "refunds", "-o", "refunds.csv")
    assert (ended.exit_code, ended.stdout, ended.stderr) == (0, "", "Wrote refunds.csv.\n")
    assert (tmp_path / "refunds.csv").read_bytes() == b"order_id\r\n7\r\n"
    assert told.sent[-1].headers["accept"] == "text/csv"
    assert told.sent[-1].query == {}
    assert [one.name for one in tmp_path.iterdir()] == ["refunds.csv"]


@pytest.mark.parametrize("form", ["sql", "sqlite"])
def test_the_whole_database_is_written_as_it_came(typed: Any, told: Any, tmp_path: Path, form: str) -> None:
    told.answer("GET", EXPORT, b"\xff\0 all of it", media="application/vnd.sqlite3")
    assert typed("export", "refund_order", f"--{form}", "-o", "out").exit_code == 0
    assert (tmp_path / "out").read_bytes() == b"\xff\0 all of it"
    assert told.sent[-1].query == {"as": form}
    ended = typed("export", "refund_order", f"--{form}")
    assert ended.stdout_bytes == b"\xff\0 all of it"


def test_a_refusal_leaves_the_file_that_was_there(typed: Any, told: Any, tmp_path: Path) -> None:
    (tmp_path / "out.sql").write_text("of yesterday")
    told.refuse("GET", EXPORT, "unknown_name", 404)
    ended = typed("export", "refund_order", "--sql", "-o", "out.sql")
    assert (ended.exit_code, ended.stderr.splitlines()[-1]) == (4, "It was unknown_name.")
    assert [(one.name, one.read_text()) for one in tmp_path.iterdir()] == [("out.sql", "of yesterday")]


def test_an_answer_that_is_cut_off_leaves_no_file(
    typed: Any, told: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.cli.conftest import _Door

    def cut(door: Any) -> None:
        door.send_response(200)
        door.send_header("content-length", "1000")
        door.end_headers()
        door.wfile.write(b"BEGIN;")
        door.close_connection = True

    monkeypatch.setattr(_Door, "do_GET", cut)
    assert typed("export", "refund_order", "--sql", "-o", "out.sql").exit_code == 7
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("flags", [("--sql", "--sqlite"), ("--sql", "--csv", "refunds"), ("--sqlite", "-o", "no/such")])
def test_what_cannot_be_meant_is_a_usage_error(typed: Any, told: Any, flags: tuple[str, ...]) -> None:
    assert typed("export", "refund_order", *flags).exit_code == 2
    assert told.sent == []


REFUNDS = """
from pydantic import BaseModel

from onefold import App, Run, actuator


class Order(BaseModel):
    id: str


@actuator(migrations=["CREATE TABLE refunds (id TEXT PRIMARY KEY, amount TEXT)"])
async def refund(run: Run, order: Order) -> str:
    await run.db.execute("INSERT INTO refunds VALUES (:id, '40')", id=order.id)
    return order.id


app = App(refund)
"""


def test_it_is_taken_from_a_store_that_no_app_has_open(typed: Any, told: Any, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(REFUNDS)
    (tmp_path / "onefold.toml").write_text('app = "shop.py"\n')
    nobody = "127.0.0.1:1"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ONEFOLD_LISTEN", nobody)
        assert typed("call", "refund", "id=7").exit_code == 0
        assert typed("export", "refund", "--sqlite", "-o", "out.sqlite").exit_code == 0
        dump = typed("export", "refund", "--sql")
        table = typed("export", "refund", "--csv", "refunds")
    conn = apsw.Connection(str(tmp_path / "out.sqlite"))
    assert conn.execute("select * from refunds").fetchall() == [("7", "40")]
    conn.close()
    assert 'INSERT INTO "refunds"("id","amount") VALUES(\'7\',\'40\');' in dump.stdout
    assert table.stdout_bytes == b"id,amount\r\n7,40\r\n"
