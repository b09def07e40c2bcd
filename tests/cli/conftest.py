"""Commands as a person runs them, against a server that answers what the test says."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from click.testing import CliRunner, Result

from onefold.cli.root import root
from onefold.terms.codec import canonical, parse


@dataclass
class Sent:
    """One request as it came."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any


@dataclass
class Told:
    """A server with answers by method and path, each list worked off until its last one, which stays."""

    url: str = ""
    answers: dict[tuple[str, str], list[tuple[int, Any, str]]] = field(default_factory=dict)
    sent: list[Sent] = field(default_factory=list)
    app: str | None = None

    def answer(self, method: str, path: str, *bodies: Any, status: int = 200, media: str = "application/json") -> None:
        self.answers[method, path] = [(status, body, media) for body in bodies]

    def refuse(self, method: str, path: str, code: str, status: int, **more: Any) -> None:
        problem = {"code": code, "status": status, "title": code, "detail": f"It was {code}.", **more}
        self.answer(method, path, problem, status=status, media="application/problem+json")


class _Door(BaseHTTPRequestHandler):
    told: Told

    def _any(self) -> None:
        length = int(self.headers.get("content-length") or 0)
        raw = self.rfile.read(length)
        where = urlsplit(self.path)
        headers = {name.lower(): value for name, value in self.headers.items()}
        body = parse(raw) if raw else None
        self.told.sent.append(Sent(self.command, where.path, dict(parse_qsl(where.query)), headers, body))
        found = self.told.answers.get(
            (self.command, where.path), [(404, {"code": "unknown_name", "detail": "?"}, "application/problem+json")]
        )
        status, answer, media = found.pop(0) if len(found) > 1 else found[0]
        out = answer if isinstance(answer, bytes) else canonical(answer)
        self.send_response(status)
        if self.told.app is not None:
            self.send_header("onefold-app", self.told.app)
        if status != 204:
            self.send_header("content-type", media)
            self.send_header("content-length", str(len(out)))
        self.end_headers()
        if status != 204 and self.command != "HEAD":
            self.wfile.write(out)

    do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = _any

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


@pytest.fixture
def told() -> Iterator[Told]:
    told = Told()
    door = type("Door", (_Door,), {"told": told})
    server = ThreadingHTTPServer(("127.0.0.1", 0), door)
    told.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield told
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def typed(told: Told, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run `onefold ARGUMENTS` in an empty folder, against `told` unless it says another --url."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ONEFOLD_KEY", raising=False)
    monkeypatch.setattr("onefold.cli.line.Line.pause", lambda line, seconds: None)
    monkeypatch.setenv("ONEFOLD_LISTEN", told.url.removeprefix("http://"))

    def run(*arguments: str, stdin: str | None = None) -> Result:
        result = CliRunner().invoke(root, arguments, input=stdin)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return run
