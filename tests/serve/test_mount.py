"""Onefold beside another application: two paths, one lifespan."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from httpx2 import AsyncClient
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from onefold.serve import mounted, opening
from onefold.serve.mount import Mount
from onefold.terms.errors import NotOpen
from tests.serve.conftest import client_of
from tests.serve.fake_host import FakeHost
from tests.serve.fake_values import waiting_for_manager


class Opened:
    """What `App` is to serve: an application that its lifespan opens and closes."""

    def __init__(self, seen: list[str], fails: str = "") -> None:
        self.seen = seen
        self.fails = fails
        self.host = FakeHost()
        self.door = opening(self.opens)

    @contextlib.asynccontextmanager
    async def opens(self) -> AsyncIterator[FakeHost]:
        if self.fails == "startup":
            raise OSError("the store is held")
        self.seen.append("onefold opens")
        yield self.host
        self.seen.append("onefold closes")
        if self.fails == "shutdown":
            raise OSError("the disk is gone")

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self.door(scope, receive, send)

    def asgi(self, app: Any, /, *, at: str = "/onefold") -> Mount:
        return mounted(app, self, at=at)


class Life:
    """A server's side of a lifespan."""

    def __init__(self, app: Any) -> None:
        self.to: asyncio.Queue[Any] = asyncio.Queue()
        self.said: asyncio.Queue[Any] = asyncio.Queue()
        self.task = asyncio.create_task(app({"type": "lifespan", "asgi": {}, "state": {}}, self.to.get, self.said.put))

    async def step(self, phase: str) -> dict[str, Any]:
        await self.to.put({"type": f"lifespan.{phase}"})
        told: dict[str, Any] = await asyncio.wait_for(self.said.get(), 60)
        return told

    async def end(self) -> None:
        await asyncio.wait_for(self.task, 60)


@contextlib.asynccontextmanager
async def living(app: Any) -> AsyncIterator[AsyncClient]:
    life = Life(app)
    assert await life.step("startup") == {"type": "lifespan.startup.complete"}
    async with client_of(app) as client:
        yield client
    assert await life.step("shutdown") == {"type": "lifespan.shutdown.complete"}
    await life.end()


def outer(seen: list[str], fails: str = "") -> Starlette:
    async def hello(request: Request) -> PlainTextResponse:
        return PlainTextResponse(f"outer {request.scope['path']} below {request.scope['root_path']!r}")

    @contextlib.asynccontextmanager
    async def life(app: Starlette) -> AsyncIterator[None]:
        seen.append("outer opens")
        if fails == "startup":
            raise RuntimeError("outer cannot start")
        yield
        seen.append("outer closes")

    return Starlette(routes=[Route("/{rest:path}", hello)], lifespan=life)


async def test_one_line_puts_it_beside_a_starlette_application() -> None:
    seen: list[str] = []
    api = outer(seen)
    api.add_middleware(Opened(seen).asgi, at="/onefold")
    async with living(api) as client:
        assert (await client.get("/onefold/healthz")).json() == {"ok": True}
        call = await client.post("/onefold/tools/refund_order", json={"order_id": "7", "amount": 1})
        assert call.status_code == 200
        assert (await client.get("/onefold/runs")).json()["items"][0]["run_id"] == call.json()["run_id"]
        assert (await client.get("/onefold")).headers["location"] == "/onefold/console"
        for path in ("/", "/healthz", "/onefoldx", "/onefold-docs/a"):
            assert (await client.get(path)).text == f"outer {path} below ''"
    assert seen == ["onefold opens", "outer opens", "outer closes", "onefold closes"]


ALONE = """\
import sys
{cut}
import asyncio

from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route


async def hello(request):
    return PlainTextResponse("hello")


api = Starlette(routes=[Route("/", hello)])
{line}


async def main():
    said = asyncio.Queue()
    told = iter([{{"type": "lifespan.startup"}}, {{"type": "lifespan.shutdown"}}])

    async def receive():
        return next(told)

    await api({{"type": "lifespan", "asgi": {{}}, "state": {{}}}}, receive, said.put)
    print([said.get_nowait()["type"] for _ in range(2)], [route.path for route in api.routes])


asyncio.run(main())
"""
LINE = 'import onefold; api.add_middleware(onefold.App(store="kept").asgi, at="/onefold")'


