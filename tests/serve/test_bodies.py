"""A body is bounded before it is read, while it is read, and in time."""

from __future__ import annotations

import asyncio

import pytest

from onefold.serve import Front, bodies
from onefold.terms.limits import MAX_BODY_BYTES
from tests.serve.fake_host import FakeHost
from tests.serve.raw import Asgi

PATHS = ["/modules/counter/events", "/tools/refund_order", "/hooks/refund_order", "/mcp", "/runs/run_x/events/Paid"]


@pytest.mark.parametrize("path", PATHS)
async def test_an_announced_size_is_refused_before_a_byte_is_read(front: Front, path: str) -> None:
    call = Asgi(front, "POST", path, headers=[(b"content-length", b"%d" % (MAX_BODY_BYTES + 1))])
    await call.ended()
    assert (call.status, call.received) == (413, 0)
    assert call.headers[b"connection"] == b"close"
    assert b"Nothing was stored" in call.body


@pytest.mark.parametrize("path", PATHS)
async def test_a_chunked_body_is_refused_where_it_passes_the_limit(front: Front, host: FakeHost, path: str) -> None:
    piece = b"x" * (MAX_BODY_BYTES // 4)
    call = Asgi(front, "POST", path, pieces=[piece] * 100)
    await call.ended()
    assert (call.status, call.received) == (413, 5)
    assert host.acted == []


@pytest.mark.parametrize("path", PATHS)
async def test_a_liar_about_the_size_is_measured(front: Front, path: str) -> None:
    call = Asgi(front, "POST", path, body=b"x" * (MAX_BODY_BYTES + 1), headers=[(b"content-length", b"10")])
    assert (await call.ended()).status == 413


@pytest.mark.parametrize("size", [b"99999999999999999999999", b"1" * 5000])
async def test_an_absurd_size_is_413(front: Front, size: bytes) -> None:
    assert (await Asgi(front, "POST", PATHS[0], headers=[(b"content-length", size)]).ended()).status == 413


@pytest.mark.parametrize("size", [b"-1", b"1e3", b"abc", b"+5", b"1_0", "１".encode()])  # noqa: RUF001 - on purpose
async def test_a_size_that_is_no_number_is_400(front: Front, size: bytes) -> None:
    call = Asgi(front, "POST", PATHS[0], body=b"{}", headers=[(b"content-length", size)])
    assert (await call.ended()).status == 400


async def test_a_body_in_pieces_is_put_together(front: Front) -> None:
    whole = b'{"id":"e1","counter":"c"}'
    call = Asgi(front, "POST", PATHS[0], pieces=[whole[at : at + 1] for at in range(len(whole))])
    assert (await call.ended()).status == 200


async def test_a_client_that_leaves_before_its_body_is_whole_starts_nothing(front: Front, host: FakeHost) -> None:
    for path in PATHS:
        call = Asgi(front, "POST", path, body=b'{"id":', whole=False)
        await call.until(lambda call=call: call.received == 1)  # type: ignore[misc]
        call.leave()
        await call.ended()
        assert call.sent == []
    assert (host.acted, host.counters) == ([], {})


async def test_a_body_that_drips_is_408(front: Front, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "BODY_SECONDS", 0)
    call = Asgi(front, "POST", PATHS[0], body=b"{", whole=False)
    await call.ended()
    assert (call.status, call.headers[b"connection"]) == (408, b"close")


@pytest.mark.parametrize(
    "raw",
    [
        b"a=1&a=2",
        b"a=%FF",
        b"a=%00",
        "a=ä".encode(),
        b"&".join(b"f%d=1" % number for number in range(100)),
        b"just text",
    ],
)
async def test_a_form_of_no_page_of_ours_is_refused(front: Front, raw: bytes) -> None:
    call = Asgi(front, "POST", "/approve/whatever", body=raw)
    assert (await call.ended()).status == 400


async def test_a_long_form_is_refused(front: Front) -> None:
    call = Asgi(front, "POST", "/approve/whatever", body=b"reason=" + b"x" * 20_000)
    assert (await call.ended()).status == 413


async def test_a_wait_ends_with_what_it_waited_for() -> None:
    async def work() -> str:
        return "done"

    async def receive() -> dict[str, str]:
        await asyncio.Event().wait()
        return {"type": "http.disconnect"}

    waits = bodies.Waits()
    assert await waits.on(work(), receive) == "done"
    waits.leave()
    assert waits.leaving


async def test_a_wait_passes_on_what_its_work_raises() -> None:
    async def work() -> str:
        raise KeyError("x")

    async def receive() -> dict[str, str]:
        await asyncio.Event().wait()
        return {"type": "http.disconnect"}

    with pytest.raises(KeyError):
        await bodies.Waits().on(work(), receive)
