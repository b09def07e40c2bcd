"""What is over 4 KB leaves its row small, is committed with it, and comes back as it was."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from onefold.errors import AlreadyDone, BlobDamaged, TooLarge
from onefold.kernel.blob import BLOB, BLOB_PART, BLOB_REF, pointed
from onefold.kernel.tables import OWED, TURN
from onefold.store.contract import Cas, Last
from onefold.terms.limits import INLINE_BYTES, MAX_ROW_BYTES
from onefold.testing import Stage, staged
from tests.guarantees.documents import (
    FACT_BESIDES,
    Document,
    Printer,
    Write,
    dies_or_ends,
    documents,
    everything,
    rows,
)


@pytest.fixture
def printer() -> Printer:
    return Printer()


@pytest.fixture(params=["memory", "sqlite", "files"])
async def stage(request: pytest.FixtureRequest, printer: Printer, tmp_path: Path) -> AsyncIterator[Stage]:
    store = "memory:" if request.param == "memory" else tmp_path / "store"
    settings = {"blobs": "files"} if request.param == "files" else None
    async with staged(documents, printer.port(), store=store, settings=settings) as stage:
        yield stage


async def test_a_reply_of_4096_bytes_stays_in_its_row_and_one_of_4097_does_not(stage: Stage) -> None:
    caller = stage.caller("a")
    for n, size in enumerate((INLINE_BYTES, INLINE_BYTES + 1)):
        event = Write(f"w{n}", "d", reply=size)
        first = await stage.host.deliver(documents, event, caller=caller)
        assert len(first) == size - 2
        reply = (await rows(stage, TURN))[-1][TURN.at["reply"]]
        assert isinstance(reply, bytes)
        assert (pointed(reply) is None) == (size == INLINE_BYTES)
        assert len(reply) <= INLINE_BYTES
        assert await stage.host.deliver(documents, event, caller=caller) == first
        await stage.crash()
        assert await stage.host.deliver(documents, event, caller=caller) == first, "after a kill, too"
    assert len(await rows(stage, BLOB)) == len(await rows(stage, BLOB_REF)) == 1


async def test_repeats_at_once_all_get_the_first_reply(stage: Stage) -> None:
    event = Write("w", "d", reply=50_000)
    answers = await asyncio.gather(*(stage.host.deliver(documents, event, caller=stage.caller()) for _ in range(20)))
    assert set(answers) == {"r" * 49_998}
    assert len(await rows(stage, TURN)) == 1


async def test_the_same_bytes_of_two_principals_are_two_blobs(stage: Stage) -> None:
    for who in ("a", "b", None):
        for n in range(3):
            await stage.host.deliver(documents, Write(f"w{n}", "d", reply=9_000), caller=stage.caller(who))
    assert len(await rows(stage, BLOB)) == 3
    assert len(await rows(stage, BLOB_REF)) == 9


@pytest.mark.parametrize("size", [INLINE_BYTES, INLINE_BYTES + 1, 300_000])
async def test_what_is_owed_leaves_with_the_bytes_it_was_sealed_with(stage: Stage, printer: Printer, size: int) -> None:
    printer.failing = 2
    caller = stage.caller("a")
    await stage.host.deliver(documents, Write("w", "d", owed=size, key="k"), caller=caller)
    (row,) = await rows(stage, OWED)
    held = row[OWED.at["bytes"]]
    assert isinstance(held, bytes)
    assert (pointed(held) is None) == (size == INLINE_BYTES)
    assert len(held) <= INLINE_BYTES
    await stage.settle()
    await stage.crash()
    await stage.advance("10m")
    assert printer.sent == [(printer.sent[0][0], "p" * (size - 2))] * 3
    assert await rows(stage, OWED) == []
    assert (await stage.host.read(documents, "d", caller=caller)).printed == (f"{size - 2} letters",)
    # The same key again: the same bytes are a no-op, whatever stands in their row.
    await stage.host.deliver(documents, Write("w2", "d", owed=size, key="k"), caller=caller)
    await stage.settle()
    assert len(printer.sent) == 3


async def test_damaged_owed_bytes_are_never_sent_and_are_sent_once_mended(stage: Stage, printer: Printer) -> None:
    caller = stage.caller("a")
    printer.failing = 1
    await stage.host.deliver(documents, Write("w", "d", owed=5_000), caller=caller)
    await stage.settle()
    undo = await damage(stage)
    await stage.crash()
    await stage.advance("30s")
    assert len(printer.sent) == 1, "only the try before the damage"
    (row,) = await rows(stage, OWED)
    assert "BlobDamaged: The blob sha256:" in str(row[OWED.at["error"]])
    await undo()
    await stage.advance("2m")
    assert printer.sent[1:] == [(printer.sent[0][0], "p" * 4_998)]


async def test_a_damaged_reply_is_a_named_fault_to_its_repeat(stage: Stage) -> None:
    caller = stage.caller("a")
    event = Write("w", "d", reply=5_000)
    await stage.host.deliver(documents, event, caller=caller)
    undo = await damage(stage)
    with pytest.raises(BlobDamaged):
        await stage.host.deliver(documents, event, caller=caller)
    await undo()
    assert await stage.host.deliver(documents, event, caller=caller) == "r" * 4_998


async def damage(stage: Stage) -> Any:
    """Change one byte of the only blob; what is given back mends it."""
    files = (
        [] if stage.config.folder is None else [p for p in (stage.config.folder / "blobs").rglob("*") if p.is_file()]
    )
    if files:
        whole = files[0].read_bytes()
        files[0].write_bytes(b"X" + whole[1:])

        async def undo() -> None:
            files[0].write_bytes(whole)

        return undo
    (part,) = await rows(stage, BLOB_PART)
    assert isinstance(part[2], bytes)
    await changed(stage, Cas(BLOB_PART, [((part[0], part[1]), {}, {"bytes": b"X" + part[2][1:]})]))

    async def put_back() -> None:
        await changed(stage, Cas(BLOB_PART, [((part[0], part[1]), {}, {"bytes": part[2]})]))

    return put_back


async def changed(stage: Stage, *writes: Any) -> None:
    def body() -> Any:
        yield ()
        return Last(writes, None)

    await (await stage.host.space("main")).transact(body)


# --- the ceiling ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["facts", "reply", "owed"])
async def test_the_ceiling_holds_to_the_byte_and_a_refusal_leaves_the_store_as_it_was(
    stage: Stage, printer: Printer, what: str
) -> None:
    caller = stage.caller("a")

    def event(id: str, size: int) -> Write:
        match what:
            case "facts":
                return Write(id, "d", text="t" * (size - FACT_BESIDES))
            case "reply":
                return Write(id, "d", reply=size)
            case _:
                return Write(id, "d", owed=size)

    await stage.host.deliver(documents, event("fits", MAX_ROW_BYTES), caller=caller)
    await stage.settle()
    before = await everything(stage)
    with pytest.raises(TooLarge) as refused:
        await stage.host.deliver(documents, event("big", MAX_ROW_BYTES + 1), caller=caller)
    assert (refused.value.size, refused.value.limit) == (MAX_ROW_BYTES + 1, MAX_ROW_BYTES)
    assert {"facts": "the facts", "reply": "the reply", "owed": "owes print"}[what] in refused.value.what
    assert "put it into a blob" in str(refused.value)
    assert await everything(stage) == before
    assert len(printer.sent) == (what == "owed")
    await stage.host.deliver(documents, Write("big", "d"), caller=caller)  # the id is still free


# --- small folds pay nothing ----------------------------------------------------------------------------


async def test_a_small_fold_asks_and_writes_nothing_more(tmp_path: Path, printer: Printer) -> None:
    async with staged(documents, printer.port(), store=tmp_path) as stage:
        caller = stage.caller()
        await stage.host.deliver(documents, Write("w0", "d"), caller=caller)
        statements: list[str] = []

        def count(point: str) -> None:
            if point == "statement":
                statements.append(point)

        async def cost(**values: int | str) -> int:
            """The statements of one fold; the least of some, since the store's own upkeep runs beside."""
            counted = []
            for _ in range(4):
                await stage.settle()
                ids.append(f"w{len(ids)}")
                statements.clear()
                stage.failpoint = count
                await stage.host.deliver(documents, Write(ids[-1], "d", **values), caller=caller)  # type: ignore[arg-type]
                stage.live_on()
                counted.append(len(statements))
            return min(counted)

        ids = ["w0"]
        small = await cost(reply=100)
        assert await cost(reply=INLINE_BYTES) == small
        assert await cost(text="t" * 40_000) == small, "facts of a module stay in their row"
        assert await cost(reply=INLINE_BYTES + 1) > small


