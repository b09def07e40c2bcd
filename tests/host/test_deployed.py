"""Deployed files: judged, numbered, offered at once, rolled back, taken up again by whoever opens the store next."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from onefold.host.core import MAIN
from onefold.host.deployed import DEPLOYMENT, Text, Version, digest_of, numbering
from onefold.host.deploying import Deploying
from onefold.host.offering import Offering
from onefold.ports import sandbox
from onefold.store.contract import Done, Query
from onefold.terms.errors import LoadRefused, NotFound, OnefoldError, UnknownName
from onefold.testing.stage import Killed, Stage
from tests.host.deployable import SECOND, Unboxed, called, deploy, rows, source, stage_on, stands_in

__all__ = ["stands_in"]
pytestmark = pytest.mark.usefixtures("stands_in")
STORES = ("memory", "sqlite", "postgres")


# --- promises, each with a twin that breaks it ---------------------------------------------------------


async def a_file_is_a_tool_at_once(stage: Stage) -> None:
    version = await deploy(stage, source())
    assert (version.version, version.generation, version.tools, version.by) == (1, 1, ("keep",), "anna")
    assert (await called(stage))["result"] == "first 1"
    assert (await called(stage, "trusted", None))["result"] == "own"


async def the_same_text_again_is_the_same_version(stage: Stage) -> None:
    first = await deploy(stage, source())
    assert await stage.host.deploy("notes", source(), caller=stage.caller()) == (first, False)
    assert len(await rows(stage)) == 1


async def another_text_is_the_next_version_and_runs_go_on_with_it(stage: Stage) -> None:
    await deploy(stage, source())
    waiting = await called(stage, said="ask")
    assert waiting["waits"][0]["name"] == "manager"
    assert (await deploy(stage, source("other"))).version == 2
    await stage.host.approvals_decide(waiting["run_id"], "manager", approve=True, by="ann", caller=stage.caller())
    await stage.settle()
    ended = await stage.host.receipt(waiting["run_id"], caller=stage.caller())
    assert ended.to_json()["result"] == "other 1"
    assert [(one.file, one.version, one.generation) for one in await rows(stage)] == [("notes", 1, 1), ("notes", 2, 2)]


async def a_rollback_is_a_version_of_its_own(stage: Stage) -> None:
    first = await deploy(stage, source())
    await deploy(stage, source("other"))
    back, is_new = await stage.host.rollback("notes", 1, caller=stage.caller("bob"))
    assert (is_new, back.version, back.generation, back.back_to, back.digest) == (True, 3, 3, 1, first.digest)
    assert (await called(stage))["result"] == "first 1"
    assert await stage.host.rollback("notes", 1, caller=stage.caller()) == (back, False)
    assert [one.version for one in await rows(stage)] == [1, 2, 3]


async def who_opens_the_store_next_has_them(stage: Stage) -> None:
    await deploy(stage, source())
    await deploy(stage, source("other"))
    waiting = await called(stage, said="ask")
    await stage.restart()
    await stage.host.approvals_decide(waiting["run_id"], "manager", approve=True, by="ann", caller=stage.caller())
    await stage.settle()
    ended = await stage.host.receipt(waiting["run_id"], caller=stage.caller())
    assert ended.to_json()["result"] == "other 1"
    await stage.crash()
    assert (await called(stage))["result"] == "other 2"


async def a_name_is_one_parts_alone(stage: Stage) -> None:
    await deploy(stage, source())
    for text, file in ((source(name="trusted"), "other"), (source(), "other")):
        with pytest.raises(LoadRefused, match="give one of them another name"):
            await deploy(stage, text, file)
    assert len(await rows(stage)) == 1
    assert (await called(stage, "trusted", None))["result"] == "own"


async def what_does_not_load_never_counts(stage: Stage) -> None:
    await deploy(stage, source())
    for text in (source("bad", more="\nraise RuntimeError\n"), "x = 1\n"):
        with pytest.raises(LoadRefused):
            await deploy(stage, text)
    assert len(await rows(stage)) == 1
    assert (await called(stage))["result"] == "first 1"


async def a_version_counts_only_against_the_set_it_was_judged_by(stage: Stage) -> None:
    """Another node numbers a file with the same tool at the moment at which this one is about to."""
    deploying, commit = stage.host._deploying, stage.host._deploying._commit
    text, met = source(), False

    async def late(version: Version, what: Text) -> bool:
        nonlocal met
        if not met:
            met = True
            described = (await sandbox.describe(text, "other.py")).written()
            row = Version(version.generation, "other", 1, digest_of(text), ("keep",), None, None, "they", 0)
            space = await stage.host.space(MAIN)
            assert isinstance(await space.transact(numbering(row, Text(text, described))), Done)
        return await commit(version, what)

    deploying._commit = late  # type: ignore[method-assign, assignment]
    with pytest.raises(LoadRefused, match="deployed file other"):
        await deploy(stage, source("mine"))
    assert [one.file for one in await rows(stage)] == ["other"]
    assert (await called(stage))["result"] == "first 1"


async def a_tool_that_is_left_out_is_no_tool_and_its_runs_wait(stage: Stage) -> None:
    await deploy(stage, source(more=SECOND))
    waiting = await called(stage, said="ask")
    assert (await called(stage, "second", None))["result"] == "first"
    await deploy(stage, source(name="kept", more=SECOND))
    with pytest.raises(UnknownName):
        await called(stage)
    with pytest.raises(NotFound):
        await stage.host.receipt(waiting["run_id"], caller=stage.caller())
    await stage.advance("2 hours")
    await deploy(stage, source("third", more=SECOND))
    await stage.host.approvals_decide(waiting["run_id"], "manager", approve=True, by="ann", caller=stage.caller())
    await stage.settle()
    ended = await stage.host.receipt(waiting["run_id"], caller=stage.caller())
    assert ended.to_json()["result"] == "third 1"


async def a_file_is_taken_away_for_good_until_it_is_brought_back(stage: Stage) -> None:
    await deploy(stage, source())
    waiting = await called(stage, said="ask")
    away, is_new = await stage.host.deployed_remove("notes", caller=stage.caller("bob"))
    assert (is_new, away.version, away.generation, away.tools, away.digest) == (True, 2, 2, (), "")
    assert await stage.host.deployed_remove("notes", caller=stage.caller()) == (away, False)
    await stage.restart()
    with pytest.raises(UnknownName):
        await called(stage)
    assert await stage.host.deployed_list(caller=stage.caller()) == []
    back, _ = await stage.host.rollback("notes", 1, caller=stage.caller())
    assert (back.version, back.back_to) == (3, 1)
    await stage.host.approvals_decide(waiting["run_id"], "manager", approve=True, by="ann", caller=stage.caller())
    await stage.settle()
    ended = await stage.host.receipt(waiting["run_id"], caller=stage.caller())
    assert ended.to_json()["result"] == "first 1"


Promise = Callable[[Stage], Awaitable[None]]
PROMISES: tuple[Promise, ...] = (
    a_file_is_a_tool_at_once,
    the_same_text_again_is_the_same_version,
    another_text_is_the_next_version_and_runs_go_on_with_it,
    a_rollback_is_a_version_of_its_own,
    who_opens_the_store_next_has_them,
    a_name_is_one_parts_alone,
    what_does_not_load_never_counts,
    a_version_counts_only_against_the_set_it_was_judged_by,
    a_tool_that_is_left_out_is_no_tool_and_its_runs_wait,
    a_file_is_taken_away_for_good_until_it_is_brought_back,
)


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("promise", PROMISES, ids=lambda one: one.__name__)
async def test_it_is_kept(promise: Promise, store: str, tmp_path: Path) -> None:
    async with stage_on(store, tmp_path) as stage:
        await promise(stage)
        await stage.settle()
        assert [one.generation for one in await rows(stage)] == list(range(1, len(await rows(stage)) + 1))


async def _nothing(*_: Any, **__: Any) -> None:
    return None


def _not_taken_up(patch: pytest.MonkeyPatch) -> None:
    """The row alone: neither the app that runs nor the next one has it."""
    patch.setattr(Deploying, "_take_up", _nothing)


def _always_new(patch: pytest.MonkeyPatch) -> None:
    numbers = count()
    patch.setattr("onefold.host.deploying.digest_of", lambda text: f"sha256:{next(numbers)}")


def _number_again(patch: pytest.MonkeyPatch) -> None:
    """A rollback that writes the old number's row again, which the next look does not find newer."""

    async def back(self: Deploying, file: str, to: int, caller: Any) -> Any:
        return next(one for one in await self.versions(file) if one.version == to), True

    patch.setattr(Deploying, "rollback", back)


