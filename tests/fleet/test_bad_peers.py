"""Whatever another node answers, a turn counts once and its caller gets its reply; who is not of the fleet is let in nowhere."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import httpx2
import pytest

from onefold.cell import Spawned
from onefold.fleet.wire import NUDGE, PATH, SIGNED, signature
from onefold.terms.codec import canonical, parse
from onefold.terms.errors import OwnedElsewhere
from tests.fleet.nodes import SECRET, Fleet, Node, a_key, fleet_of
from tests.fleet.shared import PARTS, Room, Sale, provider, till
from tests.guarantees.shop import Accepted, Deposit, bank

Way = Callable[[bytes, "Between"], Awaitable[bytes]]


class Between:
    """A server that stands where a node is reached. `way`: what becomes of each request for turns."""

    def __init__(self) -> None:
        self.url = ""
        self.behind = ""
        self.way: Way = passed
        self.turns = 0
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def close(self) -> None:
        assert self._server is not None
        self._server.close()
        for writer in tuple(self._open):
            writer.close()
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(
                    next(line[15:] for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
                )
                body = await reader.readexactly(length)
                is_turns = head.startswith(b"POST /fleet/turns ")
                self.turns += is_turns
                answer = await (self.way if is_turns else passed)(head + body, self)
                writer.write(answer)
                await writer.drain()
                if not answer or b"connection: close" in answer.lower():
                    return
        except (asyncio.IncompleteReadError, OSError):
            return
        finally:
            self._open.discard(writer)
            writer.close()

    async def ask(self, request: bytes) -> bytes:
        """The whole answer of the node behind."""
        host, _, port = self.behind.removeprefix("http://").partition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        head, _, body = request.partition(b"\r\n\r\n")
        writer.write(head + b"\r\nconnection: close\r\n\r\n" + body)
        try:
            return await reader.read()
        finally:
            writer.close()


def http(status: str, body: bytes = b"", kind: str = "application/x-ndjson") -> bytes:
    head = f"HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n\r\n"
    return head.encode() + body


async def passed(request: bytes, peer: Between) -> bytes:
    return await peer.ask(request)


async def closes(request: bytes, peer: Between) -> bytes:
    return b""


async def done_and_closes(request: bytes, peer: Between) -> bytes:
    await peer.ask(request)
    return b""


async def done_and_closes_midway(request: bytes, peer: Between) -> bytes:
    await peer.ask(request)
    return b'HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 999\r\n\r\n{"n":0,"repl'


async def asked_twice(request: bytes, peer: Between) -> bytes:
    await peer.ask(request)
    return await peer.ask(request)


async def answers_twice(request: bytes, peer: Between) -> bytes:
    answer = (await peer.ask(request)).replace(b"connection: close\r\n", b"")
    return answer + answer


async def late(request: bytes, peer: Between) -> bytes:
    await asyncio.sleep(0.2)
    return await peer.ask(request)


async def done_and_500(request: bytes, peer: Between) -> bytes:
    await peer.ask(request)
    return http("500 Internal Server Error", b"oh", "text/plain")


def says(status: str, body: bytes = b"") -> Way:
    async def way(request: bytes, peer: Between) -> bytes:
        return http(status, body)

    return way


GARBAGE = [
    b"garbage\n",
    b"\x00\xff\xfe\n",
    b"{}\n",
    b"[]\n",
    b"null\n",
    b'{"n":0}\n',
    b'{"n":7,"reply":1}\n',
    b'{"n":-1,"reply":1}\n',
    b'{"n":0,"fault":3}\n',
    b'{"n":0,"reply":' + b"[" * 10_000,
    b'{"n":0,"reply":' + b"[" * 10_000 + b"\n",
    b'{"n":0,"reply":1}',
    b"",
]
WAYS: dict[str, Way] = {
    "closes": closes,
    "done and closes": done_and_closes,
    "done and closes midway": done_and_closes_midway,
    "asked twice": asked_twice,
    "answers twice": answers_twice,
    "late": late,
    "done and 500": done_and_500,
    **{
        f"says {status[:3]}": says(status)
        for status in ("302 Found", "401 No", "403 No", "404 No", "429 No", "503 No", "204 No")
    },
    "no http": lambda request, peer: _raw(b"SSH-2.0-nothing\r\n\r\nconnection: close"),
}


async def _raw(answer: bytes) -> bytes:
    return answer


@pytest.fixture(autouse=True)
def secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONEFOLD_SECRET", SECRET)
    provider.failing = []


@pytest.fixture
async def between() -> AsyncIterator[tuple[Fleet, Between]]:
    """A fleet whose node b is reached through somebody."""
    fleet, peer = Fleet(), Between()
    await peer.start()
    try:
        await fleet.start("a", *PARTS)
        b = await fleet.start("b", *PARTS, advertise=peer.url)
        peer.behind = b.url
        await fleet.settled()
        yield fleet, peer
    finally:
        await fleet.close()
        await peer.close()


@pytest.mark.parametrize("way", WAYS)
async def test_a_turn_counts_once_whatever_becomes_of_its_answer(between: tuple[Fleet, Between], way: str) -> None:
    fleet, peer = between
    a, b = fleet.nodes["a"], fleet.nodes["b"]
    key = a_key(b, "bank")
    peer.way = WAYS[way]
    replies = [await a.app.deliver(bank, Deposit(f"d{n}", key, 10)) for n in range(3)]
    assert replies == [Accepted(10), Accepted(20), Accepted(30)]
    many = await asyncio.gather(*(a.app.deliver(bank, Deposit(f"m{n}", key, 1)) for n in range(20)))
    assert sorted(reply.balance for reply in many) == list(range(31, 51))  # type: ignore[union-attr]
    assert peer.turns
    assert (await b.app.read(bank, key)).balance == 50
    peer.way = passed
    assert await a.app.deliver(bank, Deposit("d0", key, 10)) == Accepted(10)
    assert isinstance(await a.app.cell(Room, a_key(b, "Room")).spawn(), Spawned)


async def test_garbage_for_an_answer_is_nobodys_reply(between: tuple[Fleet, Between]) -> None:
    fleet, peer = between
    a, b = fleet.nodes["a"], fleet.nodes["b"]
    key = a_key(b, "bank")
    for n, garbage in enumerate(GARBAGE):
        peer.way = says("200 OK", garbage)
        assert await a.app.deliver(bank, Deposit(f"g{n}", key, 1)) == Accepted(n + 1)
    assert peer.turns >= len(GARBAGE)


# --- who may ask -----------------------------------------------------------------------------------


async def post(node: Node, path: str, body: bytes, **headers: str) -> httpx2.Response:
    async with httpx2.AsyncClient() as client:
        return await client.post(node.url + path, content=body, headers={"content-type": "application/json", **headers})


def signed(node: Node, path: str, body: bytes) -> dict[str, str]:
    return {SIGNED: signature(node.host.signing[0], node.host.clock.now() // 1000, path, body)}


def turn(key: str, **more: Any) -> dict[str, Any]:
    event = {"type": "Deposit", "id": "h", "account": key, "amount": 5}
    told = {"kind": "bank", "principal": "-", "key": key, "event": "d/h", "digest": "00", "word": event}
    return {**told, **more}


@pytest.fixture
async def pair() -> AsyncIterator[tuple[Node, Node]]:
    async with fleet_of(*PARTS) as fleet:
        yield fleet.nodes["a"], fleet.nodes["b"]


async def test_what_is_not_signed_by_the_fleet_is_let_in_nowhere(pair: tuple[Node, Node]) -> None:
    a, _ = pair
    key = a_key(a, "bank")
    body = canonical([turn(key)])
    now = a.host.clock.now() // 1000
    wrong = [
        {},
        {SIGNED: ""},
        {SIGNED: "1,2"},
        {SIGNED: signature(b"another secret", now, PATH, body)},
        {SIGNED: signature(a.host.signing[0], now - 301, PATH, body)},
        {SIGNED: signature(a.host.signing[0], now, NUDGE, body)},
        {SIGNED: signature(a.host.signing[0], now, PATH, body + b" ")},
        {"authorization": "Bearer " + SECRET},
    ]
    for headers in wrong:
        assert (await post(a, PATH, body, **headers)).status_code == 401
    for headers in wrong[:5]:
        assert (await post(a, NUDGE, body, **headers)).status_code == 401
    assert (await a.app.read(bank, key)).balance == 0


HOSTILE = [
    b"",
    b"{}",
    b"[]",
    b"null",
    b"\xff",
    b"[" * 5_000,
    canonical([{}]),
    canonical([turn("k", kind=3)]),
    canonical([turn("k", principal=None)]),
    canonical([turn("")]),
    canonical([turn("k" * 5_000)]),
    canonical([turn("k", digest="xx")]),
    canonical([turn("k")] * 65),
]


@pytest.mark.parametrize("body", HOSTILE, ids=range(len(HOSTILE)))
async def test_a_signed_body_that_is_no_turns_is_refused_in_words(pair: tuple[Node, Node], body: bytes) -> None:
    a, _ = pair
    answer = await post(a, PATH, body, **signed(a, PATH, body))
    assert 400 <= answer.status_code < 500
    assert answer.headers["content-type"].startswith("application/problem+json")


WORDS: list[Any] = [
    None,
    3,
    "x",
    [],
    {},
    {"type": "Nonesuch"},
    {"type": "Deposit"},
    {"program": "greet()"},
    {"program": 3},
    {"do": "nonesuch"},
    {"do": 3},
    {"do": "retry"},
    {"do": "retry", "id": "owed.main.7"},
    {"do": "retry", "id": "alarm.main.7"},
    {"do": "retry", "id": 7},
    {"do": "drop", "id": "owed.main.x", "reason": 3},
    {"do": "fork", "from": 3, "id": None, "upto": "x"},
    {"do": "forget", "runs": [], "upto": 0},
    {"do": "reopen"},
    {"do": "watch", "after": "x"},
]


async def test_a_signed_turn_that_makes_no_sense_is_a_fault_of_its_own_line(pair: tuple[Node, Node]) -> None:
    a, b = pair
    key, other, room = a_key(a, "bank"), a_key(b, "bank"), a_key(a, "Room")
    lines = [
        turn(key, word=word, event=f"d/w{n}") for n, word in enumerate(WORDS) if word != {"do": "watch", "after": "x"}
    ]
    lines += [
        turn(other),
        turn(key, kind="nonesuch"),
        turn(room, kind="Room", word={"program": 3}),
        turn(room, kind="Room", word={"program": "greet("}),
        turn(room, kind="Room", word={"type": "Turn"}),
        turn(key, event="m/1"),
        turn(key, event="weird"),
    ]
    body = canonical(lines)
    answer = await post(a, PATH, body, **signed(a, PATH, body))
    assert answer.status_code == 200
    told = [parse(line) for line in answer.content.splitlines()]
    assert sorted(line["n"] for line in told) == list(range(len(lines)))
    faults = [line for line in told if "fault" in line]
    assert len(faults) >= len(lines) - 2  # an id of whatever form is an id
    assert (await b.app.read(bank, other)).balance == 0
    assert type(await b.app.deliver(bank, Deposit("after", key, 1))) is Accepted


async def test_a_signed_request_that_is_sent_again_counts_once(pair: tuple[Node, Node]) -> None:
    a, b = pair
    key = a_key(a, "bank")
    body = canonical([turn(key)])
    headers = signed(b, PATH, body)
    answers = [(await post(a, PATH, body, **headers)).json() for _ in range(3)]
    assert [one["replayed"] for one in answers] == [False, True, True]
    assert (await b.app.read(bank, key)).balance == 5


async def test_nodes_with_different_secrets_reach_each_other_by_letters(monkeypatch: pytest.MonkeyPatch) -> None:
    fleet = Fleet()
    try:
        await fleet.start("a", *PARTS)
        monkeypatch.setenv("ONEFOLD_SECRET", "quite another secret of another fleet")
        await fleet.start("b", *PARTS)
        await fleet.settled()
        a, b = fleet.nodes["a"], fleet.nodes["b"]
        for owner, other in ((a, b), (b, a)):
            assert await other.app.deliver(bank, Deposit("d", a_key(owner, "bank"), 3)) == Accepted(3)
    finally:
        await fleet.close()


async def test_a_kind_that_the_owner_does_not_know_waits_to_be_sent_again_and_stops_nobody_else() -> None:
    fleet = Fleet()
    try:
        a = await fleet.start("a", *PARTS)
        b = await fleet.start("b", Room, bank, provider.dedupes())
        await fleet.settled()
        sale = Sale("s", a_key(b, "till"), a_key(a, "bank"), 5)
        with pytest.raises(OwnedElsewhere):  # its node has older code, and is about to be replaced
            await a.app.deliver(till, sale)
        assert await a.app.deliver(bank, Deposit("d", a_key(b, "bank"), 3)) == Accepted(3)
        here = Sale("s", a_key(a, "till"), a_key(b, "bank"), 5)
        assert await a.app.deliver(till, here) == 5
    finally:
        await fleet.close()
