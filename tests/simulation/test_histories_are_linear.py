"""Whatever disks and processes do, each actor's callers saw one history; and a host that is broken is seen to be."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from onefold.testing.broken.kernels import broken_kernel
from onefold.testing.broken.stores import BROKEN_STORES
from tests.contracts.backends import BACKENDS, Memory
from tests.simulation.callers import histories, not_linear

SEEDS = 300 if os.environ.get("ONEFOLD_DEEP") else 6
FAILING = (0.01, 0.03, 0.1)  # how often a disk does, by seed
SOON = 40  # seeds within which a twin is found out
TWINS = ("id-apart", "reply-early", "decline-early", "ids-freed")
STORES = ("leaves half a transaction", "calls an unknown commit refused", "answers before it is durable")


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "onefold")  # for these tests alone


@pytest.mark.parametrize("store", BACKENDS)
async def test_histories_of_concurrent_callers_are_linear(store: str, tmp_path: Path) -> None:
    met: dict[str, int] = {}
    for seed in range(SEEDS):
        seen = await histories(BACKENDS[store](tmp_path / str(seed)), seed, failing=FAILING[seed % 3])
        assert not_linear(seen) is None, f"seed {seed}: {not_linear(seen)}"
        assert seen.faults == [], f"seed {seed}"
        for what, count in seen.met.items():
            met[what] = met.get(what, 0) + count
    reached = {what for what, count in met.items() if count}
    assert {"killed", "evicted", "repeated", "tried again", "unknown", "refused"} <= reached, met


@pytest.mark.parametrize("twin", TWINS)
async def test_histories_from_a_broken_host_are_not(twin: str) -> None:
    for seed in range(SOON):
        if not_linear(await histories(Memory(), seed, fit=broken_kernel(twin).fit, failing=0.1)) is not None:
            return
    raise AssertionError(f"{SOON} histories, and {twin} was not seen")


@pytest.mark.parametrize("twin", STORES)
async def test_histories_over_a_broken_store_are_not(twin: str) -> None:
    (store,) = [one for one in BROKEN_STORES if one.name == twin]
    for seed in range(SOON):
        if not_linear(await histories(Memory(store.world), seed, failing=0.1)) is not None:
            return
    raise AssertionError(f"{SOON} histories, and {twin} was not seen")