def _only_while_it_runs(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Deploying, "open", _nothing)


def _unjudged(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Deploying, "_judge", lambda *_: None)


def _counted_first(patch: pytest.MonkeyPatch) -> None:
    """Numbered as it comes; what it holds is found when it is taken up."""

    async def unread(self: Deploying, file: str, text: str) -> Any:
        found = await sandbox.describe(source("guessed"), file)
        return Text(text, found.written()), Unboxed(source("guessed"), file, found)

    patch.setattr(Deploying, "_read", unread)


def _whatever_came_between(patch: pytest.MonkeyPatch) -> None:
    """A version numbered behind whatever is there, without being judged against it."""

    async def commit(self: Deploying, version: Version, text: Text) -> bool:
        (rows,) = await (await self._core.space(MAIN)).look(Query(DEPLOYMENT, order=("-generation",), limit=1))
        behind = Version.of(rows[0]).generation if rows else 0
        moved = Version(behind + 1, *[getattr(version, name) for name in Version.__slots__[1:]])
        outcome = await (await self._core.space(MAIN)).transact(numbering(moved, text))
        return isinstance(outcome, Done)

    patch.setattr(Deploying, "_commit", commit)


def _never_withdrawn(patch: pytest.MonkeyPatch) -> None:
    change = Offering.change
    patch.setattr(Offering, "change", lambda self, away, here: change(self, [], here))


