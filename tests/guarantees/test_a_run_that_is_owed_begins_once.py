"""A module owes a run, and an event to it, like anything else: once each, under its own principal, whatever is killed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from onefold import Answer, Decision, Module, Owed, Run, actuator
from onefold.testing import Stage, every_crash
from tests.guarantees.conftest import Stages


class Order(BaseModel):
    number: str
    amount: int = 1


class Go(BaseModel):
    how: str


@actuator(tool=False)
async def ship(run: Run, order: Order) -> str:
    """Ship an order, once somebody says how."""
    go = await run.wait_for_event(Go)
    return f"{order.number} by {go.how}"


@actuator(tool=False)
async def tidy(run: Run) -> str:
    """Takes nothing."""
    return "tidy"


@dataclass(frozen=True)
class Placed:
    id: str
    shop: str
    body: dict[str, Any]
    port: str = "call.ship"


@dataclass(frozen=True)
class Said:
    id: str
    shop: str
    how: str
    key: str | None = None


@dataclass(frozen=True)
class Shipping:
    run: str


@dataclass(frozen=True)
class Told:
    key: str


@dataclass(frozen=True)
class Shop:
    runs: tuple[str, ...] = ()
    told: tuple[str, ...] = ()


def decide(shop: Shop, event: Placed | Said, now: datetime) -> Decision[Shipping | Told, None]:
    if isinstance(event, Placed):
        body = None if event.port == "call.tidy" else Order(**event.body)
        return Decision(owed=[Owed(event.port, key="order", body=body)], reply=None)
    to = {"run": shop.runs[0]} if event.key is None else {"key": event.key}
    said = {**to, "event": "Go", "body": {"how": event.how}}
    return Decision(owed=[Owed("event.ship", key=event.id, body=said)], reply=None)


def on_answer(shop: Shop, answer: Answer[str | None], now: datetime) -> Decision[Shipping | Told, None]:
    fact = Told(answer.key) if answer.body is None else Shipping(answer.body)
    return Decision(facts=[fact], reply=None)


def evolve(shop: Shop, fact: Shipping | Told) -> Shop:
    if isinstance(fact, Told):
        return replace(shop, told=(*shop.told, fact.key))
    return replace(shop, runs=(*shop.runs, fact.run))


def view(shop: Shop) -> Shop:
    return shop


shops: Module[Shop, Placed | Said, Shipping | Told, None, Shop] = Module(
    "shops", initial=Shop(), key=lambda event: event.shop, decide=decide, evolve=evolve, view=view, on_answer=on_answer
)


async def shop_of(stage: Stage, key: str = "a", principal: str | None = None) -> Shop:
    return await stage.host.read(shops, key, caller=stage.caller(principal))  # type: ignore[no-any-return]


async def deliver(stage: Stage, event: Placed | Said, principal: str | None = None) -> None:
    await stage.host.deliver(shops, event, caller=stage.caller(principal))
    await stage.settle()


async def runs(stage: Stage) -> list[str]:
    return sorted(each.run_id for each in (await stage.host.runs_list(caller=stage.caller())).items)


async def result(stage: Stage, run: str) -> object:
    shown = (await stage.host.receipt(run, caller=stage.caller())).to_json()
    return shown["result"] if shown["status"] == "done" else shown


async def test_a_run_is_begun_and_told_by_what_a_module_owes(stages: Stages) -> None:
    stage = await stages(shops, ship)
    await deliver(stage, Placed("p", "a", {"number": "7"}))
    (run,) = (await shop_of(stage)).runs
    assert await runs(stage) == [run], "its answer comes when it is begun, and not when it has ended"
    assert (await stage.host.receipt(run, caller=stage.caller())).status == "waiting"
    await deliver(stage, Said("s", "a", "bike"))
    assert (await shop_of(stage)).told == ("s",)
    assert await result(stage, run) == "7 by bike"


async def test_two_actors_that_owe_one_name_have_a_run_each(stages: Stages) -> None:
    stage = await stages(shops, ship)
    await deliver(stage, Placed("p", "a", {"number": "7"}))
    await deliver(stage, Placed("p", "b", {"number": "8"}))
    await deliver(stage, Placed("p", "a", {"number": "9"}), principal="studio")
    found = [*(await shop_of(stage)).runs, *(await shop_of(stage, "b")).runs]
    other = (await shop_of(stage, "a", "studio")).runs
    assert sorted({*found, *other}) == await runs(stage)
    assert len(await runs(stage)) == 3
    own = [each.run_id for each in (await stage.host.runs_list(caller=stage.caller("studio", rights=["read"]))).items]
    assert own == list(other), "what is owed under a principal runs under it"


async def test_a_run_that_was_begun_by_somebody_else_is_told_by_its_key(stages: Stages) -> None:
    stage = await stages(shops, ship)
    started = await stage.host.start("ship", {"number": "7"}, key="order-7", caller=stage.caller())
    await deliver(stage, Said("s", "a", "ship", key="order-7"))
    assert await result(stage, started.receipt.run_id) == "7 by ship"


async def test_an_actuator_that_takes_nothing_is_called_with_nothing(stages: Stages) -> None:
    stage = await stages(shops, tidy)
    await deliver(stage, Placed("p", "a", {}, port="call.tidy"))
    (run,) = (await shop_of(stage)).runs
    assert await result(stage, run) == "tidy"


async def test_an_event_to_a_run_that_is_not_there_is_tried_again_and_parked_with_its_cause(stages: Stages) -> None:
    stage = await stages(shops, ship)
    await deliver(stage, Said("s", "a", "bike", key="nobody"))
    await stage.advance("6 hours")
    (item,) = await stage.host.parked_list(caller=stage.caller())
    assert "event.ship" in item.cause
    assert "No run" in item.cause
    assert (await shop_of(stage)).told == ()


async def test_a_row_for_an_actuator_that_this_app_does_not_have_waits_for_it(stages: Stages) -> None:
    stage = await stages(shops)
    await deliver(stage, Placed("p", "a", {"number": "7"}))
    (item,) = await stage.host.parked_list(caller=stage.caller())
    assert (item.kind, "call.ship" in item.cause) == ("port", True)


@pytest.mark.parametrize("on_disk", [False, True], ids=["memory", "sqlite"])
def test_killed_anywhere_it_begins_once_and_hears_once(on_disk: bool, tmp_path: Path) -> None:
    crashed = 0
    for app in every_crash(shops, ship, store=tmp_path if on_disk else "memory:"):
        for event in (Placed("p", "a", {"number": "7"}), Said("s", "a", "bike")):
            app.deliver(shops, event)
            app.settle()
            app.clock.advance("1 minute")
        shop = app.read(shops, "a")
        assert (len(shop.runs), shop.told) == (1, ("s",))
        (receipt,) = app.runs.list().items
        assert (receipt.run_id, app.receipt(receipt.run_id).result()) == (shop.runs[0], "7 by bike")
        crashed += len(app.crashed)
    assert crashed > 10
