"""An app on Postgres: what its settings may say, one process at a time, spaces that are moved, and no secret shown."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import psycopg
import pytest
from pydantic import BaseModel

from onefold import App, Run, actuator
from onefold.cli.doctor import doctor
from onefold.errors import StoreReplaced
from onefold.host.config import Config, settle
from onefold.kernel.tables import TURN
from onefold.store.postgres import PostgresWorld
from onefold.store.postgres.checkup import checkup
from onefold.terms.errors import LoadRefused, StoreLocked, StoreUnavailable
from tests.guarantees.shop import Deposit, bank
from tests.postgres import fresh_database

PASSWORD = "hunter2secret"
SECRET = {"ONEFOLD_SECRET": "known to every test, and of no use"}
ADDRESS = f"postgres://ann:{PASSWORD}@db.example.com:5433/shop?sslmode=require&sslpassword={PASSWORD}"


class Note(BaseModel):
    said: str


@actuator(migrations=["create table notes (id integer primary key, said text)"])
async def keep(run: Run, note: Note) -> int:
    """Keep a note."""
    await run.db.execute("insert into notes values (:id, :said)", id=len(note.said), said=note.said)
    row = await run.db.fetch_one("select count(*) as n from notes")
    assert row is not None
    return int(row["n"])


def refused(**layers: Any) -> str:
    with pytest.raises(LoadRefused) as caught:
        settle(**layers)
    return str(caught.value)


def test_an_address_is_a_store_without_a_folder_and_is_shown_without_what_opens_it() -> None:
    config = settle(environ={"ONEFOLD_STORE": ADDRESS, "ONEFOLD_SPACES__KEEP": ADDRESS})
    assert (config.store, config.spaces, config.folder) == (ADDRESS, {"keep": ADDRESS}, None)
    assert config.shown == "postgres://db.example.com:5433/shop"
    assert PASSWORD not in repr(config)
    assert settle(code={"store": "postgresql:///x"}).shown == "postgres:///x"


@pytest.mark.parametrize(
    "said",
    ['store = "{}"', 'spaces.keep = "{}"', 'store = "postgres://db/x?password=hunter2secret"'],
)
def test_a_password_does_not_belong_in_the_file(said: str, tmp_path: Path) -> None:
    file = tmp_path / "onefold.toml"
    file.write_text(said.replace("{}", ADDRESS))
    told = refused(file=file)
    assert "does not belong in a file" in told
    assert PASSWORD not in told


@pytest.mark.parametrize(
    "code,why",
    [
        ({"store": "postgres:db"}, "postgres://user@host/database"),
        ({"store": "x", "spaces": {"main": "postgres://db/x"}}, "leave it out"),
        ({"store": "x", "spaces": {"keep": "memory:"}}, "by itself"),
        ({"store": "memory:", "spaces": {"keep": "x"}}, "all of its spaces"),
        ({"store": "postgres://db/x", "blobs": "files"}, "in the database on Postgres"),
        ({"store": "x", "spaces": {"Keep It": "y"}}, "no such setting"),
    ],
)
def test_what_does_not_go_together_is_refused(code: dict[str, Any], why: str) -> None:
    assert why in refused(code=code)


def test_a_moved_folder_counts_from_the_file(tmp_path: Path) -> None:
    file = tmp_path / "onefold.toml"
    file.write_text('spaces.keep = "elsewhere"\nspaces.other = "postgres://db/x"')
    assert settle(file=file).spaces == {"keep": str(tmp_path / "elsewhere"), "other": "postgres://db/x"}


async def test_a_start_without_a_secret_says_what_to_set(postgres: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ONEFOLD_SECRET", raising=False)
    with pytest.raises(LoadRefused, match="set ONEFOLD_SECRET"):
        async with App(bank, store=postgres):
            pass


@pytest.fixture
def secret(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in SECRET.items():
        monkeypatch.setenv(name, value)


@pytest.mark.usefixtures("secret")
@pytest.mark.parametrize("moved", [False, True])
async def test_an_app_keeps_all_of_it_there(moved: bool, postgres: str, tmp_path: Path) -> None:
    store: Any = tmp_path / "data" if moved else postgres
    config = {"spaces": {"keep": postgres}} if moved else {}
    for life in (1, 2):
        async with App(keep, bank, store=store, config=config) as app:
            assert await app.call(keep, Note(said="x" * life), key=f"k{life}") == life
            assert await app.call(keep, Note(said="x"), key="k1") == 1
            await app.deliver(bank, Deposit(id=f"d{life}", account="a", amount=5))
    with psycopg.connect(postgres) as conn:
        assert conn.execute("select count(*) from onefold_keep.notes").fetchone() == (2,)
        assert conn.execute("select array_agg(name order by name) from onefold._space").fetchone() == (
            (["keep"],) if moved else (["keep", "main"],)
        )
    assert (tmp_path / "data" / "main.db").exists() is moved
    assert not (tmp_path / "data" / "keep.db").exists()


@pytest.mark.usefixtures("secret")
async def test_a_second_process_is_told_who_has_it(postgres: str, monkeypatch: pytest.MonkeyPatch) -> None:
    defaults = PostgresWorld.__init__.__kwdefaults__
    assert defaults is not None
    monkeypatch.setitem(defaults, "patience_s", 0.1)
    async with App(keep, bank, store=postgres) as app:
        with pytest.raises(StoreLocked, match=r"process \d+ on"):
            async with App(keep, bank, store=postgres):
                pass
        assert await app.call(keep, Note(said="x")) == 1


@pytest.mark.usefixtures("secret")
@pytest.mark.parametrize(
    "address",
    [
        f"postgres://ann:{PASSWORD}@127.0.0.1:1/shop",
        f"postgres://ann:{PASSWORD}@nowhere.invalid/shop",
        f"postgres://ann:{PASSWORD}@127.0.0.1/shop?nonsense={PASSWORD}",
        f"postgres://ann:{PASSWORD}@[/shop",
    ],
)
async def test_no_error_and_no_log_holds_an_address(address: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG), pytest.raises((LoadRefused, StoreUnavailable)) as caught:
        async with App(bank, store=address):
            pass
    told: BaseException | None = caught.value
    while told is not None:
        assert PASSWORD not in f"{told!s} {told!r} {vars(told)}"
        told = told.__cause__ or told.__context__
    assert PASSWORD not in caplog.text


@pytest.mark.usefixtures("secret")
async def test_a_look_from_outside_takes_nothing_and_names_who_has_it(postgres: str) -> None:
    assert await checkup(postgres, TURN) == []
    async with App(keep, bank, store=postgres) as app:
        await app.call(keep, Note(said="x"))
        held = await checkup(postgres, TURN)
        assert await app.call(keep, Note(said="xx")) == 2
    assert [part.space for part in held] == ["keep", "main"]
    assert all(part.holder is not None and part.holder.startswith("process ") for part in held)
    free = await checkup(postgres, TURN)
    assert [(part.space, part.holder) for part in free] == [("keep", None), ("main", None)]
    assert free[0].turns


@pytest.mark.usefixtures("secret")
def test_doctor_follows_the_histories_there(postgres: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from click.testing import CliRunner

    async def grow() -> None:
        async with App(keep, bank, store=postgres) as app:
            await app.call(keep, Note(said="x"))
            await app.deliver(bank, Deposit(id="d", account="a", amount=5))

    monkeypatch.chdir(tmp_path)
    asyncio.run(grow())
    address = postgres.replace("postgres@", f"postgres:{PASSWORD}@")
    whole = CliRunner().invoke(doctor, ["--store", address], catch_exceptions=False)
    assert (whole.exit_code, PASSWORD in whole.output) == (0, False), whole.output
    assert "main: ok" in whole.output
    with psycopg.connect(postgres, autocommit=True) as conn:
        changed = "update onefold.turn set facts = replace(convert_from(facts, 'UTF8'), '5', '6')::bytea where facts is not null"
        conn.execute(changed)
    broken = CliRunner().invoke(doctor, ["--store", postgres, "--json"], catch_exceptions=False)
    assert broken.exit_code == 1, broken.output
    nothing = CliRunner().invoke(doctor, ["--store", fresh_database()], catch_exceptions=False)
    assert nothing.exit_code == 4, nothing.output


@pytest.mark.usefixtures("secret")
def test_a_restored_store_is_gone_on_with_once_a_person_confirmed_it(
    postgres: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from click.testing import CliRunner

    monkeypatch.chdir(tmp_path)

    async def grow(n: int) -> None:
        async with App(keep, bank, store=postgres) as app:
            await app.call(keep, Note(said="x" * n))

    asyncio.run(grow(1))
    with psycopg.connect(postgres, autocommit=True) as conn:
        conn.execute("update onefold._cluster set timeline = timeline + 1")  # as a backup of a later timeline has it
    with pytest.raises(StoreReplaced):
        asyncio.run(grow(2))
    told = CliRunner().invoke(doctor, ["--store", postgres], catch_exceptions=False)
    assert (told.exit_code, "keep" in told.output) == (6, True), told.output
    accepted = CliRunner().invoke(doctor, ["--store", postgres, "--accept-rollback"], catch_exceptions=False)
    assert accepted.exit_code == 0, accepted.output
    asyncio.run(grow(2))


def test_a_config_that_is_printed_shows_no_store() -> None:
    assert "hunter2" not in repr(Config(store=ADDRESS))
