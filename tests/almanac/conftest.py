"""whenever as an oracle reads the pinned zone files too, while these tests run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import whenever


@pytest.fixture(scope="module")
def pinned_whenever() -> Iterator[None]:
    path = whenever.get_tzpath()
    whenever.reset_tzpath(())
    whenever.clear_tzcache()
    yield
    whenever.reset_tzpath(path)
    whenever.clear_tzcache()
