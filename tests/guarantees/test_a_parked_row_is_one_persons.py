"""Promises 3 and 6: two people at one parked row move it once, and no key ever leaves with two contents."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from onefold import Decision, Module, Owed, Step, port
from onefold.host import parked
from onefold.host.caller import Caller
from onefold.terms.errors import KeyConflict, NotFound
from onefold.testing import Stage
from tests.guarantees import shop
from tests.guarantees.conftest import Stages
from tests.guarantees.shop import (
    Accepted,
    Account,
    Deposit,
    Deposited,
    Fact,
    PayOut,
    Provider,
    Reply,
    Sent,
    Transfer,
    bank,
)


class Till:
    """A port that can neither dedupe nor be asked, and takes its time."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.gate = asyncio.Event()

    def port(self) -> port.Port[Transfer, Sent]:
        @port.neither("transfer")
        async def transfer(step: Step, body: Transfer) -> Sent:
            self.begun.append(step.key)
            await self.gate.wait()
            return Sent("paid")

        return transfer


async def uncertain(stage: Stage, till: Till) -> str:
    """The id of a payment that was cut off by a kill."""
    caller = stage.caller()
    await stage.host.deliver(bank, Deposit("d1", "a", 10), caller=caller)
    await stage.host.deliver(bank, PayOut("p1", "a", 5, minutes=100_000), caller=caller)
    await stage.turns(50)
    assert len(till.begun) == 1
    await stage.crash()
    await stage.advance("1 minute")
    (item,) = await stage.host.parked_list(caller=caller)
    assert item.kind == "uncertain"
    till.begun.clear()
    return item.id


@pytest.mark.parametrize("second", ["retry", "drop"])
async def test_a_second_person_moves_nothing_that_the_first_has_taken_up(
    stages: Stages, monkeypatch: pytest.MonkeyPatch, second: str
) -> None:
    till = Till()
    stage = await stages(bank, till.port())
    caller = stage.caller()
    id = await uncertain(stage, till)
    which, hold = stage.host._which, asyncio.Event()

    async def late(id: str, caller: Caller) -> Any:
        found = await which(id, caller)
        await hold.wait()
        return found

    with monkeypatch.context() as patched:
        patched.setattr(stage.host, "_which", late)
        slow = asyncio.create_task(
            stage.host.parked_retry(id, caller=caller)
            if second == "retry"
            else stage.host.parked_drop(id, reason="no", caller=caller)
        )
        await stage.turns(50)
    await stage.host.parked_retry(id, caller=caller)
    await stage.turns(50)
    hold.set()
    (told,) = await asyncio.gather(slow, return_exceptions=True)
    await stage.turns(50)

    assert isinstance(told, NotFound if second == "drop" else type(None))
    assert len(till.begun) == 1
    till.gate.set()
    await stage.settle()
    assert (await stage.host.read(bank, "a", caller=caller)).last == "paid"


async def test_a_row_that_was_dropped_never_comes_back(stages: Stages) -> None:
    till = Till()
    stage = await stages(bank, till.port())
    caller = stage.caller()
    id = await uncertain(stage, till)
    told = await asyncio.gather(
        stage.host.parked_drop(id, reason="no", caller=caller),
        stage.host.parked_retry(id, caller=caller),
        return_exceptions=True,
    )
    assert told[0] is None
    await stage.settle()
    await stage.crash()
    await stage.advance("1 hour")
    assert till.begun == []
    assert (await stage.host.read(bank, "a", caller=caller)).balance == 10


async def test_what_is_no_number_is_no_parked_item(stages: Stages, provider: Provider) -> None:
    stage = await stages(bank, provider.dedupes())
    for number in ("\u00b2", "9" * 30, "", "-1"):
        with pytest.raises(NotFound):
            await stage.host.parked_retry(f"owed.main.{number}", caller=stage.caller())


@pytest.mark.parametrize("amounts", [(1, 1), (1, 500)])
async def test_one_decision_owes_a_key_once(stages: Stages, provider: Provider, amounts: tuple[int, int]) -> None:
    def decide(account: Account, event: PayOut, now: datetime) -> Decision[Fact, Reply]:
        owed = [Owed("transfer", event.id, Transfer(amount)) for amount in amounts]
        return Decision(facts=[Deposited(1)], owed=owed, reply=Accepted(1))

    twice = Module(
        "twice", initial=Account(), key=lambda event: event.account, decide=decide, evolve=shop.evolve, view=shop.view
    )
    stage = await stages(twice, provider.dedupes())
    if amounts[0] == amounts[1]:
        assert await stage.host.deliver(twice, PayOut("p1", "a", 1), caller=stage.caller()) == Accepted(1)
    else:
        with pytest.raises(KeyConflict):
            await stage.host.deliver(twice, PayOut("p1", "a", 1), caller=stage.caller())
    await stage.settle()
    assert len(provider.calls) == (1 if amounts[0] == amounts[1] else 0)


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """A list of three is a long one."""
    monkeypatch.setattr("onefold.host.parked.LISTED", 3)
    for name in ("_STOPPED", "_FALLING", "_RUNS"):
        monkeypatch.setattr(f"onefold.host.parked.{name}", replace(getattr(parked, name), limit=3))


async def waiting(stage: Stage, principal: str | None, count: int) -> None:
    """So many payments of one principal, for a port that no part provides."""
    caller = stage.caller(principal)
    for n in range(count):
        await stage.host.deliver(bank, Deposit(f"d{n}", f"{n}", 9), caller=caller)
        await stage.host.deliver(bank, PayOut(f"p{n}", f"{n}", 1, minutes=100_000), caller=caller)
    await stage.settle()


@pytest.mark.usefixtures("few")
async def test_what_others_have_parked_hides_nothing(stages: Stages) -> None:
    stage = await stages(bank)
    await waiting(stage, "b", 4)
    await waiting(stage, "a", 1)
    (mine,) = await stage.host.parked_list(caller=stage.caller("a", rights=("read",)))
    told = await stage.host.parked_show(mine.id, caller=stage.caller("a", rights=("read",)))
    assert (told.principal, told.owed) == ("a", "p0")
    everything = stage.caller("b")
    assert mine.id not in [item.id for item in await stage.host.parked_list(caller=everything)]  # a long list ends
    assert (await stage.host.parked_show(mine.id, caller=everything)).principal == "a"
    with pytest.raises(NotFound):
        await stage.host.parked_show(mine.id, caller=stage.caller("b", rights=("read",)))
    await stage.host.parked_drop(mine.id, reason="no", caller=everything)
    with pytest.raises(NotFound):
        await stage.host.parked_show(mine.id, caller=everything)
