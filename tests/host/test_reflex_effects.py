"""The effects that exist by themselves: under the task's own key and principal, once, whatever a retry's input says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel

from onefold import Run, Step, actuator, port, testing
from onefold.errors import LoadRefused
from onefold.reflex import Reflexes, Signal
from tests.host.automated import reflex, till


class Order(BaseModel):
    order: str


class Signed(BaseModel):
    by: str


@actuator(tool=False, migrations=["CREATE TABLE IF NOT EXISTS shipped (id TEXT)", "CREATE INDEX one ON shipped(id)"])
async def ship(run: Run, order: Order) -> str:
    """Ship an order once it is signed for."""
    return f"{order.order} signed by {(await run.wait_for_event(Signed)).by}"


@dataclass(frozen=True)
class Letter:
    to: str


asked: list[tuple[str, int, str]] = []


async def find(step: Step, body: Letter) -> str | None:
    return f"found {body.to}" if asked else None


@port.lookup("post", find=find)
async def post(step: Step, body: Letter) -> str:
    asked.append((step.key, step.attempt, body.to))
    if len(asked) == 1:
        raise ConnectionError("the answer was lost")
    return f"sent {body.to}"


@port.dedupes("print")  # type: ignore[arg-type]  # a plain function, which runs in a thread
def prints(step: Step, body: Letter) -> str:
    return f"printed {body.to} under {step.key.rpartition('/')[2]}"


@port.neither("shout")
async def shout(step: Step, body: Letter) -> None: ...


GO = {"fact": {"signal": "go"}}
PATIENT = {"retry": {"max": 3, "backoff": "fixed", "baseMs": 1000}}


def doing(effect: str, input: Any, **more: Any) -> dict[str, Any]:
    return reflex("does", on=GO, effect={"name": effect, "input": input}, policy=PATIENT, **more)


def outputs(app: Any) -> list[Any]:
    return [task.output for run in app.reflexes.runs("does").items for task in app.reflexes.tasks(run.id).items]


@pytest.fixture(autouse=True)
def fresh() -> None:
    asked.clear()


def test_an_event_is_delivered_once_also_when_the_process_dies_after_the_fold() -> None:
    event = {"type": "Sell", "shop": "north", "cents": {"$": "fact.payload.cents"}}
    late = {**event, "cents": {"$": "timestamp(now).getSeconds() + 7"}}  # another on each attempt
    for input in (event, late):
        for app in testing.every_crash(till, Reflexes([doing("deliver.till", input)])):
            app.ingest(Signal("go", {"cents": 7}, dedupe_key="k"))
            app.settle()
            app.clock.advance("5 minutes")
            assert len(app.history(till, "north")) == 1
            (given,) = outputs(app)
            assert given == app.read(till, "north")


def test_a_loop_through_a_module_is_found_by_what_it_publishes() -> None:
    """Nobody declares what `deliver` writes: without it the till sold to itself until the disk was full."""
    again = reflex("sells", effect={"name": "deliver.till", "input": {"type": "Sell", "shop": "north", "cents": 1}})
    with (
        pytest.raises(LoadRefused, match=r"wake each other for ever: sells .on till\.Sold."),
        testing.open(till, Reflexes([again])),
    ):
        pass
    with testing.open(till, Reflexes([{**again, "when": {"$": "fact.row.cents > 1"}}])) as app:
        assert "writes till.Sold" in app.reflexes.graph().text


def test_what_the_reflex_acts_as_is_whose_actor_hears_it() -> None:
    sells = doing("deliver.till", {"type": "Sell", "shop": "north", "cents": 7}, **{"as": "anna"})
    with testing.open(till, Reflexes([sells])) as app:
        app.acting_as("anna").ingest(Signal("go", {}))
        app.settle()
        assert (app.acting_as("anna").read(till, "north"), app.read(till, "north")) == (7, 0)


def test_a_run_is_begun_under_the_tasks_key_and_not_waited_for() -> None:
    for app in testing.every_crash(ship, Reflexes([doing("call.ship", {"order": {"$": "fact.payload"}})])):
        app.ingest(Signal("go", "o7", dedupe_key="k"))
        app.settle()
        app.clock.advance("5 minutes")
        (run,) = app.runs.list().items
        assert run.status == "waiting"
        assert [given["run_id"] for given in outputs(app)] == [run.run_id]
        app.receipt(run.run_id).send(Signed(by="anna"), key="s")
        assert app.receipt(run.run_id).result() == "o7 signed by anna"


def test_an_event_goes_to_the_run_that_its_input_names() -> None:
    sends = doing("event.ship", {"key": "o7", "event": "Signed", "body": {"by": {"$": "fact.payload"}}})
    with testing.open(ship, Reflexes([sends])) as app:
        receipt = app.start(ship, Order(order="o7"), key="o7")
        app.ingest(Signal("go", "ben"))
        app.settle()
        assert receipt.result() == "o7 signed by ben"
        assert outputs(app)[0]["run_id"] == receipt.run_id


@pytest.mark.parametrize(
    "input, told",
    [
        ({"event": "Signed"}, "must name the run"),
        ({"key": "k", "run": "r", "event": "Signed"}, "and not both"),
        ({"key": "k"}, "must name the event"),
        ({"key": "k", "event": "Signed", "boddy": {}}, "is not a field here"),
        ("k", "must be an object"),
    ],
)
def test_an_input_that_names_no_run_shows_in_the_preview(input: Any, told: str) -> None:
    with testing.open(ship, Reflexes([doing("event.ship", input)])) as app:
        (task,) = app.reflexes.preview("does", fact=Signal("go", {})).tasks
        assert told in str(task.error)


def test_a_port_that_can_be_asked_is_asked_before_it_is_used_again() -> None:
    with testing.open(post, Reflexes([doing("send.post", {"to": "anna"})])) as app:
        app.ingest(Signal("go", {}))
        app.settle()
        app.clock.advance("1 second")
        assert outputs(app) == ["found anna"]
        assert [attempt for _, attempt, _ in asked] == [1]


def test_a_port_that_dedupes_is_sent_to_in_a_thread_or_on_the_loop() -> None:
    with testing.open(prints, Reflexes([doing("send.print", {"to": "anna"})])) as app:
        app.ingest(Signal("go", {}))
        app.settle()
        assert outputs(app)[0].startswith("printed anna under ")
        assert len(app.calls(prints)) == 1


def test_a_port_that_can_promise_nothing_is_no_effect() -> None:
    with (
        pytest.raises(LoadRefused, match=r"no effect 'send.shout'"),
        testing.open(shout, Reflexes([doing("send.shout", {"to": "all"})])),
    ):
        pass


def test_what_they_would_do_is_said_and_what_they_write_is_in_the_graph() -> None:
    sells = doing("deliver.till", {"type": "Sell", "shop": "north", "cents": 7})
    hears = reflex("hears", effect={"name": "call.ship", "input": {"order": "7"}})
    with testing.open(till, ship, Reflexes([sells, hears])) as app:
        (task,) = app.reflexes.preview("does", fact=Signal("go", {})).tasks
        assert task.shows == "deliver Sell to till 'north'"
        (task,) = app.reflexes.preview(
            "hears", fact={"kind": "write", "entity": "till.Sold", "op": "insert", "row": {"cents": 1}}
        ).tasks
        assert task.shows == "call ship"
        drawn = app.reflexes.graph()
        assert "till.Sold" in drawn.text
        assert "ship.shipped" in drawn.text
