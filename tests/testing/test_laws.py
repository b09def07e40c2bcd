"""Each law is broken by a module that only it finds; sound modules keep all of them, from lists and from strategies."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st

from onefold import Decision, Module
from onefold.kernel.words import Dropped
from onefold.machine import from_machine
from onefold.testing import LAWS, LawBroken, module_laws
from tests.guarantees import shop
from tests.testing.bad_modules import BAD, AnyModule, Clear, Page, Put, Whole, decide, make, snapshot

PUTS = st.builds(Put, id=st.uuids().map(str), book=st.sampled_from("ab"), text=st.text(max_size=3))
EVENTS = [Put("1", "a", "one"), Put("2", "a", "two"), Clear("3", "a"), Put("4", "b", "three"), Clear("5", "c")]
ANSWERS = {"printer": [Page("one"), Page("two")]}


@pytest.fixture(autouse=True)
def few() -> Iterator[None]:
    """Few histories and none made smaller, so that a hundred of them cost a second; more by the environment."""
    before = settings.get_current_profile_name()
    examples = int(os.environ.get("ONEFOLD_TEST_EXAMPLES", "25"))
    settings.register_profile("few", settings.default, phases=[Phase.generate], database=None, max_examples=examples)
    settings.load_profile("few")
    yield
    settings.load_profile(before)


def found_by(module: Callable[[], AnyModule]) -> set[str]:
    broken = set()
    for law in LAWS:
        try:
            module_laws(module(), events=EVENTS, answers=ANSWERS, laws=[law])
        except LawBroken as told:
            broken.add(told.law)
    return broken


@pytest.mark.parametrize("law, module", BAD, ids=[module.__name__ for _, module in BAD])
def test_a_broken_module_is_found_by_one_law_alone(law: str, module: Callable[[], AnyModule]) -> None:
    assert found_by(module) == {law}


@pytest.mark.parametrize("law, module", BAD, ids=[module.__name__ for _, module in BAD])
def test_it_is_found_in_what_strategies_make_too(law: str, module: Callable[[], AnyModule]) -> None:
    events = PUTS | st.builds(Clear, id=st.uuids().map(str), book=st.sampled_from("ab"))
    with pytest.raises(LawBroken) as told:
        module_laws(module(), events=events, answers=ANSWERS)
    assert told.value.law == law


def test_every_law_has_a_module_that_breaks_it() -> None:
    assert {law for law, _ in BAD} == {law.name for law in LAWS}


def test_a_sound_module_keeps_them_all() -> None:
    seen = module_laws(make(), events=EVENTS, answers=ANSWERS)
    assert seen.histories == 60
    assert seen.facts["Written"] > 60
    assert seen.facts["Printed"] > 60
    assert seen.never == ("Whole",), "a snapshot is asked for by its law, and decided by nobody"


def test_a_sound_module_keeps_them_from_strategies() -> None:
    seen = module_laws(make(), events=PUTS, answers={"printer": st.builds(Page, st.text(max_size=2))})
    assert seen.histories >= 25
    assert seen.facts["Printed"]


def test_the_bank_of_the_guarantees_keeps_them() -> None:
    ids = st.uuids().map(str)
    events = st.builds(shop.Deposit, id=ids, account=st.just("a"), amount=st.integers(1, 90)) | st.builds(
        shop.PayOut, id=ids, account=st.just("a"), amount=st.integers(1, 90), minutes=st.integers(1, 90)
    )
    seen = module_laws(shop.bank, events=events, answers={"transfer": [shop.Sent("ref"), Dropped("no")]})
    assert {"Deposited", "Reserved", "PaidOut", "Released"} <= {*seen.facts}


CHART: dict[str, Any] = {
    "initial": "shut",
    "states": {"shut": {"on": {"Knock": {"target": "open", "actions": "count"}}}, "open": {"on": {"Knock": "shut"}}},
}


def test_a_chart_keeps_them() -> None:
    from dataclasses import dataclass, replace

    @dataclass(frozen=True)
    class Knock:
        id: str

    @dataclass(frozen=True)
    class Door:
        knocks: int = 0

    def which(event: Knock) -> str:
        return "front"

    def count(door: Door, event: object, now: datetime) -> Door:
        return replace(door, knocks=door.knocks + 1)

    which.__annotations__ = {"event": Knock, "return": str}
    door: Module[Any, Any, Any, Any, Any] = from_machine(
        "door", CHART, context=Door(), key=which, actions={"count": count}
    )
    assert module_laws(door, events=[Knock(str(n)) for n in range(5)]).facts["Moved"]


def whole_once_written(book: Any) -> Whole:
    assert book.lines or book.pages, "nothing was written yet"
    return snapshot(book)


def test_an_actor_that_only_declined_is_asked_for_no_snapshot() -> None:
    never = make(snapshot=whole_once_written, decide=declines_first)
    assert module_laws(
        never, events=[Clear("1", "a"), Put("2", "a", "one"), Put("3", "b", "two")], answers=ANSWERS
    ).turns


def declines_first(book: Any, event: Put | Clear, now: datetime) -> Decision[Any, int]:
    if isinstance(event, Clear):
        return Decision(reply=0)
    return decide(book, event, now)


def never_whole(book: Any) -> Whole:
    raise KeyError("tags")


def no_fact(book: Any) -> Whole:
    return Page("no fact")  # type: ignore[return-value]


def test_a_snapshot_that_raises_or_does_not_fit_is_told_as_a_law_and_not_as_what_it_raised() -> None:
    with pytest.raises(LawBroken, match="breaks totality: snapshot raised KeyError: 'tags' on "):
        module_laws(make(snapshot=never_whole), events=EVENTS, answers=ANSWERS)
    with pytest.raises(
        LawBroken, match=r"breaks round trips: the snapshot Page\(text='no fact'\) could not be written"
    ):
        module_laws(make(snapshot=no_fact), events=EVENTS, answers=ANSWERS)


def test_events_that_bring_nothing_about_hold_nothing() -> None:
    with pytest.raises(ValueError, match="nothing was held"):
        module_laws(make(), events=[])
