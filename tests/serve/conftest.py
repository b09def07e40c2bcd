"""What tests of the doors share: a fake host, and a client that speaks ASGI to them without a socket."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest
from httpx2 import ASGITransport, AsyncClient

from onefold.host.config import Hook
from onefold.host.settings import Key
from onefold.serve import Front, asgi_app
from tests.serve.fake_host import FakeHost
from tests.serve.fake_values import Config

AGENT_KEY = "agent-key-0123456789"
READER_KEY = "reader-key-0123456789"
OPERATOR_KEY = "operator-key-0123456789"
HOOK_SECRET = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
LOCAL = "http://127.0.0.1:8600"


def keyed() -> Config:
    """A server with three keys: an agent that calls, somebody who reads, and an operator."""
    return Config(
        keys=(
            Key("AGENT_KEY", frozenset({"call"}), "studio"),
            Key("READER_KEY", frozenset({"read"}), "studio"),
            Key("OPERATOR_KEY", frozenset({"operate"})),
        ),
        hooks={"refund_order": Hook("HOOK", principal="studio"), "paid": Hook("HOOK")},
        environ={
            "AGENT_KEY": AGENT_KEY,
            "READER_KEY": READER_KEY,
            "OPERATOR_KEY": OPERATOR_KEY,
            "HOOK": HOOK_SECRET,
        },
    )


def client_of(app: Any, base_url: str = LOCAL, **more: Any) -> AsyncClient:
    return AsyncClient(transport=ASGITransport(app, raise_app_exceptions=True), base_url=base_url, **more)


@pytest.fixture
def host() -> FakeHost:
    return FakeHost(Config(hooks={"refund_order": Hook("HOOK"), "paid": Hook("HOOK")}, environ={"HOOK": HOOK_SECRET}))


@pytest.fixture
async def front(host: FakeHost) -> AsyncIterator[Front]:
    app = asgi_app(host)
    yield app
    await app.aclose()


@pytest.fixture
async def client(front: Front) -> AsyncIterator[AsyncClient]:
    """Somebody on this machine, on a server without keys."""
    async with client_of(front) as one:
        yield one


Keyed = Callable[[str | None], AbstractAsyncContextManager[AsyncClient]]


@pytest.fixture
def locked() -> FakeHost:
    """A host whose server has keys."""
    return FakeHost(keyed())


@pytest.fixture
def holding(locked: FakeHost) -> Keyed:
    """`async with holding(KEY) as client`: a client that shows that key, or none."""

    @asynccontextmanager
    async def open_with(key: str | None) -> AsyncIterator[AsyncClient]:
        app = asgi_app(locked)
        headers = {"authorization": f"Bearer {key}"} if key else {}
        try:
            async with client_of(app, headers=headers) as one:
                yield one
        finally:
            await app.aclose()

    return open_with
