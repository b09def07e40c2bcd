"""cli.line - one open line to the app, for as long as a command runs.

For: the same request to the app that answers at an address, or, where none answers and no address
was named, to the app of onefold.toml, opened in this process on its own store.
Never: opens a store beside an app that holds it (the store refuses that itself); sends anything
twice; shows the bearer key.
Was wrong once: `--url` to a machine that was down fell back to the store at hand, and a run was
cancelled in the wrong place. A named address is the only one asked. And whatever listened at the
default address was taken for this folder's app: another one's replies were swept.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO, Self
from urllib.parse import quote, unquote

from onefold.cli.answers import AnotherApp, Answer, Problem, Unanswered
from onefold.terms.errors import Finding, LoadRefused

if TYPE_CHECKING:
    import httpx2

    from onefold.host.config import Config

CONNECT_S = 3.0
NOTHING_TO_OPEN = (
    "nothing listens there, and no onefold.toml here names an app to open instead. "
    "Start it with `onefold dev FILE`, or say --url"
)
UNNAMED = "onefold"  # what an app is called that another server opened
ANSWER_S = 45.0  # longer than the 25 s that an answer may wait
ANYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - not bound: where an app listens everywhere, ask here


class Line:
    """A context manager. `url` None: the address of onefold.toml, then the store. `principal`: act as it."""

    def __init__(self, url: str | None, principal: str | None) -> None:
        self._url = url
        self._principal = principal
        self._runner = asyncio.Runner()
        self._client: httpx2.AsyncClient | None = None
        self._stack = contextlib.AsyncExitStack()
        self._opened = False
        self._app: str | None = None
        self._worth_saying = False
        self._asked_who = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._runner.run(self._close())
        finally:
            self._runner.close()

    def get(self, *path: str, **query: Any) -> Answer:
        """Read. Raises: Problem, Unanswered, and what opening the store raises."""
        asked = {name: str(value) for name, value in query.items() if value is not None}
        return self._runner.run(self._ask("GET", path, asked, None, {}))

    def post(self, *path: str, body: bytes = b"{}", headers: Mapping[str, str] | None = None) -> Answer:
        """Change something; `body` is JSON. Raises: as get."""
        return self._runner.run(self._ask("POST", path, {}, body, dict(headers or {})))

    def put(self, *path: str, body: bytes) -> Answer:
        """Set something; `body` is JSON. Raises: as get."""
        return self._runner.run(self._ask("PUT", path, {}, body, {}))

    def delete(self, *path: str) -> Answer:
        """Take something away. Raises: as get."""
        return self._runner.run(self._ask("DELETE", path, {}, None, {}))

    def save(self, out: BinaryIO, *path: str, accept: str | None = None, **query: Any) -> None:
        """Read something long, piece by piece, into `out`. Raises: as get, also for an answer that was cut off."""
        asked = {name: str(value) for name, value in query.items() if value is not None}
        headers = {} if accept is None else {"accept": accept}
        self._runner.run(self._ask("GET", path, asked, None, headers, out))

    def whom(self) -> str | None:
        """Who was asked, in words, where that is worth saying: something was changed, or something was not found."""
        if not self._worth_saying or self._client is None:
            return None
        if self._opened:
            return f"Asked: {settled().app}, opened here; nothing listens at {self._base()}."
        named = f"the app {self._app!r} at " if self._app is not None else ""
        return f"Asked: {named}{self._base()}."

    def _base(self) -> str:
        return "" if self._client is None else str(self._client.base_url).rstrip("/")

    def time(self) -> float:
        """Seconds on a clock that only goes forward, for a command's own patience."""
        return self._runner.get_loop().time()

    def pause(self, seconds: float) -> None:
        """Wait, while an app opened here goes on."""
        self._runner.run(asyncio.sleep(seconds))

    async def _ask(
        self,
        method: str,
        path: tuple[str, ...],
        query: dict[str, str],
        body: bytes | None,
        headers: dict[str, str],
        out: BinaryIO | None = None,
    ) -> Answer:
        where = "/" + "/".join(quote(part, safe="") for part in path)
        if body is not None:
            headers["content-type"] = "application/json"
        request = functools.partial(self._send, method, where, out=out, params=query, content=body, headers=headers)
        client = self._client or self._dial()
        await self._known(client)
        got = await request(client)
        if got is None:
            base = str(client.base_url)
            if self._opened or self._url:
                raise Unanswered(base, "nothing listens there")
            await client.aclose()
            got = await request(await self._open(base))
        assert got is not None
        self._app = _app_of(got) or self._app
        changed = method == "POST" and got.status_code < 400 and self._url is None and not self._opened
        self._worth_saying = self._worth_saying or changed or got.status_code == 404
        if out is not None and got.status_code < 400:
            return Answer(got.status_code, b"", None, dict(got.headers))
        read = _read(got)
        self._worth_saying = self._worth_saying or (
            _is_empty(read.json) and self._url is None and settled().app is None
        )
        return read

    async def _known(self, client: httpx2.AsyncClient) -> None:
        """Before the first request to an address that the settings gave. Raises: AnotherApp."""
        if self._asked_who or self._url is not None or self._opened:
            return
        self._asked_who = True
        config = settled()
        named = None if config.app is None else _title(config.app, config.file)
        if named is None:
            return
        got = await self._send("HEAD", "/openapi.json", client)
        listening = None if got is None else _app_of(got)
        if listening is not None and listening != named:
            raise AnotherApp(self._base(), listening, named)

    async def _send(
        self, method: str, where: str, client: httpx2.AsyncClient, out: BinaryIO | None = None, **parts: Any
    ) -> httpx2.Response | None:
        """The response, read; its body goes to `out` where that is given and it is no refusal. None when nothing
        listens there."""
        import httpx2

        try:
            async with client.stream(method, where, **parts) as got:
                if out is None or got.status_code >= 400:
                    await got.aread()
                    return got
                async for piece in got.aiter_bytes():
                    out.write(piece)
                return got
        except httpx2.ConnectError:
            return None
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            why = f"{type(error).__name__}; what was sent may have been taken"
            raise Unanswered(str(client.base_url), why) from None

    def _dial(self) -> httpx2.AsyncClient:
        import httpx2

        base = self._url or address_of(settled())
        key = os.environ.get("ONEFOLD_KEY")  # noqa: TID251 - the door: the one secret a command is handed
        headers = {"authorization": f"Bearer {key}"} if key else {}
        if self._principal is not None:
            headers["onefold-as"] = quote(self._principal, safe="")
        timeout = httpx2.Timeout(ANSWER_S, connect=CONNECT_S)
        self._client = httpx2.AsyncClient(base_url=base, headers=headers, timeout=timeout, trust_env=False)
        return self._client

    async def _open(self, nobody: str) -> httpx2.AsyncClient:
        """Open the app of onefold.toml here. It closes with the line."""
        config = settled()
        if config.app is None:
            raise Unanswered(nobody, NOTHING_TO_OPEN)
        import httpx2

        from onefold.cli.inside import opened_here

        start = Path.cwd() if config.file is None else config.file.parent
        opened = opened_here(config.app, start, self._principal)
        try:
            asgi = await self._stack.enter_async_context(opened)
        except LoadRefused as refused:
            opening = Finding(nobody.rstrip("/"), f"nothing listens there, so this command opened {config.app} itself")
            raise LoadRefused([opening, *refused.findings]) from refused
        self._opened = True
        self._client = httpx2.AsyncClient(transport=httpx2.ASGITransport(app=asgi), base_url=nobody, timeout=None)
        return self._client

    async def _close(self) -> None:
        if self._client is not None:
            await self._client.aclose()
        await self._stack.aclose()


