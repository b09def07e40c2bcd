"""Every promise is held on every store: `stages` opens the real host over each of them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from onefold.testing import Stage, staged
from tests.contracts.backends import store_of
from tests.guarantees.shop import Provider, bank

Stages = Callable[..., Awaitable[Stage]]


@pytest.fixture(params=["memory", "sqlite", "postgres"])
async def stages(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Stages]:
    places: dict[str, str] = {}
    async with AsyncExitStack() as stack:

        async def make(*parts: object, store_name: str = "store", **values: Any) -> Stage:
            store = places.setdefault(store_name, store_of(request.param, tmp_path / store_name))
            return await stack.enter_async_context(staged(*parts, store=store, **values))

        yield make


@pytest.fixture
def provider() -> Provider:
    return Provider()


@pytest.fixture
async def stage(stages: Stages, provider: Provider) -> Stage:
    return await stages(bank, provider.dedupes())
