"""Whatever is done to it, in whatever order, the real host keeps to a model of plain dicts; and the machine that
tries finds every fault that was planted. Deeper with ONEFOLD_DEEP=1."""

from __future__ import annotations

import logging
import os
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from onefold.testing.broken.kernels import BROKEN_KERNELS, BrokenKernel
from tests.simulation.cases import CASES
from tests.simulation.machine import Machine
from tests.simulation.model import Wrong

DEEP = bool(os.environ.get("ONEFOLD_DEEP"))
EXAMPLES = {"memory": 5_000, "sqlite": 2_000, "postgres": 300} if DEEP else {"memory": 60, "sqlite": 20, "postgres": 4}
STEPS = 60 if DEEP else 25
BOUND = 400  # examples until a planted fault is found; any is found within sixty
QUIET: dict[str, Any] = {"deadline": None, "suppress_health_check": list(HealthCheck), "report_multiple_bugs": False}


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    """What fails on purpose is not told a thousand times."""
    caplog.set_level(logging.CRITICAL, logger="onefold")


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def store(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def machine(store: str, twin: BrokenKernel | None = None) -> type[Machine]:
    fit = None if twin is None else staticmethod(twin.fit)
    return type("Machine", (Machine,), {"store": store, "fit": fit})


@pytest.mark.timeout(100_000 if DEEP else 600)  # what is found is first made small
def test_the_host_keeps_to_the_model(store: str) -> None:
    run_state_machine_as_test(
        machine(store), settings=settings(max_examples=EXAMPLES[store], stateful_step_count=STEPS, **QUIET)
    )


@pytest.mark.parametrize("case", CASES)
def test_what_was_found_once_stays_mended(store: str, case: str) -> None:
    state = machine(store)()
    try:
        CASES[case](state)
    finally:
        state.teardown()
    assert not state.fallen


@pytest.mark.parametrize("twin", BROKEN_KERNELS, ids=lambda twin: twin.name)
def test_the_machine_finds_a_planted_fault(twin: BrokenKernel) -> None:
    bounded = settings(
        max_examples=BOUND,
        stateful_step_count=30,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        **QUIET,
    )
    with pytest.raises(Wrong):
        run_state_machine_as_test(machine("memory", twin), settings=bounded)