def test_with_its_line_and_its_package_all_of_it_is_gone(tmp_path: Path) -> None:
    """The line brings one folder and nothing else; without the line nothing of the application needs the package."""

    def run(line: str, cut: str) -> str:
        (tmp_path / "alone.py").write_text(ALONE.format(line=line, cut=cut))
        ran = subprocess.run(
            [sys.executable, "alone.py"], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60
        )
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    started = "['lifespan.startup.complete', 'lifespan.shutdown.complete'] ['/']\n"
    assert run(LINE, "") == started
    assert sorted(path.name for path in tmp_path.iterdir()) == ["alone.py", "kept"]
    shutil.rmtree(tmp_path / "kept")
    assert run("", 'sys.modules["onefold"] = None  # the package is not there') == started
    assert [path.name for path in tmp_path.iterdir()] == ["alone.py"]


async def test_a_link_leads_below_the_mounted_path() -> None:
    seen: list[str] = []
    host_at = Opened(seen)
    async with living(Mount(host_at, outer(seen), "/a/b")) as client:
        host_at.host.outcomes["refund_order"] = lambda _: waiting_for_manager()
        call = await client.post("/a/b/tools/refund_order", json={"order_id": "7", "amount": 1})
        assert (await client.get(call.headers["location"])).json()["status"] == "waiting"


async def test_a_path_below_a_path_is_found() -> None:
    seen: list[str] = []
    mounted = Mount(Opened(seen), outer(seen), "/onefold")
    life = Life(mounted)
    await life.step("startup")

    async def proxied(scope: Any, receive: Any, send: Any) -> None:
        await mounted({**scope, "root_path": "/proxy"}, receive, send)

    async with client_of(proxied) as client:
        assert (await client.get("/proxy/onefold/healthz")).json() == {"ok": True}
        assert (await client.get("/proxy/onefold")).headers["location"] == "/proxy/onefold/console"
    await life.step("shutdown")
    await life.end()


async def test_an_application_without_a_lifespan_is_served_as_well() -> None:
    async def bare(scope: Any, receive: Any, send: Any) -> None:
        assert scope["type"] == "http"
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body"})

    seen: list[str] = []
    async with living(Mount(Opened(seen), bare, "/onefold")) as client:
        assert (await client.get("/other")).status_code == 204
        assert (await client.get("/onefold/healthz")).status_code == 200
    assert seen == ["onefold opens", "onefold closes"]


async def test_who_cannot_start_says_so_and_the_other_is_closed() -> None:
    for at, seen_then in (("onefold", []), ("outer", ["onefold opens", "outer opens", "onefold closes"])):
        seen: list[str] = []
        opened = Opened(seen, "startup" if at == "onefold" else "")
        life = Life(Mount(opened, outer(seen, "startup" if at == "outer" else ""), "/onefold"))
        told = await life.step("startup")
        assert told["type"] == "lifespan.startup.failed"
        assert ("the store is held" if at == "onefold" else "outer cannot start") in told["message"]
        with contextlib.suppress(RuntimeError):
            await life.end()
        assert seen == seen_then


async def test_a_close_that_fails_says_so() -> None:
    seen: list[str] = []
    life = Life(Mount(Opened(seen, "shutdown"), outer(seen), "/onefold"))
    await life.step("startup")
    told = await life.step("shutdown")
    assert (told["type"], "the disk is gone" in told["message"]) == ("lifespan.shutdown.failed", True)
    await life.end()


async def test_before_it_is_opened_it_answers_nothing() -> None:
    app = Opened([])
    app.door.drain()
    async with client_of(app) as client:
        with pytest.raises(NotOpen):
            await client.get("/healthz")


@pytest.mark.parametrize("at", ["", "/", "onefold", "/onefold/", "//x"])
async def test_a_path_that_is_none_is_refused(at: str) -> None:
    with pytest.raises(ValueError, match="must be a path"):
        Mount(Opened([]), outer([]), at)


async def test_leaving_is_handed_on() -> None:
    told: list[str] = []

    class Leaving:
        def drain(self) -> None:
            told.append("drained")

        async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
            raise AssertionError

    Mount(Leaving(), outer([]), "/onefold").drain()
    Mount(Opened([]), outer([]), "/onefold").drain()
    assert told == ["drained"]
