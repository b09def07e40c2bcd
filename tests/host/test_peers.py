"""What became of a turn that was sent to another node: it answered, it never got there, or nobody knows. Each is told
once, whatever the other side does."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
import uvloop

from onefold.fleet.wire import PATH, SIGNED, Answer, Sent, answered, is_signed, refused, sents_of
from onefold.host.connection import Ambiguous, NotReached, Told
from onefold.host.peers import LINES, Peers
from onefold.terms.errors import Busy, KeyConflict
from onefold.terms.ids import ActorId

SECRETS = (b"a secret that both nodes have",)
NOW = 1_800_000_000
Handle = Callable[[bytes, asyncio.StreamWriter], Awaitable[None]]


class Node:
    """Another node: what it was asked, and an answer of this test's."""

    def __init__(self, handle: Handle) -> None:
        self.handle = handle
        self.asked = asyncio.Event()
        self.bodies: list[bytes] = []
        self.signed: list[bool] = []
        self.connections = 0
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                size = int(re.search(r"content-length: (\d+)", head)[1])  # type: ignore[index]
                body = await reader.readexactly(size)
                self.bodies.append(body)
                self.asked.set()
                header = re.search(rf"{SIGNED}: (\S+)", head)
                self.signed.append(is_signed(SECRETS, header and header[1], NOW, PATH, body))
                await self.handle(body, writer)
                if writer.is_closing():
                    return
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            writer.close()


@asynccontextmanager
async def node(handle: Handle) -> AsyncIterator[tuple[Node, Peers]]:
    other = Node(handle)
    server = await asyncio.start_server(other.serve, "127.0.0.1", 0)
    other.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    peers = Peers(SECRETS, lambda: NOW)
    try:
        yield other, peers
    finally:
        await peers.close()
        server.close()
        await server.wait_closed()


def turn(key: str) -> Sent:
    return Sent(ActorId("counter", None, key), f"d/{key}", b"\x01", {"type": "Add"})


def whole(status: str, body: bytes) -> bytes:
    return b"HTTP/1.1 %b\r\ncontent-length: %d\r\n\r\n%b" % (status.encode(), len(body), body)


def echo(raw: bytes) -> list[bytes]:
    return [answered(n, Answer(b'"%b"' % sent.at.key.encode(), n == 1)) for n, sent in enumerate(sents_of(raw))]


