"""Promise 5: whatever is outstanding has an alarm, also when it was owed while another thing was being confirmed."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from onefold import Actuator, Approved, Expired, Rejected, Run, Step, actuator, port
from onefold.actuators.carried import Ask
from onefold.testing import Killed, Stage
from tests.guarantees.conftest import Stages


def asking() -> Actuator[None, str]:
    @actuator
    async def ask(run: Run) -> str:
        """Ask somebody."""
        match await run.wait_for_approval("boss", "ok?", notify="boss", timeout="1 day"):
            case Approved():
                return "yes"
            case Rejected() | Expired():
                return "no"

    return ask


async def asked(stage: Stage) -> tuple[str, asyncio.Event]:
    """A run that waits for the boss, whose notice is still on its way until the event is set."""
    heard, gate = asyncio.Event(), asyncio.Event()

    @port.dedupes("notify")
    async def notify(step: Step, body: Ask) -> None:
        heard.set()
        await gate.wait()

    stage.host._core.ports["notify"] = notify
    run = (await stage.host.start("ask", {}, key="k", caller=stage.caller())).receipt.run_id
    await heard.wait()
    return run, gate


@pytest.mark.parametrize("apart", range(6))
@pytest.mark.parametrize("first", ["notice", "decision"])
async def test_a_decision_beside_the_notice_it_answers_is_acted_on_after_a_kill(
    stages: Stages, first: str, apart: int
) -> None:
    for hit in range(1, 5):
        stage = await stages(asking(), store_name=f"store {hit}")
        run, gate = await asked(stage)
        stage.kill_at("after-commit", hit=hit)
        if first == "notice":
            gate.set()
        else:
            asyncio.get_running_loop().call_later(0, spin, gate, apart)
        for _ in range(apart if first == "notice" else 0):
            await asyncio.sleep(0)
        with suppress(Killed, asyncio.TimeoutError):
            deciding = stage.host.approvals_decide(run, "boss", approve=True, by="boss", caller=stage.caller())
            await asyncio.wait_for(deciding, 0.2)
        await stage.let_die()
        stage.live_on()
        await stage.open()
        await stage.advance("10 seconds")
        receipt = await stage.host.receipt(run, caller=stage.caller())
        if receipt.status == "waiting":  # the decision was not committed: it is asked for again
            await stage.host.approvals_decide(run, "boss", approve=True, by="boss", caller=stage.caller())
            await stage.advance("10 seconds")
            receipt = await stage.host.receipt(run, caller=stage.caller())
        assert receipt.status == "done", (hit, receipt)


def spin(gate: asyncio.Event, apart: int) -> None:
    """Set the gate so many turns of the loop later."""
    if apart:
        asyncio.get_running_loop().call_soon(spin, gate, apart - 1)
    else:
        gate.set()
