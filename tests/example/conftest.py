"""A shop to itself for each test: processes and files are its own, and gone afterwards."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.example.ledger import Ledger
from tests.example.shop import Shop, shop


@pytest.fixture
async def open_shop(tmp_path: Path) -> AsyncIterator[Shop]:
    """The example, serving."""
    async with shop(tmp_path) as one:
        await one.opens()
        yield one


@pytest.fixture
async def closed_shop(tmp_path: Path) -> AsyncIterator[Shop]:
    """The example; the test opens it."""
    async with shop(tmp_path) as one:
        yield one


@pytest.fixture
def ledger() -> Ledger:
    return Ledger()
