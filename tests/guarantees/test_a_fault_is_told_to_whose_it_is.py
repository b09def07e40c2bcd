"""What does not fit its own annotation is the program's fault: named, logged, and never the caller's 422."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import httpx2
import pytest
from pydantic import BaseModel

from onefold import Answer, Decision, Module, Owed, Run, Step, actuator, port, testing
from onefold.serve import asgi_app
from onefold.terms.errors import DecideFailed, RunFailed

MANY: Any = "many"
NAIVE = datetime(2100, 1, 1)  # noqa: DTZ001 - the fault


@dataclass(frozen=True)
class Sell:
    id: str
    way: str


@dataclass(frozen=True)
class Sold:
    count: int


@dataclass(frozen=True)
class Other:
    count: int


@dataclass(frozen=True)
class Parcel:
    kilos: int


async def ship(step: Step, parcel: Parcel) -> str:
    return "sent"


SHIP = port.dedupes("ship")(ship)


def decide(state: int, event: Sell, now: datetime) -> Decision[Sold, int]:
    anything: Any = {
        "reply": Decision(facts=[Sold(1)], reply="nine"),
        "fact": Decision(facts=[Other(1)], reply=1),
        "field": Decision(facts=[Sold(MANY)], reply=1),
        "owed": Decision(facts=[], owed=[Owed("ship", key=event.id, body=Parcel(MANY))], reply=1),
        "owed class": Decision(facts=[], owed=[Owed("ship", key=event.id, body=event)], reply=1),
        "owed at": Decision(facts=[], owed=[Owed("ship", key=event.id, body=Parcel(1), at=NAIVE)], reply=1),
        "nothing": None,
    }
    if event.way == "refuse":
        timedelta(1) / 0
    given: Decision[Sold, int] = anything.get(event.way, Decision(facts=[Sold(1)], reply=1))
    return given


def evolve(state: int, fact: Sold) -> int:
    return state + fact.count


def view(state: int) -> int:
    return state


def stock(**more: Any) -> Module[Any, Any, Any, Any, Any]:
    return Module(
        **{
            "name": "stock",
            "initial": 0,
            "key": lambda event: "a",
            "decide": decide,
            "evolve": evolve,
            "view": view,
            **more,
        }
    )


FAULTS = {
    "reply": "Module 'stock' failed on 'a': decide gave the reply, which does not fit its annotation int: must be a whole",
    "fact": "decide gave a fact, which does not fit its annotation Sold: ",
    "field": "decide gave a fact, which does not fit its annotation Sold: count: must be a whole number; sent many.",
    "owed": "decide gave what it owes to 'ship', which does not fit its annotation Parcel: kilos: must be a whole number",
    "owed class": "decide gave what it owes to 'ship', which does not fit its annotation Parcel: ",
    "owed at": "decide gave what it owes to 'ship', which does not fit its annotation Parcel: instant: has no time zone",
    "nothing": "Module 'stock' raised on 'a': TypeError: decide gave None, and must give Decision(",
}


@pytest.mark.parametrize("way", FAULTS)
def test_what_decide_gives_and_does_not_fit_names_module_function_and_field(
    way: str, caplog: pytest.LogCaptureFixture
) -> None:
    part = stock()
    with testing.open(part, SHIP) as app:
        with pytest.raises(DecideFailed) as failed:
            app.deliver(part, Sell("1", way))
        assert FAULTS[way] in str(failed.value)
        assert "Nothing was started" not in str(failed.value)
        assert app.deliver(part, Sell("1", "fine")) == 1
    assert [line for line in caplog.messages if str(failed.value) in line and "(test_a_fault_is_told" in line]


async def test_over_http_it_is_500_and_no_422() -> None:
    part = stock()
    async with testing.open(part, SHIP) as app:
        transport = httpx2.ASGITransport(app=asgi_app(app.host))
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:8600") as client:
            for way in FAULTS:
                answer = await client.post("/modules/stock/events", json={"type": "Sell", "id": "1", "way": way})
                assert (answer.status_code, answer.json()["code"]) == (500, "decide_failed"), way
                assert "errors" not in answer.json()
            wrong = await client.post("/modules/stock/events", json={"type": "Sell", "id": "1", "way": 5})
            assert (wrong.status_code, wrong.json()["code"]) == (422, "bad_arguments")
            raised = await client.post("/modules/stock/events", json={"type": "Sell", "id": "1", "way": "refuse"})
            assert raised.json()["code"] == "decide_failed"


def bad_view(state: int) -> str:
    return state  # type: ignore[return-value]


async def test_a_view_that_does_not_fit_is_the_modules_fault_too() -> None:
    part = stock(view=bad_view)
    async with testing.open(part, SHIP) as app:
        await app.deliver(part, Sell("1", "fine"))
        transport = httpx2.ASGITransport(app=asgi_app(app.host))
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:8600") as client:
            answer = await client.get("/modules/stock/a")
    assert answer.status_code == 500
    assert "view gave a view, which does not fit its annotation str: must be text" in answer.json()["detail"]


def hear(state: int, answer: Answer[int], now: datetime) -> Decision[Sold, Any]:
    return Decision(reply=None)


def owing(state: int, event: Sell, now: datetime) -> Decision[Sold, int]:
    return Decision(facts=[Sold(1)], owed=[Owed("ship", key=event.id, body=Parcel(1))], reply=1)


async def test_an_answer_that_does_not_fit_says_whose_it_is(caplog: pytest.LogCaptureFixture) -> None:
    part = stock(decide=owing, on_answer=hear)
    async with testing.open(part, SHIP) as app:
        await app.deliver(part, Sell("1", "fine"))
        for _ in range(30):
            await app.clock.advance("15 minutes")
        [item] = await app.parked.list()
        await app.parked.drop(item.id, "it was sent")
    assert "the answer of port 'ship' does not fit Answer[int] of on_answer: must be a whole number" in item.cause


class Work(BaseModel):
    id: str


def weigh() -> str:
    return 0  # type: ignore[return-value]


@actuator
async def weighs(run: Run, work: Work) -> str:
    return await run.step(weigh)()


@actuator
async def gives(run: Run, work: Work) -> int:
    return "five"  # type: ignore[return-value]


def test_a_steps_result_that_does_not_fit_names_the_step_and_its_annotation() -> None:
    with testing.open(weighs, gives) as app:
        with pytest.raises(RunFailed) as failed:
            app.call(weighs, Work(id="1"))
        assert "UnfitResult: step 'weigh' gave what does not fit its annotation str: must be text; sent 0" in str(
            failed.value
        )
        with pytest.raises(RunFailed) as failed:
            app.call(gives, Work(id="1"))
        assert "actuator 'gives' gave what does not fit its annotation int: must be a whole number" in str(failed.value)
        assert "Nothing was started" not in str(failed.value)
