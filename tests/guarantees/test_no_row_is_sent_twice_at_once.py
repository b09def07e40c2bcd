"""Promise 3: a row that is on its way is not sent beside itself, also when its actor was read anew meanwhile."""

from __future__ import annotations

import asyncio
import errno

import pytest

from onefold import Step, port
from onefold.terms.errors import StoreUnavailable
from onefold.testing import Stage
from tests.guarantees.conftest import Stages
from tests.guarantees.shop import Deposit, PayOut, Sent, Transfer, bank


async def pass_by(stage: Stage, seconds: int) -> None:
    for _ in range(seconds):
        stage.clock.step_to(stage.clock.now() + 1_000)
        await stage.turns(50)


@pytest.mark.parametrize("fails", [False, True])
async def test_a_commit_that_failed_does_not_send_again_what_is_on_its_way(stages: Stages, fails: bool) -> None:
    begun: list[int] = []
    gate = asyncio.Event()

    @port.dedupes("transfer")
    async def transfer(step: Step, body: Transfer) -> Sent:
        begun.append(step.attempt)
        await gate.wait()
        if fails and len(begun) == 1:
            raise TimeoutError("lost")
        return Sent("paid")

    stage = await stages(bank, transfer)
    caller = stage.caller()
    await stage.host.deliver(bank, Deposit("d1", "a", 10), caller=caller)
    await stage.host.deliver(bank, PayOut("p1", "a", 5, minutes=100_000), caller=caller)
    await pass_by(stage, 1)

    def fail(name: str) -> None:
        if name == "before-commit":
            stage.live_on()
            raise OSError(errno.EIO, "Input/output error")

    stage.failpoint = fail
    with pytest.raises(StoreUnavailable):
        await stage.host.deliver(bank, Deposit("d2", "a", 1), caller=caller)
    await pass_by(stage, 20)
    assert len(begun) == 1

    gate.set()
    await stage.advance("1 minute")
    assert len(begun) == (2 if fails else 1)
    assert (await stage.host.read(bank, "a", caller=caller)).last == "paid"
