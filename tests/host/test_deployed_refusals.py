"""What is not deployed, why, and that nothing of it stays; and what else a deployed file gets of its host."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from onefold import App, Run, actuator
from onefold.cell import Cell
from onefold.host.caller import Right
from onefold.host.config import settle
from onefold.host.core import MAIN
from onefold.host.deployable import SOURCE_LIMIT
from onefold.host.deployed import DEPLOYED_TEXT
from onefold.host.deploying import Deploying
from onefold.ports import sandbox
from onefold.store.contract import Last, Remove
from onefold.terms.errors import (
    BadArguments,
    Forbidden,
    LoadRefused,
    NotFound,
    OnefoldError,
    OutcomeUnknown,
    PortFailed,
    TooLarge,
)
from onefold.testing import staged
from onefold.testing.stage import Stage
from tests.guarantees.shop import bank
from tests.host.deployable import PEOPLE, Unboxed, called, deploy, files_in, rows, source, stage_on, stands_in, trusted

__all__ = ["stands_in"]
pytestmark = pytest.mark.usefixtures("stands_in")


class Room(Cell, tool=True):
    visits: int = 0

    def greet(self, who: str) -> str:
        return f"hello {who}"


# --- refusals ----------------------------------------------------------------------------------------

HOSTILE: dict[str, tuple[str, type[OnefoldError], str]] = {
    "no python": ("def f(:\n", LoadRefused, r"notes.py:1: syntax"),
    "a nul": ("x = 1\0\n", LoadRefused, r"notes.py:1: syntax"),
    "a lone surrogate": ("x = '\ud800'\n", LoadRefused, r"notes.py"),
    "deep brackets": ("(" * 5_000, LoadRefused, r"syntax"),
    "deep signs": ("x = " + "-" * 200_000 + "1\n", LoadRefused, r"syntax"),
    "deep attributes": ("x" + ".a" * 100_000 + "\n", LoadRefused, r"notes.py"),
    "too large": ("#" * (SOURCE_LIMIT + 1), TooLarge, r"notes.py"),
    "large in bytes alone": ("# " + "ü" * (SOURCE_LIMIT // 2), TooLarge, r"notes.py"),
    "nothing": ("", LoadRefused, r"actuators of its own"),
    "a clock": (
        source().replace("    if note", "    import time\n    time.time()\n    if note"),
        LoadRefused,
        r"notes.py:\d+: clock",
    ),
    "a reserved name": (source(name="get_run"), LoadRefused, r"Onefold's own"),
    "the name of main": (source(name="main"), LoadRefused, r"the app's own code"),
    "the name of a module": (source(name="bank"), LoadRefused, r"the app's own code"),
    "the name of the alerts": (source(name="reflex_alerts"), LoadRefused, r"the app's own code"),
    "the name of a cell's tool": (source(name="room_greet"), LoadRefused, r"the tools of its cells"),
    "migrations that are none": (source(migrations='["CREATE TABEL notes (said TEXT)"]'), LoadRefused, r"migrations"),
    "a variable": (
        source().replace('webhook="standard"', 'capabilities=["env:PAY_KEY"]'),
        LoadRefused,
        r"env:PAY_KEY: is not offered",
    ),
}


@pytest.mark.parametrize("named", HOSTILE)
async def test_what_is_refused_leaves_nothing_behind(named: str, tmp_path: Path) -> None:
    text, error, told = HOSTILE[named]
    async with stage_on("sqlite", tmp_path, trusted, bank, Room) as stage:
        before = files_in(tmp_path)
        with pytest.raises(error, match=told) as caught:
            await stage.host.deploy("notes", text, caller=stage.caller())
        assert len(str(caught.value)) < 4_000
        assert await rows(stage) == []
        assert files_in(tmp_path) == before
        assert await stage.host.deployed_list(caller=stage.caller()) == []
        assert (await called(stage, "trusted", None))["result"] == "own"


@pytest.mark.parametrize("file", ["", "Notes", "no-tes", "../x", "a" * 33, "1x", "x.py", "ä", "x\n"])
async def test_a_file_has_a_plain_name(file: str, tmp_path: Path) -> None:
    async with stage_on("memory", tmp_path) as stage:
        with pytest.raises(LoadRefused, match="a deployed file has a name"):
            await stage.host.deploy(file, source(), caller=stage.caller())


async def test_a_migration_that_was_changed_is_refused_and_a_further_one_is_run(tmp_path: Path) -> None:
    async with stage_on("sqlite", tmp_path) as stage:
        await deploy(stage, source())
        assert (await called(stage))["result"] == "first 1"
        with pytest.raises(LoadRefused, match="changed after it ran"):
            await deploy(stage, source("b", migrations='["CREATE TABLE notes (said TEXT, more TEXT)"]'))
        with pytest.raises(LoadRefused, match="migrations of keep"):
            await deploy(
                stage, source("c", migrations='["CREATE TABLE notes (said TEXT)", "ALTER TABLE nothing ADD x"]')
            )
        assert (await called(stage))["result"] == "first 2"
        more = '["CREATE TABLE notes (said TEXT)", "INSERT INTO notes VALUES (\'theirs\')"]'
        await deploy(stage, source("d", migrations=more))
        assert (await called(stage))["result"] == "d 4"
        await stage.host.rollback("notes", 1, caller=stage.caller())
        assert (await called(stage))["result"] == "first 5"
        await stage.restart()
        assert (await called(stage))["result"] == "first 6"


async def test_versions_that_are_not_there_are_not_found(tmp_path: Path) -> None:
    async with stage_on("memory", tmp_path) as stage:
        for file, version in (("notes", 1), ("other", 1)):
            with pytest.raises(NotFound):
                await stage.host.rollback(file, version, caller=stage.caller())
        await deploy(stage, source())
        with pytest.raises(NotFound):
            await stage.host.rollback("notes", 2, caller=stage.caller())
        with pytest.raises(NotFound):
            await stage.host.deployed_versions("other", caller=stage.caller())


@pytest.mark.parametrize("right", ["call", "read", "operate"])
async def test_only_who_may_deploy_deploys_rolls_back_and_looks(right: Right, tmp_path: Path) -> None:
    async with stage_on("memory", tmp_path) as stage:
        await deploy(stage, source())
        caller = stage.caller("anna", rights=[right])
        for asked in (
            stage.host.deploy("notes", source("other"), caller=caller),
            stage.host.rollback("notes", 1, caller=caller),
            stage.host.deployed_remove("notes", caller=caller),
            stage.host.deployed_list(caller=caller),
            stage.host.deployed_versions("notes", caller=caller),
        ):
            with pytest.raises(Forbidden):
                await asked
        assert len(await rows(stage)) == 1


async def test_where_there_is_no_sandbox_nothing_is_deployed_and_nothing_runs_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with stage_on("memory", tmp_path) as stage:
        monkeypatch.setattr(sandbox, "problem", lambda: "There is no bwrap here: install it.")
        with pytest.raises(LoadRefused, match=r"notes.py: There is no bwrap here: install it"):
            await deploy(stage, source())
        assert await rows(stage) == []


async def test_a_fleet_on_a_folder_takes_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONEFOLD_SECRET", "known to every test, and of no use")
    async with App(trusted, store=tmp_path, node="a", config={"listen": "127.0.0.1:1"}) as app:
        with pytest.raises(LoadRefused, match="put the store on Postgres"):
            await app.host.deploy("notes", source(), caller=app.caller)


async def test_what_was_deployed_before_the_folder_was_shared_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("ONEFOLD_SECRET", "known to every test, and of no use")
    async with stage_on("sqlite", tmp_path) as stage:
        await deploy(stage, source())
    async with App(trusted, store=tmp_path, node="a", config={"listen": "127.0.0.1:1"}) as app:
        assert "they wait" in caplog.text
        assert list(app.host.catalog.actuators) == ["trusted"]
        assert await app.host.deployed_list(caller=app.caller) == []
    async with stage_on("sqlite", tmp_path) as stage:
        assert (await called(stage))["result"] == "first 1"


async def test_no_more_files_than_a_host_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onefold.host.deploying.FILES", 2)
    async with stage_on("memory", tmp_path) as stage:
        for n in range(2):
            await deploy(stage, source(name=f"t{n}"), f"f{n}")
        with pytest.raises(LoadRefused, match="one more than the 2 deployed files"):
            await deploy(stage, source(name="t2"), "f2")
        await deploy(stage, source("other", name="t1"), "f1")
        await stage.host.deployed_remove("f0", caller=stage.caller())
        await deploy(stage, source(name="t2"), "f2")
        assert [one.file for one in await stage.host.deployed_list(caller=stage.caller())] == ["f1", "f2"]


class Alongside:
    """What another node has of its own: no name that is taken, and nothing to change here."""

    def taken(self) -> Any:
        return lambda name: None

    def change(self, away: Any, here: Any) -> None:
        """Theirs."""


async def test_a_tool_that_moved_from_one_file_to_another_is_taken_up_whole(tmp_path: Path) -> None:
    """As another node does it, and who opens the store next: of several versions at once, the newest of each file."""
    async with stage_on("sqlite", tmp_path) as stage:
        await deploy(stage, source(name="other"), "y")
        await deploy(stage, source("x1"), "x")
        late = Deploying(stage.host._core, Alongside(), stage.host._live)  # type: ignore[arg-type]
        stage.host._core.newest = stage.host._deploying._newest
        late._held, late._generation = dict(stage.host._deploying._held), 2
        await deploy(stage, source("y2", name="other"), "y")
        await deploy(stage, source("x2", name="less"), "x")
        await deploy(stage, source("y3"), "y")
        assert (await called(stage))["result"] == "y3 1"
        await late._take_up()
        assert {file: held.version.version for file, held in late._held.items()} == {"x": 2, "y": 3}
        await stage.restart()
        assert (await called(stage))["result"] == "y3 2"


async def test_a_commit_without_an_answer_is_found_by_whoever_looks_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with stage_on("memory", tmp_path) as stage:
        await deploy(stage, source())
        waiting = await called(stage, said="ask")
        commit = stage.host._deploying._commit

        async def lost(version: Any, text: Any) -> bool:
            await commit(version, text)
            raise OutcomeUnknown("the version")

        with monkeypatch.context() as patch:
            patch.setattr(stage.host._deploying, "_commit", lost)
            with pytest.raises(OutcomeUnknown):
                await deploy(stage, source("other"))
        await stage.host.approvals_decide(waiting["run_id"], "manager", approve=True, by="ann", caller=stage.caller())
        await stage.settle()
        ended = await stage.host.receipt(waiting["run_id"], caller=stage.caller())
        assert ended.to_json()["result"] == "other 1"
        assert (await stage.host.deploy("notes", source("other"), caller=stage.caller()))[1] is False


async def test_a_call_that_a_newer_version_meets_is_taken_by_that_one(tmp_path: Path) -> None:
    async with stage_on("memory", tmp_path) as stage:
        await deploy(stage, source())
        old = stage.host.catalog.actuator("keep")

        async def closed(arguments: Any) -> Any:
            await deploy(stage, source("other"))
            raise PortFailed("sandbox", "notes.py", "it was closed")

        old.checked = closed  # type: ignore[method-assign]
        assert (await called(stage))["result"] == "other 1"
        new = stage.host.catalog.actuator("keep")

        async def broken(arguments: Any) -> Any:
            raise PortFailed("sandbox", "notes.py", "it ended")

        new.checked = broken  # type: ignore[method-assign]
        with pytest.raises(PortFailed):
            await called(stage)


async def test_a_start_with_a_name_that_is_deployed_is_refused(tmp_path: Path) -> None:
    async with stage_on("sqlite", tmp_path) as stage:
        await deploy(stage, source(name="theirs"))

    @actuator
    async def theirs(run: Run) -> str:
        """The app's own by now."""
        return "own"

    with pytest.raises(LoadRefused, match=r"notes.py: actuator theirs: stands in the app's own code too"):
        async with staged(theirs, store=tmp_path):
            pass


