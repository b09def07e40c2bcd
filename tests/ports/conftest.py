"""A mail server and a web server of the test's own, which keep what they are sent and answer as they are told."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import msgspec
import pytest
from aiosmtpd.smtp import SMTP, AuthResult, LoginPassword

from onefold.actuators.carried import Ask
from onefold.ports.notify import Links

PAIR = Links("https://tools.example.com/approve/YES-TOKEN", "https://tools.example.com/approve/NO-TOKEN")
NOON = 1_800_000_000_000


def asked(**changes: Any) -> Ask:
    told: dict[str, Any] = {
        "run": "run_1",
        "program": "refund_order",
        "call": "0#1",
        "name": "manager",
        "message": "Pay back 150 for order 8?",
        "notify": ("mailto:manager@example.com",),
        "since": NOON,
        "until": NOON + 86_400_000,
        "shown": msgspec.Raw(b'{"amount":"150","order_id":"8"}'),
    }
    return Ask(**{**told, **changes})


@dataclass
class Post:
    """What a mail server took, and how it answers."""

    port: int = 0
    letters: list[Message] = field(default_factory=list)
    answer: str = "250 taken"
    logins: list[tuple[str, str]] = field(default_factory=list)

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        if self.answer.startswith("250"):
            self.letters.append(message_from_bytes(envelope.content))
        return self.answer

    def authenticate(self, server: Any, session: Any, envelope: Any, mechanism: str, data: Any) -> AuthResult:
        assert isinstance(data, LoginPassword)
        self.logins.append((data.login.decode(), data.password.decode()))
        return AuthResult(success=data.password == b"right horse", handled=False)


@pytest.fixture
async def post() -> AsyncIterator[Post]:
    post = Post()

    def talk() -> SMTP:
        return SMTP(post, authenticator=post.authenticate, auth_require_tls=False)

    server = await asyncio.get_running_loop().create_server(talk, "127.0.0.1", 0)
    post.port = server.sockets[0].getsockname()[1]
    yield post
    server.close()
    await server.wait_closed()


@dataclass
class Web:
    """What a web server was posted, and how it answers."""

    url: str = ""
    status: int = 204
    location: str | None = None
    posted: list[tuple[dict[str, str], bytes]] = field(default_factory=list)


@pytest.fixture
def web() -> Iterator[Web]:
    web = Web()

    class Door(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            web.posted.append(({name.lower(): value for name, value in self.headers.items()}, body))
            self.send_response(web.status)
            if web.location:
                self.send_header("location", web.location)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Door)
    web.url = f"http://127.0.0.1:{server.server_port}/hook/T0K3N"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield web
    server.shutdown()
    thread.join()
    server.server_close()
