"""Every promise about schedules is held on every store: `homes` opens the real host over each of them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from onefold.testing import staged
from tests.contracts.backends import store_of
from tests.timers.home import Home, Owner

Homes = Callable[..., Awaitable[Home]]


@pytest.fixture(params=["memory", "sqlite", "postgres"])
async def homes(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Homes]:
    store = store_of(request.param, tmp_path / "store")
    async with AsyncExitStack() as stack:

        async def make(*parts: object, owner: Owner | None = None, to: Any = None, **values: Any) -> Home:
            taken = owner or Owner()
            module = to or taken.timers()
            stage = await stack.enter_async_context(staged(module, *parts, store=store, **values))
            return Home(stage, taken, module)

        yield make


@pytest.fixture
async def home(homes: Homes) -> Home:
    return await homes()
