"""The example as a shop has it: the provider, a mail server, and the app, each really there.

For: starting `onefold serve examples/refund.py` beside examples/provider.py, killing it, starting it again over
the same folder; waiting for what one of them does.
Never: sleeps; asks the app anything by itself: what it does without being asked is what is tested.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from email import message_from_bytes
from email.message import Message
from pathlib import Path
from typing import Any, TypeVar

import httpx2
from aiosmtpd.smtp import SMTP
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

T = TypeVar("T")
ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = str(ROOT / "examples" / "refund.py")
KILLED = str(ROOT / "tests" / "example" / "killed.py")
SEED = os.environ.get("ONEFOLD_TEST_SEED", "1")  # which samples are taken
PATIENCE_S = 60.0  # until something that does not happen is a fault; a machine under load may take its time
SETTINGS = """
people.shop_manager = { notify = ["mailto:manager@example.com"] }
smtp = { url_env = "SMTP_URL", from = "refunds@example.com" }
"""


class Died(Exception):
    """The app ended while somebody waited for it."""


class Child:
    """A process, its lines as it says them, and what waits for one of them."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.said: list[str] = []
        self._news = asyncio.Condition()
        self._reading = asyncio.create_task(self._read())

    @classmethod
    async def start(cls, *command: str, folder: Path, **environ: str) -> Any:
        clean = {name: value for name, value in os.environ.items() if not name.startswith("ONEFOLD_")}
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-u",
            *command,
            cwd=folder,
            env={**clean, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}", **environ},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            limit=1 << 20,
        )
        return cls(process)

    async def _read(self) -> None:
        assert self.process.stdout is not None
        while line := await self.process.stdout.readline():
            async with self._news:
                self.said.append(line.decode().rstrip("\n"))
                self._news.notify_all()
        async with self._news:
            await self.process.wait()
            self._news.notify_all()

    @property
    def over(self) -> bool:
        return self._reading.done() or self.process.returncode is not None

    async def hears(self, pattern: str, after: int = 0) -> re.Match[str]:
        """The first of its lines, from number `after` on, with the pattern. Raises: Died, when it ends without one."""
        async with asyncio.timeout(PATIENCE_S), self._news:
            while True:
                for line in self.said[after:]:
                    if found := re.search(pattern, line):
                        return found
                after = len(self.said)
                if self.over:
                    raise Died(f"{pattern!r} was never said:\n" + "\n".join(self.said))
                await self._news.wait()

    async def ended(self) -> int:
        async with asyncio.timeout(PATIENCE_S):
            await self._reading
            return await self.process.wait()

    async def kill(self) -> None:
        """As a machine dies: no warning, nothing cleaned up."""
        if self.process.returncode is None:
            self.process.send_signal(signal.SIGKILL)
        await self.ended()


class Provider(Child):
    """examples/provider.py."""

    url = ""

    async def paid(self, bill: str) -> None:
        """Returns when it has paid the bill."""
        await self.hears(rf"refunded.* for bill {re.escape(bill)}$")

    async def book(self) -> Any:
        """{"calls", "refunds"}."""
        async with httpx2.AsyncClient() as http:
            return (await http.get(f"{self.url}/refunds")).json()


class App(Child):
    """`onefold serve`, with a fuse. `http` speaks to it once it serves."""

    url = ""
    http: httpx2.AsyncClient

    async def arm(self, point: str, hit: int) -> None:
        await self._ask(f"arm {point} {hit}", "^armed$")

    async def met(self) -> int:
        """How often the armed point was met, once nothing moves. Raises: Died, when it met it too often."""
        return int((await self._ask("met", r"^met (\d+)$"))[1])

    async def grant(self, seconds: float) -> None:
        """How long what is on its way may take at a stop."""
        await self._ask(f"grace {seconds}", "^granted$")

    async def _ask(self, line: str, answer: str) -> re.Match[str]:
        assert self.process.stdin is not None
        after = len(self.said)
        try:
            self.process.stdin.write(f"{line}\n".encode())
            await self.process.stdin.drain()
        except ConnectionError as gone:
            raise Died(line) from gone
        return await self.hears(answer, after)

    async def outlives(self, waited: Awaitable[T]) -> T:
        """What is waited for. Raises: Died, when the app ends first."""
        waiting = asyncio.ensure_future(waited)
        try:
            async with asyncio.timeout(PATIENCE_S):
                await asyncio.wait((waiting, self._reading), return_when=asyncio.FIRST_COMPLETED)
            if waiting.done():
                return waiting.result()
            raise Died(f"killed by {await self.ended()}")
        finally:
            waiting.cancel()


