"""Invariant 7: whatever depends on time in a module is a wake; a limit nobody measured is no default."""

from __future__ import annotations

import asyncio

import pytest

from onefold import Step, port
from onefold.fence.checking import check
from onefold.fence.words import Source
from onefold.machine import from_machine
from onefold.terms.errors import LoadRefused
from onefold.testing.host_suite.vault import VAULT, Act, Parcel, Slip
from tests.guarantees.conftest import Stages

HEAD = """\
import asyncio
import threading
import time
from onefold import Decision, Module

def decide(state, event, now):
    {}
    return Decision()

m = Module("m", initial=0, key=lambda e: e.k, decide=decide, evolve=lambda s, f: s, view=lambda s: s)
"""


def found_in(line: str) -> list[int]:
    """The lines that may not stand where they stand, once `line` is line 7 of a module's decision."""
    found = check([Source("m.py", HEAD.format(line).encode())])
    return [finding.line for finding in found if finding.rule != "no-snapshot"]


@pytest.mark.parametrize(
    "line", ["time.sleep(5)", "asyncio.timeout(5)", "threading.Timer(5, print).start()", "late = time.time() + 5"]
)
def test_a_timeout_in_a_module_is_found(line: str) -> None:
    assert found_in("pass") == []
    assert found_in(line) == [7]


@pytest.mark.parametrize("delayed", [{"after": {"1000": "late"}}, {"invoke": {"src": "x", "timeout": 5}}])
def test_a_chart_with_a_delay_is_refused_at_load(delayed: dict[str, object]) -> None:
    chart = {"initial": "on", "states": {"on": delayed, "late": {}}}
    with pytest.raises(LoadRefused):
        from_machine("chart", chart, context=0, key=_which)


def _which(event: Act) -> str:
    return event.vault


async def test_a_send_may_take_days_and_is_neither_cut_off_nor_sent_beside_itself(stages: Stages) -> None:
    begun: list[int] = []
    gate = asyncio.Event()

    @port.dedupes("courier")
    async def courier(step: Step, body: Parcel) -> Slip:
        begun.append(step.attempt)
        await gate.wait()
        return Slip("at last")

    stage = await stages(VAULT, courier)
    await stage.host.deliver(VAULT, Act("1", owe=("=",)), caller=stage.caller())
    for _ in range(20):
        stage.clock.step_to(stage.clock.now() + 4 * 3_600_000)
        await stage.turns(60)
    assert begun == [1]
    gate.set()
    await stage.settle()
    assert (await stage.host.read(VAULT, "a", caller=stage.caller())).heard == ("1: at last",)