def _taken_away_here_alone(patch: pytest.MonkeyPatch) -> None:
    """Out of this process, and in the rows as ever."""

    async def remove(self: Deploying, file: str, caller: Any) -> Any:
        held = self._held.pop(file)
        self._offering.change([one.name for one in held.actuators], ())
        return Version(2, file, 2, "", (), None, None, caller.name, 0), True

    patch.setattr(Deploying, "remove", remove)


TWINS: tuple[tuple[Callable[[pytest.MonkeyPatch], None], Promise], ...] = (
    (_not_taken_up, a_file_is_a_tool_at_once),
    (_always_new, the_same_text_again_is_the_same_version),
    (_not_taken_up, another_text_is_the_next_version_and_runs_go_on_with_it),
    (_number_again, a_rollback_is_a_version_of_its_own),
    (_only_while_it_runs, who_opens_the_store_next_has_them),
    (_unjudged, a_name_is_one_parts_alone),
    (_counted_first, what_does_not_load_never_counts),
    (_whatever_came_between, a_version_counts_only_against_the_set_it_was_judged_by),
    (_never_withdrawn, a_tool_that_is_left_out_is_no_tool_and_its_runs_wait),
    (_taken_away_here_alone, a_file_is_taken_away_for_good_until_it_is_brought_back),
)


@pytest.mark.parametrize("twin,promise", TWINS, ids=lambda one: one.__name__)
async def test_a_broken_twin_is_caught(
    twin: Callable[[pytest.MonkeyPatch], None], promise: Promise, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    twin(monkeypatch)
    with pytest.raises((AssertionError, OnefoldError, pytest.fail.Exception, StopIteration, KeyError, ValueError)):
        async with stage_on("memory", tmp_path) as stage:
            await promise(stage)


def test_every_promise_has_a_twin() -> None:
    assert {promise for _, promise in TWINS} == set(PROMISES)


# --- crashes -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("point", ["before-deploy", "before-commit", "after-commit", "after-deploy"])
@pytest.mark.parametrize("store", ["memory", "sqlite"])
async def test_a_crash_leaves_a_version_whole_or_none_and_again_is_safe(store: str, point: str, tmp_path: Path) -> None:
    async with stage_on(store, tmp_path) as stage:
        await deploy(stage, source())
        armed = stage.host._deploying._commit

        async def kills(version: Version, text: Text | None) -> bool:
            stage.kill_at(point)
            return await armed(version, text)

        stage.host._deploying._commit = kills  # type: ignore[method-assign]
        dying = asyncio.create_task(stage.host.deploy("notes", source("other"), caller=stage.caller()))
        while not (stage.killed or dying.done()):  # noqa: ASYNC110 - what is waited for has no event of its own
            await asyncio.sleep(0.001)
        await stage.let_die()
        dying.cancel()
        with pytest.raises((Killed, asyncio.CancelledError, OnefoldError)):
            await dying
        stage.live_on()
        await stage.open()
        counted = len(await rows(stage))
        assert counted == (2 if point in ("after-commit", "after-deploy") else 1)
        assert (await called(stage))["result"] == ("other 1" if counted == 2 else "first 1")
        version, is_new = await stage.host.deploy("notes", source("other"), caller=stage.caller())
        assert (version.version, is_new, len(await rows(stage))) == (2, counted == 1, 2)