# --- kills ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "point", ["blob-written", "blob-named", "statement", "before-commit", "after-commit", "before-reply"]
)
async def test_killed_between_blob_and_commit_the_event_is_whole_or_absent(
    stage: Stage, printer: Printer, point: str
) -> None:
    caller = stage.caller("a")
    for hit in range(1, 60):
        event = Write(f"w{hit}", "d", reply=5_000 + hit, owed=6_000 + hit)
        stage.kill_at(point, hit=hit)
        attempt = asyncio.ensure_future(stage.host.deliver(documents, event, caller=caller))
        done = await dies_or_ends(stage, attempt)
        killed = stage.killed
        stage.live_on()
        await stage.open()
        kept: Document = await stage.host.read(documents, "d", caller=caller)
        assert len(kept.texts) in ((hit,) if done else (hit - 1, hit))
        await whole(stage)
        assert await stage.host.deliver(documents, event, caller=caller) == "r" * (4_998 + hit)
        await stage.advance("1m")
        assert {body for _, body in printer.sent if len(body) == 5_998 + hit} == {"p" * (5_998 + hit)}
        kept = await stage.host.read(documents, "d", caller=caller)
        assert (len(kept.texts), kept.printed[-1]) == (hit, f"{5_998 + hit} letters")
        if not killed:
            break
    else:
        pytest.fail("the sweep did not end")


