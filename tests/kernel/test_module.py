"""A module's signature is its schema; what it does not say is refused in words."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pytest

from onefold import Answer, Decision, Module, Owed, port
from onefold.host.catalog import catalog
from onefold.kernel.port import Step
from onefold.kernel.words import Dropped
from onefold.terms.errors import LoadRefused, OutsideStep


@dataclass(frozen=True)
class Add:
    id: str
    to: str
    amount: int


@dataclass(frozen=True)
class Added:
    amount: int


def decide(total: int, event: Add, now: datetime) -> Decision[Added, int]:
    return Decision(facts=[Added(event.amount)], reply=total + event.amount)


def evolve(total: int, fact: Added) -> int:
    return total + fact.amount


def view(total: int) -> int:
    return total


def module(**changes: Any) -> Module[Any, Any, Any, Any, Any]:
    parts: dict[str, Any] = {
        "initial": 0,
        "key": lambda event: event.to,
        "decide": decide,
        "evolve": evolve,
        "view": view,
    }
    return Module("sums", **{**parts, **changes})


def test_its_words_are_read_from_its_annotations() -> None:
    codecs = module().codecs
    assert codecs.event.encode(Add("1", "a", 2)) == b'{"amount":2,"id":"1","to":"a","type":"Add"}'
    assert codecs.fact.seal_many([Added(2)])[0] == b'[{"amount":2,"type":"Added"}]'
    assert codecs.reply.encode(3) == b"3"


def bare(total, event, now):
    return Decision()


def unsaid(total: int, event: Add, now: datetime):
    return Decision()


def plain(total: int, event: Add, now: datetime) -> int:
    return 1


@pytest.mark.parametrize(
    "changes,problem",
    [
        ({"decide": bare}, "has no annotation for 'event'"),
        ({"decide": unsaid}, "has no return annotation"),
        ({"decide": plain}, "must be annotated to return Decision"),
        ({"decide": lambda total: Decision()}, "takes too few parameters"),
    ],
)
def test_what_the_signature_does_not_say_is_refused_by_name(changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(LoadRefused, match=problem):
        module(**changes).codecs.event.schema()


def test_a_wake_without_an_alarm_is_refused() -> None:
    with pytest.raises(LoadRefused, match="on_alarm"):
        module(wake=lambda total: None)


def test_a_name_that_is_no_name_is_refused() -> None:
    with pytest.raises(LoadRefused):
        Module("Not A Name", initial=0, key=str, decide=decide, evolve=evolve, view=view)


def hears(total: int, answer: Answer[int | Dropped], now: datetime) -> Decision[Added, None]:
    return Decision()


def deaf(total: int, answer: Answer[int], now: datetime) -> Decision[Added, None]:
    return Decision()


def test_whether_it_hears_drops_is_read_from_its_answers() -> None:
    assert module(on_answer=hears).hears_drops
    assert not module(on_answer=deaf).hears_drops
    assert not module().hears_drops


def test_a_decision_compares_by_what_it_says() -> None:
    one = Decision(facts=[Added(1)], owed=[Owed("p", "k", 1)], reply=2)
    assert one == Decision(facts=[Added(1)], owed=[Owed("p", "k", 1)], reply=2)
    assert one != Decision(facts=[Added(2)], owed=[Owed("p", "k", 1)], reply=2)
    assert "Added(amount=1)" in repr(one)


def test_a_port_is_not_called_outside_a_step() -> None:
    @port.dedupes("pay")
    async def pay(step: Step, amount: int) -> str:
        return "paid"

    with pytest.raises(OutsideStep) as refused:
        pay(1)
    assert refused.value.name == "pay"


def test_a_port_says_what_it_takes() -> None:
    async def pay(amount: int) -> str:
        return "paid"

    found: Any = port.Port("pay", "dedupes", pay)  # type: ignore[arg-type]
    with pytest.raises(LoadRefused, match="step: Step"):
        found.body.schema()


@dataclass(frozen=True)
class Other:
    total: int


def unmarked(total):
    return Added(total)


def other(total: int) -> Other:
    return Other(total)


def either(total: int) -> Added | Other:
    return Added(total)


def bare_answer(total, answer, now):
    return Decision()


def wrong_answer(total: int, answer: int, now: datetime) -> Decision[Added, None]:
    return Decision()


@pytest.mark.parametrize(
    "changes, problem",
    [
        ({"snapshot": unmarked}, "snapshot: has no return annotation"),
        ({"snapshot": lambda total: Added(total)}, "snapshot: has no return annotation"),
        ({"snapshot": either}, "snapshot: must be annotated to return one fact class"),
        ({"snapshot": other}, "snapshot: gives Other, which is none of the facts that evolve takes"),
        ({"on_answer": bare_answer}, "on_answer: has no annotation for 'answer'"),
        ({"on_answer": wrong_answer}, "on_answer: must take `answer: Answer[Type]`"),
    ],
)
def test_what_would_stop_an_actor_later_is_refused_at_load(changes: dict[str, Any], problem: str) -> None:
    """Such a module once took events, and could not read its actors after a restart, or sent what it owed for ever."""
    with pytest.raises(LoadRefused) as refused:
        catalog([module(**changes)], {})
    assert problem in str(refused.value)