def settled(**flags: str | None) -> Config:
    """The configuration of the working folder, under these flags. Raises: LoadRefused."""
    from onefold.host.config import find, settle

    environ = os.environ  # noqa: TID251 - the door: handed to host's config
    return settle(flags=flags, environ=environ, file=find(start=Path.cwd()))


def address_of(config: Config) -> str:
    """Where the app of this configuration answers, seen from this machine."""
    host, port = config.listen
    host = ANYWHERE.get(host, host)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _app_of(got: httpx2.Response) -> str | None:
    """What an answering app is called; None for one that does not say, or has no name of its own."""
    said = unquote(got.headers.get("onefold-app", ""))
    return said if said not in ("", UNNAMED) else None


def _title(target: str, file: Path | None) -> str | None:
    """What the app of a target is called when it is served, without loading it; None where that is not known."""
    from onefold.host.target import file_of

    found = file_of(target, Path.cwd() if file is None else file.parent)
    return None if found is None else found.stem


def _is_empty(json: Any) -> bool:
    """A list with nothing in it: often the list of another app than the one that was meant."""
    return isinstance(json, dict) and json.get("items") == []


def _read(got: httpx2.Response) -> Answer:
    """Raises: Problem for a refusal; Unanswered when what answers is not Onefold."""
    from onefold.terms.codec import parse
    from onefold.terms.errors import BadArguments

    media = got.headers.get("content-type", "").partition(";")[0]
    json: Any = None
    if media in ("application/json", "application/problem+json"):
        try:
            json = parse(got.content, "the answer")
        except BadArguments as fault:
            raise Unanswered(str(got.url), f"its answer is no JSON ({fault.faults[0]})") from None
    if got.status_code >= 400:
        if isinstance(json, dict) and "code" in json:
            raise Problem(got.content, json)
        raise Unanswered(str(got.url), f"what listens there answered {got.status_code} and is not Onefold")
    return Answer(got.status_code, got.content, json, dict(got.headers))
