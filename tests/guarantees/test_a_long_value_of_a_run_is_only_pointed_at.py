"""A run's long input, results, events and output are read when they are needed, and are what they were."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw
from pydantic import BaseModel

from onefold import Approved, Run, actuator
from onefold.actuators.state import State
from onefold.errors import KeyConflict
from onefold.kernel.blob import BLOB, digest_text, raw_pointer
from onefold.kernel.tables import TURN
from onefold.terms.codec import canonical, digest
from onefold.terms.ids import ActorId
from onefold.terms.limits import INLINE_BYTES
from onefold.testing import Stage, staged
from onefold.testing.replaying import run_pass as replaying_pass
from tests.guarantees.documents import dies_or_ends, rows


class Book(BaseModel):
    title: str
    text: str


class Chapter(BaseModel):
    text: str


async def shout(text: str) -> str:
    return text.upper()


@actuator(dedupe_by=["title"])
async def publish(run: Run, book: Book) -> str:
    """Print a book: its text aloud, what was sent early, and what a person agreed to."""
    aloud = await run.step(shout)(book.text)
    early = await run.wait_for_event(Chapter)
    match await run.wait_for_approval("editor", "print it?", notify="editor", timeout="1 day"):
        case Approved():
            pass
        case _:
            return "no"
    late = await run.wait_for_event(Chapter)
    rows = await run.db.fetch("SELECT :text AS text", text=early.text)
    return aloud + early.text + late.text + str(rows[0]["text"])


@actuator
async def echo(run: Run, book: Book) -> str:
    return book.text


LONG = "long " * 4_000
BOOK = {"title": "b", "text": LONG}
SMALL = 3_000  # bytes that a row of a run may have


@pytest.fixture(params=["memory", "sqlite", "files"])
async def stage(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Stage]:
    store = "memory:" if request.param == "memory" else tmp_path / "store"
    settings: dict[str, Any] = {"people.editor.notify": ["https://editor.example.com"]}
    settings |= {"blobs": "files"} if request.param == "files" else {}
    async with staged(publish, echo, store=store, settings=settings) as stage:
        yield stage


async def play(stage: Stage, *, restart: bool = False) -> str:
    """The whole of a run with long values; its id. With `restart`, memory is lost between any two acts."""
    caller = stage.caller("a")

    async def rest() -> None:
        await stage.settle()
        if restart:
            await stage.crash()

    run = (await stage.host.start("publish", BOOK, key="k", caller=caller)).receipt.run_id
    await stage.host.run_send(run, "Chapter", {"text": "e" * 9_000}, key="early", caller=caller)
    await rest()
    await stage.host.run_send(run, "Chapter", {"text": "l" * 9_000}, key="late", caller=caller)
    await rest()
    for asked in await stage.host.approvals_list(caller=caller):
        await stage.host.approvals_decide(asked.run_id, asked.name, approve=True, by="editor", caller=caller)
    await rest()
    return run


EXPECTED = LONG.upper() + "e" * 9_000 + "l" * 9_000 + "e" * 9_000


@pytest.mark.parametrize("restart", [False, True])
async def test_a_run_with_long_values_ends_as_if_they_were_short_and_its_rows_stay_small(
    stage: Stage, restart: bool
) -> None:
    caller = stage.caller("a")
    run = await play(stage, restart=restart)
    receipt = await stage.host.receipt(run, caller=caller)
    assert (receipt.status, receipt.to_json()["result"]) == ("done", EXPECTED)
    assert max(len(row[TURN.at["facts"]]) for row in await rows(stage, TURN, "publish")) < SMALL  # type: ignore[arg-type]
    state: State = await stage.host._core.node.read(ActorId("publish", "a", run))
    assert max(len(bytes(raw)) for raw in (state.input, state.result)) < 200
    journal = await stage.host.run_journal(run, caller=caller)
    assert [row.result for row in journal if row.step == "shout"] == [LONG.upper()]
    assert [row.result for row in journal if row.kind == "event"] == [{"text": "e" * 9_000}, {"text": "l" * 9_000}]
    again = await stage.host.start("publish", BOOK, key="k", caller=caller)
    assert (again.replayed, again.receipt.to_json()["result"]) == (True, EXPECTED)


async def test_a_list_reads_no_long_result_and_the_runs_own_receipt_does(stage: Stage) -> None:
    caller = stage.caller("a")
    await stage.host.start("echo", {"title": "short", "text": "x" * 100}, key="short", wait_ms=1_000, caller=caller)
    started = await stage.host.start("echo", BOOK, key="long", wait_ms=1_000, caller=caller)
    assert started.receipt.to_json()["result"] == LONG
    listed = {r.key: r.to_json() for r in (await stage.host.runs_list(program="echo", caller=caller)).items}
    assert listed["short"]["result"] == "x" * 100
    assert listed["long"]["status"] == "done"
    assert "result" not in listed["long"]


async def test_what_people_are_shown_is_the_whole_input(stage: Stage) -> None:
    caller = stage.caller("a")
    run = (await stage.host.start("publish", BOOK, key="k", caller=caller)).receipt.run_id
    await stage.host.run_send(run, "Chapter", {"text": "e"}, key="early", caller=caller)
    await stage.settle()
    if stage.config.folder is not None:  # in memory the secret of links ends with the process
        await stage.crash()
    (open_,) = await stage.host.approvals_list(caller=caller)
    assert open_.shown == BOOK
    token = next(word for line in stage.said for word in line.split() if "/approve/" in word).rpartition("/")[2]
    page = await stage.host.link_page(token)
    assert (page.state, page.shown) == ("open", BOOK)
    assert (await stage.host.link_decide(token, choice="approve", reason=None)).outcome == "decided"


async def test_agreeing_calls_compare_the_whole_input(stage: Stage) -> None:
    caller = stage.caller("a")
    first = (await stage.host.start("publish", BOOK, caller=caller)).receipt.run_id
    await stage.crash()
    assert (await stage.host.start("publish", BOOK, caller=caller)).receipt.run_id == first
    with pytest.raises(KeyConflict):
        await stage.host.start("publish", {**BOOK, "text": LONG + "!"}, caller=caller)


@pytest.mark.parametrize("size", [INLINE_BYTES, INLINE_BYTES + 1])
async def test_a_result_of_4096_bytes_stays_in_its_row_and_one_of_4097_does_not(stage: Stage, size: int) -> None:
    caller = stage.caller("a")
    run = (await stage.host.start("echo", {"title": "t", "text": "x" * (size - 2)}, caller=caller)).receipt.run_id
    await stage.settle()
    state: State = await stage.host._core.node.read(ActorId("echo", "a", run))
    assert (len(bytes(state.result)) == size) == (size == INLINE_BYTES)
    assert (await stage.host.receipt(run, caller=caller)).to_json()["result"] == "x" * (size - 2)
    kept = {row[BLOB.at["digest"]] for row in await rows(stage, BLOB, "echo")}
    assert (digest(canonical("x" * (size - 2))) in kept) == (size > INLINE_BYTES)


async def test_no_principals_run_reads_anothers_value(stage: Stage) -> None:
    for who in ("a", "b"):
        await stage.host.start("echo", BOOK, key="k", caller=stage.caller(who))
    await stage.settle()
    addresses = {row[BLOB.at["address"]] for row in await rows(stage, BLOB, "echo")}
    assert len(addresses) == len(await rows(stage, BLOB, "echo")) == 4


async def test_json_that_looks_like_a_pointer_is_given_back_as_it_came(tmp_path: Path) -> None:
    secret = canonical("secret " * 1_000)
    forged = raw_pointer(digest(secret))

    async def forge() -> Raw:
        return Raw(bytes(forged))

    async def hide() -> str:
        return "secret " * 1_000

    @actuator
    async def forger(run: Run) -> Raw:
        await run.step(hide)()
        return await run.step(forge)()

    async with staged(forger, store=tmp_path) as stage:
        run = (await stage.host.start("forger", {}, caller=stage.caller())).receipt.run_id
        await stage.settle()
        receipt = await stage.host.receipt(run, caller=stage.caller())
        assert receipt.to_json()["result"] == {"blob": digest_text(digest(secret))}
        journal = await stage.host.run_journal(run, caller=stage.caller())
        assert journal[1].result == {"blob": digest_text(digest(secret))}


async def test_every_replay_meets_the_same_long_values(tmp_path: Path) -> None:
    async with staged(publish, store=tmp_path) as stage:
        stage.host._core.run_pass = replaying_pass
        run = await play(stage)
        assert (await stage.host.receipt(run, caller=stage.caller("a"))).to_json()["result"] == EXPECTED


@pytest.mark.parametrize("point", ["blob-named", "before-commit", "after-commit", "step-returned"])
async def test_killed_at_any_point_it_ends_with_the_same_result(tmp_path: Path, point: str) -> None:
    for hit in range(1, 60, 1 if os.environ.get("CI") else 5):
        settings = {"blobs": "files"} if hit % 4 == 1 or point == "blob-named" else None
        async with staged(publish, echo, store=tmp_path / str(hit), settings=settings) as stage:
            stage.kill_at(point, hit=hit)
            attempt = asyncio.ensure_future(play(stage))
            await dies_or_ends(stage, attempt)
            killed = stage.killed
            stage.live_on()
            await stage.open()
            await stage.advance("5s")  # what was being sent is looked at again
            run = await play(stage)
            receipt = await stage.host.receipt(run, caller=stage.caller("a"))
            assert receipt.to_json()["result"] == EXPECTED, hit
        if not killed:
            break
    else:
        pytest.fail("the sweep did not end")
