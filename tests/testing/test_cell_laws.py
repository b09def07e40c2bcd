"""Each law that a cell can break is broken by one that only it finds; sound cells keep them all, their programs too."""

from __future__ import annotations

import os
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

from onefold import Cell
from onefold.terms.errors import BadArguments, Undeclared
from onefold.testing import LAWS, LawBroken, module_laws
from tests.cell.rooms import Memory, Room
from tests.testing.bad_cells import BAD, Chancy, Loose, Sound

PROGRAM = "write('c')\nif latest() == 'c':\n    write('d')\nlatest()"


def events_of(shape: Any) -> list[Any]:
    more: dict[Any, list[Any]] = {Loose: ["noted()"]}
    asked = [
        (shape.write, {"line": "a"}),
        "latest()",
        shape.at,
        "write('b')",
        PROGRAM,
        "write('')",
        {"price": Decimal(2)},
    ]
    return [*asked, *more.get(shape, [])]


@pytest.fixture(autouse=True)
def few() -> Iterator[None]:
    """Few histories and none made smaller; more by the environment."""
    before = settings.get_current_profile_name()
    examples = int(os.environ.get("ONEFOLD_TEST_EXAMPLES", "25"))
    slow = [HealthCheck.too_slow]  # the machine, not the cell
    settings.register_profile(
        "few",
        settings.default,
        phases=[Phase.generate],
        database=None,
        max_examples=examples,
        suppress_health_check=slow,
    )
    settings.load_profile("few")
    yield
    settings.load_profile(before)


@pytest.mark.parametrize("law, shape", BAD, ids=[shape.__name__ for _, shape in BAD])
def test_a_broken_cell_is_found_by_one_law_alone(law: str, shape: type[Cell]) -> None:
    found = set()
    for each in LAWS:
        try:
            module_laws(shape, events=events_of(shape), laws=[each])
        except LawBroken as told:
            found.add(told.law)
    assert found == {law}


def test_every_law_that_a_cell_can_break_has_one_that_breaks_it() -> None:
    kernels_alone = {"dedupe"}  # the id of a turn is its caller's, and a cell owes nothing
    assert {law for law, _ in BAD} == {law.name for law in LAWS} - kernels_alone


def test_a_sound_cell_keeps_them_all_and_is_told_what_nothing_called() -> None:
    seen = module_laws(Sound, events=events_of(Sound))
    assert seen.histories == 60
    assert seen.faults == 0
    assert seen.facts["Set"] > 100
    assert seen.never == ("never_called",)


def test_a_sound_cell_keeps_them_from_strategies() -> None:
    lines = st.fixed_dictionaries({"line": st.text(max_size=3)})
    seen = module_laws(Sound, events=st.tuples(st.just(Sound.write), lines) | st.just("latest()") | st.just(PROGRAM))
    assert seen.histories >= 25
    assert seen.facts["Set"]


def test_a_text_that_no_json_holds_is_no_event_of_a_cell() -> None:
    seen = module_laws(Sound, events=[(Sound.write, {"line": "a\0"}), (Sound.write, {"line": "a"})])
    assert seen.facts["Set"]
    with pytest.raises(BadArguments, match="line"):
        module_laws(Sound, events=[(Sound.write, {"line": 3})])


def test_a_broken_cell_is_found_in_what_strategies_make_too() -> None:
    law, shape = BAD[0]
    lines = st.fixed_dictionaries({"line": st.text(max_size=3)})
    with pytest.raises(LawBroken) as told:
        module_laws(shape, events=st.tuples(st.just(shape.write), lines))  # type: ignore[attr-defined]
    assert told.value.law == law


def test_what_is_broken_is_told_by_the_name_of_the_method_and_of_the_program() -> None:
    with pytest.raises(LawBroken, match=r"^cell 'Chancy' breaks purity: latest gave two answers on the same record: "):
        module_laws(Chancy, events=["latest()"])
    with pytest.raises(LawBroken, match=r"the program 'latest.*' gave two answers on the same record"):
        module_laws(Chancy, events=["latest()\nlatest()"])


def test_the_rooms_of_the_tests_keep_them() -> None:
    program = "if greet('a') == 'hello a':\n    enter('b')\nenter('c')"
    asked = [(Room.greet, {"name": "a"}), (Room.enter, {"who": "x", "at_most": 2}), "when()", "spoil()", program]
    assert module_laws(Room, events=[*asked, "x = seat(3)\ntake(x)", "seat(1)\nlook('h:Seat:9')"]).turns > 400
    keep = (Memory.remember, {"topic": "rent", "text": "on the 1st"})
    assert module_laws(Memory, events=[keep, (Memory.recall, {"topic": "rent"})]).facts["Began"]


@pytest.mark.parametrize(
    "event, told",
    [
        ("shout('a')", r"is no program of Room: .*'name': 'shout'"),
        ("greet(", "is no program of Room"),
        ((Room.greet, {"name": "a", "nam": "a"}), "greet: .*unexpected keyword argument 'nam'"),
        ((Room.greet, {"name": 1}), "name"),
        ((Room.take, {"seat": "h:Seat:1"}), "only a program can hold"),
        ((Memory.recall, {"topic": "a"}), r"each is a program, .*\(Room\.method"),
        (7, "each is a program"),
    ],
)
def test_an_event_that_no_door_takes_is_refused_by_name(event: object, told: str) -> None:
    with pytest.raises(BadArguments, match=told):
        module_laws(Room, events=[event])


def test_a_capture_of_an_undeclared_field_is_refused() -> None:
    with pytest.raises(Undeclared, match="visit"):
        module_laws(Room, events=[{"visit": 1}])


def test_a_cell_that_nothing_was_asked_of_holds_nothing() -> None:
    with pytest.raises(ValueError, match="nothing was held"):
        module_laws(Room, events=[])
