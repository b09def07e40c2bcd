"""Each design that was wrong once is tried on the scenario that names its promise, and falls."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from onefold.testing.broken.reflex_twins import BROKEN_STAGES, BrokenStages
from onefold.testing.broken.reflexes import Stages
from tests.reflex import test_claim, test_crashes, test_explain, test_overdue, test_record, test_retention
from tests.reflex.ledger import ledger_on

MODULES = (test_claim, test_crashes, test_explain, test_overdue, test_record, test_retention)
SCENARIOS: dict[str, tuple[Callable[..., Any], Any]] = {
    name: (scenario, getattr(module, "prepare", None))
    for module in MODULES
    for name, scenario in vars(module).items()
    if name.startswith("test_")
}
FALLS = (AssertionError, ValueError, pytest.fail.Exception)  # a row that is not there cannot be taken apart either
FIRST = {"together": False, "state": "waiting"}  # the parameter of a scenario that has some


async def held(stages: Stages, name: str, place: Path) -> None:
    """The scenario over these stages."""
    scenario, prepare = SCENARIOS[name]
    wanted = list(inspect.signature(scenario).parameters)
    if "stages" in wanted:
        await scenario(stages)
        return
    async with ledger_on("memory", place, stages) as ledger:
        await prepare(ledger)
        await scenario(ledger, *(FIRST[parameter] for parameter in wanted[1:]))


@pytest.mark.parametrize("twin", BROKEN_STAGES, ids=lambda twin: twin.make.__name__)
async def test_a_twin_falls_over_the_promise_it_breaks(
    twin: BrokenStages, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(test_crashes, "STORES", ("memory",))  # a twin is no store
    await held(Stages(), twin.caught_by, place)
    with pytest.raises(FALLS):
        await held(twin.make(), twin.caught_by, place)
