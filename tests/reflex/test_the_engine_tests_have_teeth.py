"""Every fault that the engine must not have is seen by the test that is there for it."""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import Any

import pytest

from onefold.testing.broken.reflex_engines import BROKEN_ENGINES, BrokenEngine
from tests.reflex import ground as grounds
from tests.reflex.ground import STORES, ground

CASES = [(twin, seen) for twin in BROKEN_ENGINES for seen in twin.seen_by]
WHOSE = {"whose": "lumen"}  # what a test with parameters is given


async def held(store: str, seen: str) -> None:
    """Run the named test as pytest would."""
    file, _, name = seen.partition(".")
    test: Any = getattr(import_module(f"tests.reflex.{file}"), name)
    given = {word: WHOSE[word] for word in inspect.signature(test).parameters if word in WHOSE}
    if not inspect.iscoroutinefunction(test):
        test()
        return
    async with ground(store) as at:
        await test(at, **given)


@pytest.mark.parametrize("twin,seen", CASES, ids=[twin.name for twin, _ in CASES])
async def test_a_fault_is_seen(twin: BrokenEngine, seen: str, monkeypatch: pytest.MonkeyPatch) -> None:
    await held("memory", seen)
    monkeypatch.setattr(grounds, "LONGEST_S", 0.2)  # what never comes is not waited for
    with twin.planted(), pytest.raises((Exception, pytest.fail.Exception)):
        await held("memory", seen)
    monkeypatch.undo()
    await held("memory", seen)


def test_every_twin_is_one_of_its_kind() -> None:
    names = [twin.name for twin in BROKEN_ENGINES]
    assert len(set(names)) == len(names)
    assert set(STORES) >= {"memory"}