class Post:
    """The manager's mailbox, and the server in front of it."""

    def __init__(self) -> None:
        self.letters: list[Message] = []
        self.url = ""
        self._news = asyncio.Condition()

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        async with self._news:
            self.letters.append(message_from_bytes(envelope.content))
            self._news.notify_all()
        return "250 taken"

    def about(self, order: str) -> list[Message]:
        """The letters that ask about one order, in the order in which they came."""
        return [one for one in self.letters if str(one["subject"]).endswith(f" for order {order}?")]

    async def asks(self, order: str) -> Message:
        """The first letter about one order, as soon as it is there."""
        async with asyncio.timeout(PATIENCE_S), self._news:
            await self._news.wait_for(lambda: self.about(order))
        return self.about(order)[0]


def links(letter: Message) -> tuple[str, str]:
    """The paths of a letter's two links: to approve, to reject."""
    part = letter.get_payload(0) if letter.is_multipart() else letter
    assert isinstance(part, Message)
    raw = part.get_payload(decode=True)
    assert isinstance(raw, bytes)
    found = re.findall(r"(?:Approve|Reject): +https?://[^/\s]+(/approve/\S+)", raw.decode())
    approve, reject = found
    return approve, reject


class Shop:
    """All of it in one folder. `app` is the process that serves now."""

    def __init__(self, folder: Path, provider: Provider, post: Post, target: str) -> None:
        self.folder = folder
        self.provider = provider
        self.post = post
        self.target = target
        self.environ = {"SMTP_URL": post.url}
        self._app: App | None = None
        self._opened = asyncio.Condition()
        self._clients = AsyncExitStack()

    @property
    def app(self) -> App:
        assert self._app is not None, "the shop has not opened yet"
        return self._app

    @property
    def store(self) -> Path:
        return self.folder / "onefold-data"

    async def begins(self, *fuse: str) -> App:
        """A process that begins to serve, and may meet its fuse before it does."""
        command = (KILLED, *fuse, "--", "serve", self.target, "--listen", "127.0.0.1:0")
        app: App = await App.start(*command, folder=self.folder, **self.environ)
        self._app = app
        return app

    async def opens(self, *fuse: str) -> App:
        """A process that serves."""
        app = await self.begins(*fuse)
        app.url = (await app.hears(r" serves \S+ on (http://\S+)"))[1]
        client = httpx2.AsyncClient(base_url=app.url, timeout=PATIENCE_S, limits=httpx2.Limits(max_connections=None))
        app.http = await self._clients.enter_async_context(client)
        async with self._opened:
            self._opened.notify_all()
        return app

    async def opened_after(self, gone: App) -> None:
        """Returns when another process than `gone` serves."""
        async with asyncio.timeout(PATIENCE_S), self._opened:
            await self._opened.wait_for(lambda: self.app is not gone and self.app.url)

    async def closes(self) -> None:
        """Stop as an operator does."""
        self.app.process.terminate()
        assert await self.app.ended() == 0, self.app.said

    @asynccontextmanager
    async def agent(self, mode: Any = "auto") -> AsyncIterator[Client]:
        """The SDK's own client, on the tool's real address."""
        door = streamable_http_client(f"{self.app.url}/mcp", http_client=self.app.http)
        async with Client(door, mode=mode) as one:
            yield one

    async def end(self) -> None:
        """Nothing of it goes on."""
        await self._clients.aclose()
        for child in (self._app, self.provider):
            if child is not None:
                await child.kill()


def furnish(folder: Path, settings: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "onefold.toml").write_text(settings)


@asynccontextmanager
async def shop(folder: Path, *, target: str = EXAMPLE, settings: str = SETTINGS) -> AsyncIterator[Shop]:
    """A shop that has not opened yet; all that it started is gone afterwards."""
    furnish(folder, settings)
    post = Post()
    door: Callable[[], SMTP] = lambda: SMTP(post)  # noqa: E731 - the shortest way to say it
    mail = await asyncio.get_running_loop().create_server(door, "127.0.0.1", 0)
    post.url = f"smtp://127.0.0.1:{mail.sockets[0].getsockname()[1]}"
    command = (str(ROOT / "examples" / "provider.py"), "--port", "0", "--ledger", "ledger.jsonl")
    provider: Provider = await Provider.start(*command, folder=folder)
    one = Shop(folder, provider, post, target)
    try:
        provider.url = one.environ["PAY_URL"] = (await provider.hears(r"^(http://\S+)$"))[1]
        yield one
    finally:
        await one.end()
        mail.close()
        await mail.wait_closed()
