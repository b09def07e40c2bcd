"""Promises 5 and 9: what one actor raises, or waits for, holds up no alarm but its own."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from onefold import Answer, Decision, Module, Owed
from onefold.host.driver import BEAT_MS
from onefold.kernel.tables import TURN
from onefold.store.contract import Query
from onefold.terms.ids import ActorId
from onefold.testing import Stage
from tests.guarantees import shop
from tests.guarantees.conftest import Stages
from tests.guarantees.shop import Account, Deposit, Deposited, Fact, PayOut, Provider, Sent, Transfer
from tests.guarantees.test_memory_is_a_cache import append

BAD = 666


class Gone(BaseException):
    """What is no Exception."""


def bank_that_breaks(broken: list[bool], raised: type[BaseException] = KeyError) -> Module[Any, Any, Any, Any, Any]:
    """The bank, whose evolve raises on the history of an actor that began with BAD, once `broken` says so."""

    def evolve(account: Account, fact: Fact) -> Account:
        if broken and isinstance(fact, Deposited) and fact.amount == BAD:
            raise raised("evolve is broken")
        return shop.evolve(account, fact)

    return Module(
        "bank",
        initial=Account(),
        key=lambda event: event.account,
        decide=shop.decide,
        evolve=evolve,
        view=shop.view,
        on_answer=shop.on_answer,
        on_alarm=shop.on_alarm,
        wake=shop.wake,
    )


async def two_that_wait(stage: Stage, module: Module[Any, Any, Any, Any, Any]) -> None:
    """Two actors with a deadline in an hour; neither is in memory."""
    for who, amount in (("bad", BAD), ("good", 10)):
        await stage.host.deliver(module, Deposit("d1", who, amount), caller=stage.caller())
        await stage.host.deliver(module, PayOut("p1", who, 5), caller=stage.caller())
    await stage.settle()
    for who in ("bad", "good"):
        assert stage.host._core.node.evict(ActorId("bank", None, who))


async def released(stage: Stage, module: Module[Any, Any, Any, Any, Any]) -> None:
    assert (await stage.host.read(module, "good", caller=stage.caller())).last == "too late"
    await stage.host.deliver(module, Deposit("d2", "later", 5), caller=stage.caller())
    await stage.host.deliver(module, PayOut("p2", "later", 5), caller=stage.caller())
    await stage.advance("61 minutes")
    assert (await stage.host.read(module, "later", caller=stage.caller())).last == "too late"


@pytest.mark.parametrize("raised", [KeyError, Gone, asyncio.CancelledError])
async def test_an_actor_whose_code_raises_does_not_stop_the_clock(
    stages: Stages, provider: Provider, caplog: pytest.LogCaptureFixture, raised: type[BaseException]
) -> None:
    broken: list[bool] = []
    module = bank_that_breaks(broken, raised)
    provider.failing = [TimeoutError("down")] * 100
    stage = await stages(module, provider.dedupes())
    await two_that_wait(stage, module)
    broken.append(True)
    caplog.set_level(logging.CRITICAL)
    await stage.advance("61 minutes")
    await released(stage, module)


async def test_an_actor_that_waits_for_other_code_stands_in_front_of_nobody(
    stages: Stages, provider: Provider, caplog: pytest.LogCaptureFixture
) -> None:
    module = bank_that_breaks([])
    provider.failing = [TimeoutError("down")] * 100
    stage = await stages(module, provider.dedupes())
    await two_that_wait(stage, module)
    space = await stage.host.space("main")
    (rows,) = await space.look(Query(TURN))
    last = next(row for row in reversed(rows) if row[1] == rows[0][1])
    await append(
        space,
        TURN,
        [
            (
                space.mint(TURN),
                last[1],
                9,
                last[0],
                "d/x",
                b"",
                b"null",
                b'[{"type":"OfTomorrow"}]',
                None,
                last[9],
                1,
                None,
            )
        ],
    )
    caplog.set_level(logging.WARNING)
    await stage.advance("61 minutes")
    said = [one for one in caplog.records if "waits" in one.getMessage()]
    assert 1 <= len(said) <= 61 * 60_000 // BEAT_MS + 2  # once a beat, not twice a second
    await released(stage, module)


async def test_whoever_stands_behind_it_is_rung_at_their_instant(
    stages: Stages, provider: Provider, caplog: pytest.LogCaptureFixture
) -> None:
    """Not at the next look at the broken one, half a second later."""
    broken: list[bool] = []
    module = bank_that_breaks(broken)
    provider.failing = [TimeoutError("down")] * 100
    stage = await stages(module, provider.dedupes())
    began = stage.clock.moment
    for who, amount in (("bad", BAD), ("good", 10)):
        await stage.host.deliver(module, Deposit("d1", who, amount), caller=stage.caller())
        await stage.host.deliver(module, PayOut("p1", who, 5), caller=stage.caller())
        await stage.advance("300 ms")
        assert stage.host._core.node.evict(ActorId("bank", None, who))
    broken.append(True)
    caplog.set_level(logging.CRITICAL)
    await stage.advance("61 minutes")
    told = await stage.host.history(module, "good", caller=stage.caller())
    assert told[-1].at == began + timedelta(minutes=60, milliseconds=300)


# --- an alarm that was given up on ------------------------------------------------------------------


@dataclass(frozen=True)
class Desk:
    until: datetime | None = None
    paid: tuple[str, ...] = ()


@dataclass(frozen=True)
class Arm:
    id: str


@dataclass(frozen=True)
class Pay:
    id: str


@dataclass(frozen=True)
class Armed:
    until: datetime


@dataclass(frozen=True)
class Paid:
    key: str


def decide(desk: Desk, event: Arm | Pay, now: datetime) -> Decision[Armed | Paid, str]:
    if isinstance(event, Arm):
        return Decision(facts=[Armed(now)], reply="armed")
    return Decision(owed=[Owed("transfer", event.id, Transfer(1))], reply="paying")


def heard(desk: Desk, answer: Answer[Sent], now: datetime) -> Decision[Armed | Paid, None]:
    return Decision(facts=[Paid(answer.key)])


def ring(desk: Desk, now: datetime) -> Decision[Armed | Paid, None]:
    raise RuntimeError("the alarm is broken")


def evolve(desk: Desk, fact: Armed | Paid) -> Desk:
    return replace(desk, until=fact.until) if isinstance(fact, Armed) else replace(desk, paid=(*desk.paid, fact.key))


def view(desk: Desk) -> Desk:
    return desk


async def test_what_is_owed_beside_a_parked_alarm_is_tried_again(stages: Stages, provider: Provider) -> None:
    desk = Module(
        "desk",
        initial=Desk(),
        key=lambda event: "one",
        decide=decide,
        evolve=evolve,
        view=view,
        on_answer=heard,
        on_alarm=ring,
        wake=lambda state: state.until,
    )
    stage = await stages(desk, provider.dedupes())
    caller = stage.caller()
    await stage.host.deliver(desk, Arm("a1"), caller=caller)
    await stage.advance("6 hours")
    assert [item.kind for item in await stage.host.parked_list(caller=caller)] == ["alarm"]

    provider.failing = [TimeoutError("down")]
    await stage.host.deliver(desk, Pay("p1"), caller=caller)
    await stage.advance("6 hours")
    assert (await stage.host.read(desk, "one", caller=caller)).paid == ("p1",)
    assert len(provider.calls) == 2
    assert [item.kind for item in await stage.host.parked_list(caller=caller)] == ["alarm"]
