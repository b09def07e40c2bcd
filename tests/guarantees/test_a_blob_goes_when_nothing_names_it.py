"""What a row names stays; what nothing names goes, and only after a grace, a second look and the same transaction."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from onefold import Run, actuator
from onefold.errors import NotFound
from onefold.kernel.blob import BLOB, BLOB_PART, BLOB_REF
from onefold.kernel.tables import OWED, TURN
from onefold.store.contract import Cas, Last, Query, Row, Table
from onefold.terms.limits import BLOB_DELAY_MS, BLOB_GRACE_MS
from onefold.testing import Stage, staged
from tests.guarantees.documents import Printer, Write, dies_or_ends, documents, later, rows, settled, sweep_of

DAY, HOUR = BLOB_GRACE_MS, BLOB_DELAY_MS


class Scan(BaseModel):
    digest: str


@actuator
async def archive(run: Run, scan: Scan) -> str:
    """Keep the digest of a scan in the run, for as long as the run is kept."""
    await run.sleep("100 days")
    return scan.digest


@pytest.fixture
def printer() -> Printer:
    return Printer()


@pytest.fixture(params=["memory", "sqlite", "files"])
async def stage(request: pytest.FixtureRequest, printer: Printer, tmp_path: Path) -> AsyncIterator[Stage]:
    store = "memory:" if request.param == "memory" else tmp_path / "store"
    values = {"blobs": "files"} if request.param == "files" else None
    async with staged(documents, printer.port(), archive, store=store, settings=values) as stage:
        stage.host._core.driver.janitor = lambda: False  # rounds are made by hand
        yield stage


async def swept(stage: Stage, space: str = "main") -> int:
    """Two looks, far enough apart; how many blobs went."""
    first = await sweep_of(stage, space).round()
    later(stage, HOUR)
    return first.removed + (await sweep_of(stage, space).round()).removed


def files(stage: Stage) -> list[Path]:
    folder = stage.config.folder
    return [] if folder is None else sorted(p for p in (folder / "blobs").rglob("*") if p.is_file())


async def there(stage: Stage, name: str, who: str | None = "a") -> bool:
    try:
        return bool(await stage.host.blobs_get(name, caller=stage.caller(who)))
    except NotFound:
        return False


# --- grace and two looks ---------------------------------------------------------------------------------------


async def test_a_put_that_nothing_names_goes_after_its_grace_and_a_second_look(stage: Stage) -> None:
    name = await stage.host.blobs_put(b"nobody's", caller=stage.caller("a"))
    sweep = sweep_of
    later(stage, DAY - 1)
    assert (await sweep(stage).round()).condemned == 0
    later(stage, 1)
    cleared = await sweep(stage).round()
    assert (cleared.condemned, cleared.removed) == (1, 0)
    later(stage, HOUR - 1)
    assert (await sweep(stage).round()).removed == 0
    assert await there(stage, name)
    later(stage, 1)
    assert (await sweep(stage).round()).removed == 1
    assert not await there(stage, name)
    assert [await rows(stage, table) for table in (BLOB, BLOB_PART, BLOB_REF)] == [[], [], []]
    assert files(stage) == []


async def test_putting_it_again_pardons_a_condemned_blob(stage: Stage) -> None:
    name = await stage.host.blobs_put(b"wanted again", caller=stage.caller("a"))
    later(stage, DAY)
    assert (await sweep_of(stage).round()).condemned == 1
    later(stage, HOUR)
    assert await stage.host.blobs_put(b"wanted again", caller=stage.caller("a")) == name
    assert (await sweep_of(stage).round()).removed == 0
    later(stage, DAY - 1)
    assert (await sweep_of(stage).round()).condemned == 0
    assert await there(stage, name)


async def test_an_event_that_names_a_condemned_blob_pardons_it(stage: Stage) -> None:
    name = await stage.host.blobs_put(b"the contract", caller=stage.caller("a"))
    later(stage, DAY)
    assert (await sweep_of(stage).round()).condemned == 1
    await stage.host.deliver(documents, Write("w", "d", text=f"see {name}."), caller=stage.caller("a"))
    later(stage, 10 * DAY)
    assert await swept(stage) == 0
    assert await there(stage, name)
    assert (await rows(stage, BLOB))[0][BLOB.at["condemned"]] is None


async def test_another_principals_event_keeps_nobody_elses_blob(stage: Stage) -> None:
    name = await stage.host.blobs_put(b"mine", caller=stage.caller("a"))
    await stage.host.deliver(documents, Write("w", "d", text=name), caller=stage.caller("b"))
    later(stage, DAY)
    assert await swept(stage) == 1


# --- who refers ------------------------------------------------------------------------------------------------


async def test_what_a_fact_names_stays_until_the_fact_is_gone(stage: Stage) -> None:
    name = await stage.host.blobs_put(b"the will", caller=stage.caller("a"))
    await stage.host.deliver(documents, Write("w", "d", text=name), caller=stage.caller("a"))
    later(stage, 100 * DAY)
    assert await swept(stage) == 0
    await emptied(stage, TURN, facts=b"[ ]")
    assert await swept(stage) == 1
    assert not await there(stage, name)


async def test_a_spilled_reply_goes_after_retention_took_it_and_not_before(stage: Stage) -> None:
    event = Write("w", "d", reply=9_000)
    await stage.host.deliver(documents, event, caller=stage.caller("a"))
    later(stage, 100 * DAY)
    assert await swept(stage) == 0
    assert await stage.host.deliver(documents, event, caller=stage.caller("a")) == "r" * 8_998
    await stage.host.sweep(replies=1_000, caller=stage.caller())
    assert await swept(stage) == 1
    assert await rows(stage, BLOB) == []


async def test_a_spilled_owed_body_goes_once_it_was_sent(stage: Stage, printer: Printer) -> None:
    printer.failing = 1_000
    await stage.host.deliver(documents, Write("w", "d", owed=9_000, key="k"), caller=stage.caller("a"))
    await stage.advance("12h")
    (parked,) = await stage.host.parked_list(caller=stage.caller("a"))
    later(stage, 100 * DAY)
    assert await swept(stage) == 0, "still owed, and waiting for a person"
    printer.failing = 0
    await stage.host.parked_retry(parked.id, caller=stage.caller("a"))
    await stage.settle()
    assert printer.sent[-1][1] == "p" * 8_998
    assert await rows(stage, OWED) == []
    assert await swept(stage) == 1


async def test_a_run_in_another_space_keeps_a_blob_of_main(stage: Stage) -> None:
    caller = stage.caller("a")
    name = await stage.host.blobs_put(b"scanned", caller=caller)
    run = (await stage.host.start("archive", {"digest": name}, caller=caller)).receipt.run_id
    await settled(stage)
    later(stage, 2 * DAY)
    assert await swept(stage) == 0
    assert await there(stage, name)
    await stage.crash()
    stage.host._core.driver.janitor = lambda: False
    later(stage, 2 * DAY)
    assert await swept(stage) == 0, "its space is at rest and is asked all the same"
    await stage.host.run_cancel(run, caller=caller)
    later(stage, 2 * DAY)
    await stage.host.sweep(runs=1_000, caller=stage.caller())
    assert await swept(stage) == 1


async def test_long_values_of_a_run_go_with_it(stage: Stage) -> None:
    caller = stage.caller("a")
    run = (await stage.host.start("archive", {"digest": "d" * 9_000}, caller=caller)).receipt.run_id
    await settled(stage)
    assert len(await rows(stage, BLOB, "archive")) == 1
    later(stage, 2 * DAY)
    assert await swept(stage, "archive") == 0
    await stage.host.run_cancel(run, caller=caller)
    later(stage, 2 * DAY)
    await stage.host.sweep(runs=1_000, caller=stage.caller())
    assert await swept(stage, "archive") == 1
    assert files(stage) == []


async def emptied(stage: Stage, table: Table, **columns: Any) -> None:
    found = await rows(stage, table)

    def body() -> Any:
        yield ()
        return Last((Cas(table, [((row[0],), {}, columns) for row in found]),), None)

    await (await stage.host.space("main")).transact(body)


# --- races -----------------------------------------------------------------------------------------------------


async def test_a_fold_decided_while_the_sweep_looks_keeps_its_blob(stage: Stage) -> None:
    caller = stage.caller("a")
    name = await stage.host.blobs_put(b"just in time", caller=caller)
    later(stage, DAY)
    await sweep_of(stage).round()
    later(stage, HOUR)
    sweep = sweep_of(stage)
    delivered: list[asyncio.Future[Any]] = []
    looked = sweep._look

    async def look(query: Query) -> Sequence[Row]:
        found = await looked(query)
        if query.table is BLOB_REF and not delivered:
            delivered.append(asyncio.ensure_future(stage.host.start("archive", {"digest": name}, caller=caller)))
            await delivered[0]  # committed in another space, after it would have been asked
        return found

    sweep._look, sweep._elsewhere = look, ()  # even when the other spaces were asked too early
    assert (await sweep.round()).removed == 0
    assert await there(stage, name)


@pytest.mark.parametrize("point", ["statement", "before-commit", "after-commit"])
async def test_a_sweep_killed_anywhere_takes_all_of_a_blob_or_nothing(stage: Stage, point: str) -> None:
    caller = stage.caller("a")
    kept = await stage.host.blobs_put(b"kept", caller=caller)
    await stage.host.deliver(documents, Write("w", "d", text=kept, reply=9_000), caller=caller)
    for hit in range(1, 40):
        gone = await stage.host.blobs_put(b"gone %d" % hit, caller=caller)
        later(stage, DAY)
        await sweep_of(stage).round()
        later(stage, HOUR)
        stage.kill_at(point, hit=hit)
        attempt = asyncio.ensure_future(sweep_of(stage).round())
        await dies_or_ends(stage, attempt)
        killed = stage.killed
        stage.live_on()
        await stage.open()
        stage.host._core.driver.janitor = lambda: False
        await there(stage, gone)  # there or not there, and never damaged
        assert await there(stage, kept)
        await sweep_of(stage).round()
        later(stage, DAY)
        assert not await there(stage, gone)
        if not killed:
            break
    else:
        pytest.fail("the sweep did not end")
    for _ in range(256):
        await sweep_of(stage)._files(stage.clock.now())
    sweep = sweep_of(stage)
    for _ in range(256):
        await sweep._files(stage.clock.now())
    assert len(files(stage)) == (2 if files(stage) else 0), "files without a row went, too"
    assert await stage.host.deliver(documents, Write("w", "d", text=kept, reply=9_000), caller=caller) == "r" * 8_998


# --- the beat --------------------------------------------------------------------------------------------------


async def test_the_beat_takes_what_nothing_names_and_stays_off_what_is_named(tmp_path: Path) -> None:
    async with staged(documents, Printer().port(), archive, store=tmp_path) as stage:
        caller = stage.caller("a")
        gone = [await stage.host.blobs_put(b"%d" % n, caller=caller) for n in range(300)]
        kept = await stage.host.blobs_put(b"kept", caller=caller)
        await stage.host.deliver(documents, Write("w", "d", text=kept), caller=caller)
        later(stage, DAY)
        for _ in range(12):
            await stage.advance("15m")
        assert not any([await there(stage, name) for name in gone])
        assert await there(stage, kept)


async def test_many_references_and_all_of_them_false_are_worked_off(stage: Stage) -> None:
    caller = stage.caller("a")
    name = await stage.host.blobs_put(b"named often", caller=caller)
    for n in range(11):
        await stage.host.deliver(documents, Write(f"w{n}", "d", text=name), caller=caller)
    await emptied(stage, TURN, facts=b"[ ]")
    later(stage, DAY)
    for _ in range(6):
        await swept(stage)
    assert not await there(stage, name)
    assert await rows(stage, BLOB_REF) == []


@pytest.mark.parametrize("point", ["blob-written", "blob-named", "before-commit"])
async def test_a_file_whose_put_was_cut_off_goes_after_the_grace(tmp_path: Path, point: str) -> None:
    async with staged(documents, Printer().port(), store=tmp_path, settings={"blobs": "files"}) as stage:
        caller = stage.caller("a")
        kept = await stage.host.blobs_put(b"kept", caller=caller)
        await stage.host.deliver(documents, Write("w", "d", text=kept), caller=caller)
        stage.kill_at(point)
        await dies_or_ends(stage, asyncio.ensure_future(stage.host.blobs_put(b"cut off", caller=caller)))
        stage.live_on()
        await stage.open()
        stage.host._core.driver.janitor = lambda: False
        assert len(files(stage)) == 2
        for age, left in ((DAY - 1, 2), (1, 2), (1, 1)):
            later(stage, age)
            sweep = sweep_of(stage)
            for _ in range(256):
                await sweep._files(stage.clock.now())
            assert len(files(stage)) == left, "only what is older than the grace"
        assert await there(stage, kept)
