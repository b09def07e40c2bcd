"""Every scenario of automations runs over every store; a file that has no fixture `at` of its own over these."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.reflex.ground import STORES, At, ground


@pytest.fixture(params=STORES)
async def at(request: pytest.FixtureRequest) -> AsyncIterator[At]:
    async with ground(request.param) as found:
        yield found
