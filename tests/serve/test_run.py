"""One process that listens: bounded headers, slow senders, a clean end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator
from typing import Any

import pytest
from httpx2 import AsyncClient

from onefold.serve import asgi_app, run
from onefold.serve.run import HEADER_BYTES, HEADERS_MOST, serve, settings
from tests.serve.fake_host import FakeHost
from tests.serve.fake_values import Config, Outcome

ORDER = b'{"order_id":"7","amount":"1"}'
Address = tuple[str, int]


@contextlib.asynccontextmanager
async def served(app: Any, grace_ms: int = 2000) -> AsyncIterator[Address]:
    """The application on a free port of this machine, until the block ends; then it is told to stop."""
    bound: asyncio.Future[Address] = asyncio.get_running_loop().create_future()
    serving = asyncio.create_task(
        serve(app, ("127.0.0.1", 0), grace_ms=grace_ms, on_bound=lambda host, port: bound.set_result((host, port)))
    )
    done, _ = await asyncio.wait((serving, bound), return_when=asyncio.FIRST_COMPLETED)
    if serving in done:
        await serving
    try:
        yield bound.result()
    finally:
        if not serving.done():
            os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.wait_for(serving, 60)


@pytest.fixture
def waits() -> FakeHost:
    host = FakeHost(Config())
    host.outcomes["refund_order"] = lambda _: Outcome("running")
    return host


async def exchange(address: Address, *pieces: bytes) -> bytes:
    """Send the pieces, and read until the other side closes or has answered once."""
    reader, writer = await asyncio.open_connection(*address)
    with contextlib.suppress(ConnectionError):
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
    told = b""
    with contextlib.suppress(ConnectionError):
        told = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 60)
    writer.close()
    with contextlib.suppress(ConnectionError):
        await writer.wait_closed()
    return told


def request(*headers: bytes, method: bytes = b"GET", path: bytes = b"/healthz") -> bytes:
    return b"\r\n".join((b"%b %b HTTP/1.1" % (method, path), b"Host: 127.0.0.1", *headers, b"", b""))


async def test_a_free_port_is_taken_and_told(waits: FakeHost) -> None:
    async with served(asgi_app(waits)) as (host, port):
        assert (host, port > 0) == ("127.0.0.1", True)
        async with AsyncClient(base_url=f"http://{host}:{port}") as client:
            told = await client.get("/healthz")
            assert told.json() == {"ok": True}
            assert "server" not in told.headers


async def test_an_address_that_is_taken_is_an_error_of_ours(waits: FakeHost) -> None:
    async with served(asgi_app(waits)) as address:
        with pytest.raises(OSError, match="in use"):
            await serve(asgi_app(waits), address)


async def test_an_application_that_refuses_to_start_is_not_served() -> None:
    async def refuses(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "lifespan.startup.failed", "message": "the store is held"})

    with pytest.raises(RuntimeError, match="refused to start"):
        await serve(refuses, ("127.0.0.1", 0))


async def test_many_headers_are_431(waits: FakeHost) -> None:
    async with served(asgi_app(waits)) as address:
        few = [b"X-%d: v" % number for number in range(HEADERS_MOST - 1)]
        assert b" 200 " in await exchange(address, request(*few))
        assert b" 431 " in await exchange(address, request(*few, b"X-More: v"))
        assert b" 431 " in await exchange(address, request(*[b"X-%d: v" % number for number in range(10_000)]))


@pytest.mark.parametrize("pieces", [1, 50])
async def test_large_headers_are_431_in_one_piece_or_many(waits: FakeHost, pieces: int) -> None:
    async with served(asgi_app(waits)) as address:
        for large in (
            request(b"X-Large: " + b"v" * HEADER_BYTES),
            request(path=b"/" + b"p" * HEADER_BYTES),
            b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Endless: " + b"v" * 200_000,
        ):
            size = -(-len(large) // pieces)
            told = await exchange(address, *(large[at : at + size] for at in range(0, len(large), size)))
            assert b" 431 " in told
        assert b" 200 " in await exchange(address, request(b"X-Fits: " + b"v" * (HEADER_BYTES - 200)))


async def test_a_body_as_large_as_allowed_is_not_taken_for_headers(waits: FakeHost) -> None:
    body = b'{"id":"e","counter":"c","pad":"%b"}' % (b"x" * 1_000_000)
    async with served(asgi_app(waits)) as address:
        head = request(b"Content-Length: %d" % len(body), method=b"POST", path=b"/modules/counter/events")
        assert b" 200 " in await exchange(address, head, body)
        chunked = request(b"Transfer-Encoding: chunked", method=b"POST", path=b"/modules/counter/events")
        chunks = b"".join(
            b"%x\r\n%b\r\n" % (len(body[at : at + 1000]), body[at : at + 1000]) for at in range(0, len(body), 1000)
        )
        assert b" 200 " in await exchange(address, chunked, chunks, b"0\r\n\r\n")


async def test_endless_trailers_are_cut(waits: FakeHost) -> None:
    head = request(b"Transfer-Encoding: chunked", method=b"POST", path=b"/modules/counter/events")
    trailers = b"".join(b"X-Trailer-%d: %b\r\n" % (number, b"v" * 1000) for number in range(3000))
    async with served(asgi_app(waits)) as address:
        assert b" 431 " in await exchange(address, head, b"2\r\n{}\r\n0\r\n", trailers)


async def test_a_body_over_the_limit_is_413_before_it_is_sent(waits: FakeHost) -> None:
    head = request(
        b"Content-Length: 99999999", b"Expect: 100-continue", method=b"POST", path=b"/modules/counter/events"
    )
    async with served(asgi_app(waits)) as address:
        told = await exchange(address, head)
    assert told.startswith(b"HTTP/1.1 413 ")
    assert b"connection: close" in told


async def test_who_sends_no_headers_in_time_is_408(waits: FakeHost, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "HEADER_SECONDS", 0.05)
    async with served(asgi_app(waits)) as address:
        for piece in (b"", b"GET /heal", b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX-"):
            assert b" 408 " in await exchange(address, piece)


async def test_who_stops_in_the_middle_of_a_body_is_408(waits: FakeHost, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "BODY_SECONDS", 0.05)
    head = request(b"Content-Length: 100", method=b"POST", path=b"/tools/refund_order")
    async with served(asgi_app(waits)) as address:
        assert b" 408 " in await exchange(address, head, b"{")
    assert waits.acted == []


async def test_two_requests_in_one_packet_are_both_answered(waits: FakeHost) -> None:
    async with served(asgi_app(waits)) as address:
        reader, writer = await asyncio.open_connection(*address)
        writer.write(request() + request())
        for _ in range(2):
            assert b" 200 " in await reader.readuntil(b"\r\n\r\n")
            assert await reader.readexactly(11) == b'{"ok":true}'
        writer.close()


async def test_a_stop_answers_whoever_waits_and_ends_cleanly(waits: FakeHost) -> None:
    async with served(asgi_app(waits)) as (host, port):
        client = AsyncClient(base_url=f"http://{host}:{port}")
        call = asyncio.create_task(client.post("/tools/refund_order", content=ORDER))
        await waits.waited.wait()
    told = await call
    assert (told.status_code, told.json()["status"]) == (202, "running")
    await client.aclose()


async def test_a_client_that_goes_away_ends_its_wait(waits: FakeHost) -> None:
    async with served(asgi_app(waits)) as address:
        _, writer = await asyncio.open_connection(*address)
        length = b"Content-Length: %d" % len(ORDER)
        writer.write(request(length, method=b"POST", path=b"/tools/refund_order") + ORDER)
        await waits.waited.wait()
        writer.close()
        while waits.waiting:  # noqa: ASYNC110 - until the socket's end has been read
            await asyncio.sleep(0.01)
    assert [one.receipt.status for one in waits.runs.values()] == ["running"]


def test_what_the_server_may_not_do() -> None:
    config = settings(None, ("127.0.0.1", 8600), 1500)
    assert (config.access_log, config.proxy_headers, config.server_header, config.ws) == (False, False, False, "none")
    assert config.timeout_graceful_shutdown == 2