async def whole(stage: Stage) -> None:
    """Every pointer in a row leads to its bytes."""
    blobs = stage.host._core.blobs["main"]
    for table, column in ((TURN, "reply"), (OWED, "bytes")):
        for row in await rows(stage, table):
            held = row[table.at[column]]
            if isinstance(held, bytes) and (wanted := pointed(held)) is not None:
                assert await blobs.fetch("a", wanted)


async def test_a_commit_that_was_taken_back_leaves_no_blob(stage: Stage) -> None:
    caller = stage.caller("a")
    await stage.host.deliver(documents, Write("w0", "d", owed=9_000, key="k"), caller=caller)
    await stage.settle()
    before = (await rows(stage, BLOB), await rows(stage, BLOB_REF))
    with pytest.raises(Exception, match="already used"):
        await stage.host.deliver(documents, Write("w1", "d", owed=9_001, key="k", reply=8_000), caller=caller)
    assert (await rows(stage, BLOB), await rows(stage, BLOB_REF)) == before


async def test_a_reply_that_retention_took_is_told_as_done(stage: Stage) -> None:
    caller = stage.caller("a")
    event = Write("w", "d", reply=8_000)
    await stage.host.deliver(documents, event, caller=caller)
    stage.clock.step_to(stage.clock.now() + 60_000)
    await stage.host.sweep(replies=1_000, caller=stage.caller())
    with pytest.raises(AlreadyDone):
        await stage.host.deliver(documents, event, caller=caller)
