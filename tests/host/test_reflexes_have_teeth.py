"""Each twin of an app's reflexes falls over the test that was written for its promise."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from onefold.terms.errors import UnknownName
from onefold.testing.broken.reflex_hosts import BROKEN_REFLEX_HOSTS, BrokenReflexHost
from tests.host import test_reflex_effects, test_reflex_parked, test_reflexes
from tests.serve import test_signals

PLACES = (test_reflexes, test_reflex_parked, test_reflex_effects, test_signals)


CAUGHT = (AssertionError, ValueError, UnknownName, pytest.fail.Exception)
"""What a test that found something raises: an assert, one row too many, another refusal, no refusal at all."""


def catcher(twin: BrokenReflexHost) -> Callable[..., Any]:
    """The test that must catch it."""
    found: Callable[..., Any] = next(getattr(place, twin.seen_by) for place in PLACES if hasattr(place, twin.seen_by))
    return found


def waits(twin: BrokenReflexHost) -> bool:
    return inspect.iscoroutinefunction(catcher(twin))


async def falls(twin: BrokenReflexHost, tmp_path: Path) -> None:
    """Run the test that must catch it. What it raises is what it found."""
    test = catcher(twin)
    names = inspect.signature(test).parameters
    if "door" in names:
        async with test_signals.served() as door:
            await test(door, "standard")
    else:
        await test(**({"tmp_path": tmp_path} if "tmp_path" in names else {}))


@pytest.mark.parametrize("twin", [one for one in BROKEN_REFLEX_HOSTS if waits(one)], ids=lambda twin: twin.name)
async def test_a_twin_is_caught(twin: BrokenReflexHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for place, part in twin.parts.items():
        monkeypatch.setattr(place, part)
    with pytest.raises(CAUGHT):
        await falls(twin, tmp_path)


@pytest.mark.parametrize("twin", [one for one in BROKEN_REFLEX_HOSTS if not waits(one)], ids=lambda twin: twin.name)
def test_a_twin_is_caught_without_await(twin: BrokenReflexHost, monkeypatch: pytest.MonkeyPatch) -> None:
    for place, part in twin.parts.items():
        monkeypatch.setattr(place, part)
    with pytest.raises(CAUGHT):
        catcher(twin)()