async def test_a_text_that_is_gone_is_told_and_stops_nothing_else(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with stage_on("sqlite", tmp_path) as stage:
        version = await deploy(stage, source())

        def gone() -> Generator[Any, Any, Last[None]]:
            yield ()
            return Last((Remove(DEPLOYED_TEXT, keys=[("notes", version.digest)]),), None)

        await (await stage.host.space(MAIN)).transact(gone)
        await stage.restart()
        assert "version 1 of notes is not offered" in caplog.text
        assert (await called(stage, "trusted", None))["result"] == "own"
        assert await stage.host.deploy("notes", source(), caller=stage.caller()) == (
            (await rows(stage))[-1],
            True,
        )
        assert (await called(stage))["result"] == "first 1"


# --- beside ------------------------------------------------------------------------------------------


async def test_many_at_once_are_numbered_one_after_another(tmp_path: Path) -> None:
    async with stage_on("sqlite", tmp_path) as stage:
        files = [("notes", source(f"m{n}")) if n % 2 else (f"f{n}", source(name=f"t{n}")) for n in range(8)]
        told = await asyncio.gather(*(stage.host.deploy(file, text, caller=stage.caller()) for file, text in files))
        assert sorted(version.generation for version, _ in told) == list(range(1, 9))
        assert sorted(version.version for version, _ in told if version.file == "notes") == [1, 2, 3, 4]
        newest = max((version for version, _ in told if version.file == "notes"), key=lambda one: one.version)
        held = {one.file: one for one in await stage.host.deployed_list(caller=stage.caller())}
        assert held["notes"] == newest
        assert len(held) == 5


async def test_an_app_without_a_part_takes_files_and_keeps_their_limits(tmp_path: Path) -> None:
    limited = source().replace('webhook="standard"', "at_once=1")
    async with staged(store=tmp_path, settings=PEOPLE) as stage:
        await deploy(stage, limited)
        first = await called(stage, said="ask", key="a")
        second = await called(stage, said="b", key="b")
        assert (first["status"], second["status"]) == ("waiting", "running")
        await stage.restart()
        await stage.settle()
        beside = await stage.host.receipt(second["run_id"], caller=stage.caller())
        assert beside.to_json()["status"] == "running"
        await stage.host.approvals_decide(first["run_id"], "manager", approve=True, by="ann", caller=stage.caller())
        await stage.settle()
        ended = await stage.host.receipt(second["run_id"], caller=stage.caller())
        assert ended.to_json()["result"] == "first 2"


async def test_a_newer_version_closes_the_former_and_a_stop_the_last(tmp_path: Path) -> None:
    async with stage_on("memory", tmp_path) as stage:
        await deploy(stage, source())
        assert Unboxed.closed == []
        await deploy(stage, source("other"))
        await stage.settle()
        assert len(Unboxed.closed) == 1
    assert len(Unboxed.closed) >= 2


async def test_a_line_of_the_log_says_who_deployed_what_and_no_secret(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with stage_on("memory", tmp_path) as stage:
        await stage.host.deploy("notes", source("hunter2"), caller=stage.caller("a\nb"))
        assert r"'a\nb' deployed version 1 of notes, generation 1: keep" in caplog.text
        assert "hunter2" not in caplog.text


async def test_a_variable_is_seen_where_the_settings_offer_it_and_the_file_declares_it(tmp_path: Path) -> None:
    text = source().replace('webhook="standard"', 'capabilities=["env:PAY_KEY"]')
    config = settle(
        code={"store": "memory:", "deployed": {"environment": ["PAY_KEY", "OTHER"]}},
        environ={"PAY_KEY": "k", "OTHER": "o", "ONEFOLD_SECRET": "s" * 20},
    )
    stage = Stage((trusted,), config)
    await stage.open()
    try:
        await deploy(stage, text)
        (held,) = stage.host._deploying._held.values()
        stood_in: Any = held.deployment
        assert stood_in.environment == {"PAY_KEY": "k", "OTHER": "o"}
    finally:
        await stage.close()


@pytest.mark.parametrize("name", ["ONEFOLD_SECRET", "A_KEY", "SMTP_URL", "a b", ""])
def test_no_secret_of_the_hosts_own_is_offered(name: str) -> None:
    said = {
        "deployed": {"environment": [name]},
        "keys": [{"secret_env": "A_KEY", "may": ["call"]}],
        "smtp": {"url_env": "SMTP_URL", "from": "a@example.com"},
    }
    with pytest.raises(LoadRefused, match=r"deployed.environment"):
        settle(code=said)


async def test_bad_arguments_of_a_deployed_tool_are_told_before_a_row(tmp_path: Path) -> None:
    async with stage_on("memory", tmp_path) as stage:
        await deploy(stage, source())
        with pytest.raises(BadArguments):
            await called(stage, said=None)
        assert (await stage.host.runs_list(caller=stage.caller())).items == []