async def test_turns_of_one_moment_go_in_one_signed_request_and_each_gets_its_own_reply() -> None:
    async def handle(raw: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(whole("200 OK", b"".join(reversed(echo(raw)))))

    async with node(handle) as (other, peers):
        told = await asyncio.gather(*(peers.ask(other.url, turn(f"k{n}")) for n in range(5)))
        assert told == [Answer(b'"k%d"' % n, n == 1) for n in range(5)]
        assert (len(other.bodies), other.signed) == (1, [True])
        await peers.ask(other.url, turn("later"))
        assert other.connections == 1


async def test_the_servers_own_loop_sends_them_too() -> None:
    async def handle(raw: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(whole("200 OK", b"".join(echo(raw))))

    async def there_and_back() -> list[Told]:
        async with node(handle) as (other, peers):
            return [await peers.ask(other.url, turn("a")), await peers.ask(other.url, turn("b"))]

    told = await asyncio.to_thread(lambda: uvloop.run(there_and_back()))
    assert told == [Answer(b'"a"'), Answer(b'"b"')]


async def test_a_reply_is_there_before_the_slowest_of_its_request() -> None:
    going = asyncio.Event()

    async def handle(raw: bytes, writer: asyncio.StreamWriter) -> None:
        first, second = echo(raw)
        writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
        cut = len(second) // 2  # a line may come in pieces
        writer.write(b"%x\r\n%b\r\n" % (cut, second[:cut]) + b"%x\r\n%b\r\n" % (len(second) - cut, second[cut:]))
        await going.wait()
        writer.write(b"%x\r\n%b\r\n0\r\n\r\n" % (len(first), first))

    async with node(handle) as (other, peers):
        slow, fast = (asyncio.ensure_future(peers.ask(other.url, turn(key))) for key in ("slow", "fast"))
        assert await fast == Answer(b'"fast"', True)
        assert not slow.done()
        going.set()
        assert await slow == Answer(b'"slow"')


async def test_a_fault_over_there_is_the_same_fault_here() -> None:
    async def handle(raw: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(whole("200 OK", refused(0, KeyConflict("k")) + refused(1, Busy("counter k", 9))))

    async with node(handle) as (other, peers):
        first, second = await asyncio.gather(*(peers.ask(other.url, turn(key)) for key in "ab"))
    assert isinstance(first, KeyConflict)
    assert str(first) == str(KeyConflict("k"))
    assert isinstance(second, Busy)
    assert second.limit == 9


@pytest.mark.parametrize("status", ["401 Unauthorized", "404 Not Found", "503 Service Unavailable", "421 Misdirected"])
async def test_what_was_refused_at_the_door_was_not_sent(status: str) -> None:
    async def handle(raw: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(whole(status, b"no"))

    async with node(handle) as (other, peers):
        assert await peers.ask(other.url, turn("a")) == NotReached()


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"HTTP/1.1 200 OK\r\n",
        whole("200 OK", b'{"n":0,"reply":'),
        whole("200 OK", b"not json\n"),
        whole("200 OK", answered(7, Answer(b"1"))),
        whole("500 Internal Server Error", b"oops"),
        whole("302 Found", b""),
        b"SSH-2.0-OpenSSH\r\n",
    ],
)
async def test_whatever_else_comes_back_nobody_knows_whether_it_counted(answer: bytes) -> None:
    async def handle(raw: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(answer)
        await writer.drain()
        writer.close()

    async with node(handle) as (other, peers):
        assert await peers.ask(other.url, turn("a")) == Ambiguous()


async def test_of_an_answer_that_breaks_off_only_the_rest_is_unknown() -> None:
    async def handle(raw: bytes, writer: asyncio.StreamWriter) -> None:
        line = echo(raw)[1]
        writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n%x\r\n%b\r\n" % (len(line), line))
        await writer.drain()
        writer.close()

    async with node(handle) as (other, peers):
        told = await asyncio.gather(*(peers.ask(other.url, turn(key)) for key in "ab"))
    assert told == [Ambiguous(), Answer(b'"b"', True)]


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "http://", "nonsense", "http://[::1"])
async def test_a_node_that_is_not_there_was_not_reached(url: str) -> None:
    peers = Peers(SECRETS, lambda: NOW)
    assert await peers.ask(url, turn("a")) == NotReached()
    await peers.nudge(url)
    await peers.close()


async def test_turns_wait_for_a_connection_when_all_are_busy_and_none_is_lost() -> None:
    going = asyncio.Event()

    async def handle(raw: bytes, writer: asyncio.StreamWriter) -> None:
        await going.wait()
        writer.write(whole("200 OK", b"".join(echo(raw))))

    async with node(handle) as (other, peers):
        asked = []
        for n in range(LINES + 5):
            asked.append(asyncio.ensure_future(peers.ask(other.url, turn(f"k{n}"))))
            await asyncio.sleep(0)  # each in a request of its own, while there are connections
            await asyncio.sleep(0)
        going.set()
        told = await asyncio.gather(*asked)
        assert [one.reply for one in told if isinstance(one, Answer)] == [b'"k%d"' % n for n in range(LINES + 5)]
        assert other.connections <= LINES


async def test_whoever_stops_waiting_takes_nobody_along() -> None:
    going = asyncio.Event()

    async def handle(raw: bytes, writer: asyncio.StreamWriter) -> None:
        await going.wait()
        writer.write(whole("200 OK", b"".join(echo(raw))))

    async with node(handle) as (other, peers):
        left, stays = (asyncio.ensure_future(peers.ask(other.url, turn(key))) for key in ("left", "stays"))
        await other.asked.wait()
        left.cancel()
        going.set()
        assert await stays == Answer(b'"stays"', True)


async def test_a_node_that_has_another_secret_is_told_of_once(caplog: pytest.LogCaptureFixture) -> None:
    status = "401 Unauthorized"

    async def handle(raw: bytes, writer: asyncio.StreamWriter) -> None:
        body = b"".join(echo(raw)) if status.startswith("200") else b"{}"
        writer.write(whole(status, body))

    async with node(handle) as (other, peers):
        for key in ("a", "b"):
            assert await peers.ask(other.url, turn(key)) == NotReached()
        told = [record.getMessage() for record in caplog.records]
        assert len(told) == 1
        assert other.url in told[0]
        assert "ONEFOLD_SECRET" in told[0]
        status = "200 OK"
        assert await peers.ask(other.url, turn("c")) == Answer(b'"c"')
        assert len(caplog.records) == 1
