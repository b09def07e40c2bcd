"""Every promise is held on every store: `stages` opens the real host over each of them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from onefold.testing import Stage, staged
from tests.guarantees.shop import Provider, bank

Stages = Callable[..., Awaitable[Stage]]


@pytest.fixture(params=["memory", "sqlite"])
async def stages(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Stages]:
    async with AsyncExitStack() as stack:

        async def make(*parts: object, store_name: str = "store", **values: Any) -> Stage:
            store = "memory:" if request.param == "memory" else tmp_path / store_name
            return await stack.enter_async_context(staged(*parts, store=store, **values))

        yield make


@pytest.fixture
def provider() -> Provider:
    return Provider()


@pytest.fixture
async def stage(stages: Stages, provider: Provider) -> Stage:
    return await stages(bank, provider.dedupes())
