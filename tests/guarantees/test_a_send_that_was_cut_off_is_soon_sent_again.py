"""Promise 5: what was on its way when the process died is due at once, and its alarm rings soon, unasked."""

from __future__ import annotations

import asyncio

import pytest

from onefold import Step, port
from onefold.testing import Stage
from tests.guarantees.conftest import Stages
from tests.guarantees.shop import Deposit, PayOut, Sent, Transfer, bank

SPINS = 20_000  # ten seconds, for a commit


class Slow:
    """A port that answers when it is let go."""

    def __init__(self) -> None:
        self.calls: list[int] = []
        self.begun = asyncio.Event()
        self.free = asyncio.Event()

    def port(self) -> port.Port[Transfer, Sent]:
        @port.dedupes("transfer")
        async def transfer(step: Step, body: Transfer) -> Sent:
            self.calls.append(step.attempt)
            self.begun.set()
            await self.free.wait()
            return Sent("ref")

        return transfer


async def under_way(stage: Stage, slow: Slow, ms: int) -> None:
    """Let time pass once something is being sent once more."""
    await slow.begun.wait()
    slow.begun.clear()
    for _ in range(0, ms, 500):
        stage.clock.step_to(stage.clock.now() + 500)
        for _ in range(SPINS):
            await asyncio.sleep(0.0005)
            if stage.host._core.driver.quiet and stage.host._core.node.idle:
                break


@pytest.mark.parametrize("ran, within", [(500, "1s"), (1_500, "2s"), (4_000, "4s"), (20_000, "5s")])
async def test_it_is_sent_again_no_later_than_it_had_been_on_its_way(stages: Stages, ran: int, within: str) -> None:
    slow = Slow()
    stage = await stages(bank, slow.port())
    await stage.host.deliver(bank, Deposit("d1", "a", 100), caller=stage.caller())
    paying = stage.host.deliver(bank, PayOut("p1", "a", 40, minutes=100_000), caller=stage.caller())
    await asyncio.gather(paying, under_way(stage, slow, ran))
    assert slow.calls == [1]
    await stage.crash()
    slow.free.set()
    assert slow.calls == [1]

    await stage.advance(within)

    assert slow.calls == [1, 1]


async def test_cut_off_again_and_again_it_is_not_put_off_further(stages: Stages) -> None:
    slow = Slow()
    stage = await stages(bank, slow.port())
    await stage.host.deliver(bank, Deposit("d1", "a", 100), caller=stage.caller())
    paying = stage.host.deliver(bank, PayOut("p1", "a", 40, minutes=100_000), caller=stage.caller())
    await asyncio.gather(paying, under_way(stage, slow, 1_500))
    for _ in range(5):
        await stage.crash()
        stage.clock.step_to(stage.clock.now() + 2_000)
        await under_way(stage, slow, 1_500)
    slow.free.set()
    await stage.settle()

    assert len(slow.calls) == 6
