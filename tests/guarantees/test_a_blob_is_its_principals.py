"""Promise 8: what was put is given back as it was, to the principal that put it, or not at all."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import AsyncIterator, Generator
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import pytest

from onefold import App, blocking
from onefold.errors import BadArguments, BlobDamaged, NotFound, StoreUnavailable, TooLarge
from onefold.kernel.blob import BLOB, BLOB_PART
from onefold.store.contract import Last, Put, Remove, Row
from onefold.store.contract import Write as RowWrite
from onefold.terms.codec import digest
from onefold.terms.limits import BLOB_PART_BYTES, MAX_BLOB_BYTES
from onefold.testing import Stage, staged
from tests.guarantees.conftest import Stages
from tests.guarantees.documents import Printer, Write, dies_or_ends, documents, everything, rows
from tests.guarantees.shop import bank


@pytest.fixture(params=["memory", "sqlite", "files"])
async def stage(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Stage]:
    store = "memory:" if request.param == "memory" else tmp_path / "store"
    async with staged(bank, store=store, settings={"blobs": "files"} if request.param == "files" else None) as stage:
        yield stage


async def change(stage: Stage, *writes: RowWrite) -> None:
    """Rows changed by another hand."""

    def body() -> Generator[Any, Any, Last[None]]:
        yield ()
        return Last(writes, None)

    await (await stage.host.space("main")).transact(body)


def files(stage: Stage) -> list[Path]:
    folder = stage.config.folder
    return [] if folder is None else sorted(path for path in (folder / "blobs").rglob("*") if path.is_file())


@pytest.mark.parametrize("size", [0, 1, BLOB_PART_BYTES, BLOB_PART_BYTES + 1, 10_000_000])
async def test_what_was_put_is_given_back_also_after_a_kill(stage: Stage, size: int) -> None:
    data = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
    name = await stage.host.blobs_put(data, caller=stage.caller("a"))
    assert name == f"sha256:{digest(data).hex()}"
    assert await stage.host.blobs_get(name, caller=stage.caller("a")) == data
    await stage.crash()
    assert await stage.host.blobs_get(name, caller=stage.caller("a")) == data
    assert await stage.host.blobs_put(bytearray(data), caller=stage.caller("a")) == name
    assert len(await rows(stage, BLOB)) == 1


async def test_no_principal_gets_anothers_blob_by_its_digest(stage: Stage) -> None:
    name = await stage.host.blobs_put(b"the will", caller=stage.caller("a"))
    for other in (None, "b", "-", "=a", "A"):
        with pytest.raises(NotFound):
            await stage.host.blobs_get(name, caller=stage.caller(other))
    assert await stage.host.blobs_put(b"the will", caller=stage.caller(None)) == name
    kept = await rows(stage, BLOB)
    assert len({row[BLOB.at["address"]] for row in kept}) == len(kept) == 2, "the same bytes, two references"
    assert await stage.host.blobs_get(name, caller=stage.caller(None)) == b"the will"
    with pytest.raises(NotFound):
        await stage.host.blobs_get(name, caller=stage.caller("b"))


@pytest.mark.parametrize(
    "name", ["", "x", "sha256:", "sha256:" + "0" * 64, "sha256:" + "G" * 64, "../../etc/passwd", "sha256:" + "A" * 64]
)
async def test_what_is_no_digest_of_a_blob_is_not_found(stage: Stage, name: str) -> None:
    with pytest.raises(NotFound):
        await stage.host.blobs_get(name, caller=stage.caller())


async def test_only_bytes_of_a_bearable_size_are_taken_and_nothing_else_is_stored(stage: Stage) -> None:
    with pytest.raises(BadArguments, match="must be bytes"):
        await stage.host.blobs_put("text", caller=stage.caller())  # type: ignore[arg-type]
    with pytest.raises(TooLarge, match="put it in parts") as refused:
        await stage.host.blobs_put(bytes(MAX_BLOB_BYTES + 1), caller=stage.caller())
    assert (refused.value.size, refused.value.limit) == (MAX_BLOB_BYTES + 1, MAX_BLOB_BYTES)
    assert await rows(stage, BLOB) == []
    assert files(stage) == []


@pytest.mark.parametrize("damage", ["changed", "cut", "gone"])
async def test_a_damaged_blob_is_a_named_fault_and_never_wrong_bytes(stage: Stage, damage: str) -> None:
    data = b"0123456789" * 100_000
    name = await stage.host.blobs_put(data, caller=stage.caller("a"))
    parts = await rows(stage, BLOB_PART)
    if parts:
        n, no, held = parts[-1]
        assert isinstance(held, bytes)
        last: Row = (n, no, bytes([held[0] ^ 1]) + held[1:] if damage == "changed" else held[:-1])
        gone = Remove(BLOB_PART, where=(("blob", "=", n),))
        await change(stage, gone if damage == "gone" else Put(BLOB_PART, [last]))
    else:
        (file,) = files(stage)
        assert file.stat().st_mode & 0o777 == 0o600
        if damage == "gone":
            file.unlink()
        else:
            file.write_bytes(data[:-1] if damage == "cut" else b"X" + data[1:])
    with pytest.raises(BlobDamaged) as fault:
        await stage.host.blobs_get(name, caller=stage.caller("a"))
    assert fault.value.digest == name
    assert (fault.value.code, fault.value.status, fault.value.retry, fault.value.exit) == (
        "blob_damaged",
        500,
        "same",
        7,
    )
    assert await stage.host.blobs_put(data, caller=stage.caller("a")) == name
    assert await stage.host.blobs_get(name, caller=stage.caller("a")) == data, "putting it again mends it"


async def test_a_blobs_row_without_its_bytes_here_is_told_apart(stages: Stages, tmp_path: Path) -> None:
    stage = await stages(bank)
    await change(stage, Put(BLOB, [(1, b"a" * 32, "-", digest(b"x"), 1, 0, "gone.1", None)]))
    blobs = stage.host._core.blobs["main"]
    with pytest.raises(BlobDamaged, match=r"its file is gone|a folder that this store does not have"):
        await blobs.bytes_of((await rows(stage, BLOB))[0])
    with pytest.raises(BlobDamaged, match="a row points at it"):
        await blobs.fetch("a", digest(b"never put"))


@pytest.mark.parametrize("point", ["blob-written", "blob-named", "statement", "before-commit", "after-commit"])
async def test_a_put_that_was_killed_anywhere_is_there_or_is_put_again(stage: Stage, point: str) -> None:
    caller = stage.caller("a")
    for hit in range(1, 40):
        data = f"{point} {hit}".encode()
        stage.kill_at(point, hit=hit)
        attempt = asyncio.ensure_future(stage.host.blobs_put(data, caller=caller))
        done = await dies_or_ends(stage, attempt)
        killed = stage.killed
        stage.live_on()
        await stage.open()
        name = f"sha256:{digest(data).hex()}"
        with nullcontext() if done else suppress(NotFound):
            assert await stage.host.blobs_get(name, caller=caller) == data, "an acknowledged put"
        assert await stage.host.blobs_put(data, caller=caller) == name
        assert await stage.host.blobs_get(name, caller=caller) == data
        if not killed:
            break
    else:
        pytest.fail("a put never came through")


async def test_blobs_of_both_homes_are_read_wherever_new_ones_go(tmp_path: Path) -> None:
    twice = b"first here, then there"
    async with staged(bank, store=tmp_path, settings={"blobs": "files"}) as stage:
        filed = await stage.host.blobs_put(b"in a file", caller=stage.caller())
        both = await stage.host.blobs_put(twice, caller=stage.caller())
    async with staged(bank, store=tmp_path) as stage:
        rowed = await stage.host.blobs_put(b"in rows", caller=stage.caller())
        await stage.host.blobs_put(twice, caller=stage.caller())
        assert len(await rows(stage, BLOB_PART)) == 2
    async with staged(bank, store=tmp_path, settings={"blobs": "files"}) as stage:
        assert await stage.host.blobs_get(filed, caller=stage.caller()) == b"in a file"
        assert await stage.host.blobs_get(rowed, caller=stage.caller()) == b"in rows"
        assert await stage.host.blobs_get(both, caller=stage.caller()) == twice
        await stage.host.blobs_put(twice, caller=stage.caller())
        assert len(await rows(stage, BLOB_PART)) == 1, "what went to a file leaves no bytes behind in rows"
        assert await stage.host.blobs_get(both, caller=stage.caller()) == twice


async def test_a_disk_that_is_full_refuses_the_fold_and_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(documents, Printer().port(), store=tmp_path, settings={"blobs": "files"}) as stage:
        caller = stage.caller("a")
        await stage.host.deliver(documents, Write("w0", "d", reply=5_000), caller=caller)
        before = (await everything(stage), files(stage))

        def full(handle: int, data: Any) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr("onefold.store.folder.os.write", full)
            with pytest.raises(StoreUnavailable, match="No space left on device"):
                await stage.host.deliver(documents, Write("w1", "d", reply=6_000), caller=caller)
            with pytest.raises(StoreUnavailable, match="No space left on device"):
                await stage.host.blobs_put(b"x" * 100, caller=caller)
            assert len(await stage.host.deliver(documents, Write("w2", "d", reply=100), caller=caller)) == 98
        assert files(stage) == before[1]
        assert (await everything(stage))[2:] == before[0][2:]
        assert len(await stage.host.deliver(documents, Write("w1", "d", reply=6_000), caller=caller)) == 5_998
        folders = [path for path in (tmp_path / "blobs").rglob("*") if path.is_dir()]
        assert {path.stat().st_mode & 0o777 for path in [tmp_path / "blobs", *folders]} == {0o700}


async def test_a_person_puts_and_gets_with_and_without_await(tmp_path: Path) -> None:
    async with App(bank, store=tmp_path / "one") as app:
        name = await app.acting_as("a").blobs.put(b"bytes")
        assert await app.acting_as("a").blobs.get(name) == b"bytes"
        with pytest.raises(NotFound):
            await app.blobs.get(name)


def test_a_script_puts_and_gets(tmp_path: Path) -> None:
    with App(bank, store=tmp_path / "one") as app:
        assert isinstance(app, blocking.App)
        name = app.acting_as("a").blobs.put(b"bytes")
        assert app.acting_as("a").blobs.get(name) == b"bytes"
        with pytest.raises(NotFound):
            app.blobs.get(name)
