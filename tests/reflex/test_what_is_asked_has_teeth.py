"""Every fault that a preview and a backfill must not have is seen by the test that is there for it."""

from __future__ import annotations

import pytest

from onefold.testing.broken.reflex_asks import BROKEN_ASKS
from onefold.testing.broken.reflex_engines import BrokenEngine
from tests.reflex.test_the_engine_tests_have_teeth import held


@pytest.mark.parametrize("twin", BROKEN_ASKS, ids=lambda twin: twin.name)
async def test_a_fault_is_seen(twin: BrokenEngine) -> None:
    (seen,) = twin.seen_by
    await held("memory", seen)
    with twin.planted(), pytest.raises((Exception, pytest.fail.Exception)):
        await held("memory", seen)
    await held("memory", seen)
