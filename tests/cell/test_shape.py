"""A shape is a class with typed fields; what it cannot keep is refused where it is loaded, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onefold import Cell
from onefold.cell import Handle, cost
from onefold.cell.shape import same, shape_of
from onefold.cell.words import Record
from onefold.terms.errors import BadArguments, LoadRefused, Undeclared
from tests.cell.rooms import Memory, Room, Seat

JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


def test_fields_methods_and_options_are_read_from_the_class() -> None:
    shape = shape_of(Room)
    assert list(shape.fields) == ["visits", "occupants", "price"]
    assert {name: method.cost for name, method in shape.methods.items()} == {
        "enter": 5,
        "greet": 1,
        "look": 1,
        "seat": 1,
        "spoil": 1,
        "take": 1,
        "when": 1,
        "wrong": 1,
    }
    assert shape.branches == {"Entered", "Full"}
    assert (shape.tool, shape.on_demand) == (False, False)
    assert (shape_of(Memory).tool, shape_of(Memory).on_demand) == (True, True)
    assert shape_of(Room) is shape


def test_a_shape_inherits_fields_and_methods() -> None:
    class Hall(Room):
        stage: bool = False

    assert list(shape_of(Hall).fields) == ["visits", "occupants", "price", "stage"]
    assert "greet" in shape_of(Hall).methods


def no_default() -> type[Cell]:
    class Bad(Cell):
        visits: int

    return Bad


def other_default() -> type[Cell]:
    class Bad(Cell):
        visits: int = "none"  # type: ignore[assignment] # that is the case

    return Bad


def no_type() -> type[Cell]:
    class Bad(Cell):
        visits: int = 0
        plain = 3

    return Bad


def reserved() -> type[Cell]:
    class Bad(Cell):
        now: int = 0  # type: ignore[assignment] # that is the case

    return Bad


def private() -> type[Cell]:
    class Bad(Cell):
        _hidden: int = 0

    return Bad


def waits() -> type[Cell]:
    class Bad(Cell):
        async def fetch(self) -> None: ...

    return Bad


def untyped_argument() -> type[Cell]:
    class Bad(Cell):
        def greet(self, name) -> None: ...

    return Bad


def untyped_result() -> type[Cell]:
    class Bad(Cell):
        def greet(self, name: str): ...

    return Bad


def any_arguments() -> type[Cell]:
    class Bad(Cell):
        def greet(self, *names: str) -> None: ...

    return Bad


def strange_upgrade() -> type[Cell]:
    class Bad(Cell, upgrades={"visit": int}):
        visits: int = 0

    return Bad


@pytest.mark.parametrize(
    "made, told",
    [
        (no_default, "'visits' has no default"),
        (other_default, "the default of 'visits' is not of its type"),
        (no_type, "'plain' is neither a field with an annotation nor a method"),
        (reserved, "'now' has a name that is not free"),
        (private, "'_hidden' has a name that is not free"),
        (waits, "is async"),
        (untyped_argument, "no annotation for 'name'"),
        (untyped_result, "no annotation of what it gives"),
        (any_arguments, "name each argument"),
        (strange_upgrade, "upgrades 'visit', which is no field"),
    ],
)
def test_what_cannot_be_kept_is_refused_by_name(made: Callable[[], type[Cell]], told: str) -> None:
    with pytest.raises(LoadRefused, match="Bad") as refused:
        shape_of(made())
    assert told in str(refused.value)


def test_a_class_variable_is_no_field() -> None:
    class Fine(Cell):
        LIMIT: ClassVar[int] = 3
        visits: int = 0

    assert list(shape_of(Fine).fields) == ["visits"]


@pytest.mark.parametrize("kind", [Cell, int, str])
def test_what_is_no_cell_has_no_shape(kind: type) -> None:
    with pytest.raises(TypeError, match="is no shape"):
        shape_of(kind)


@pytest.mark.parametrize("units", [0, -1, 1.5, True, 1_001])
def test_a_cost_is_a_whole_number(units: Any) -> None:
    with pytest.raises(LoadRefused, match="a cost is a whole number"):
        cost(units)


# --- drafts -------------------------------------------------------------------------------------------


def test_a_draft_shares_nothing_with_the_record_or_the_class() -> None:
    record = Record(True, {"occupants": ["a"]}, 1)
    draft = shape_of(Room).draft(record, None)
    assert isinstance(draft, Room)
    draft.occupants.append("b")
    assert record.fields == {"occupants": ["a"]}
    assert shape_of(Room).draft(Record(True), None) == Room(visits=0)
    assert Room.occupants == []


def test_what_changed_is_the_fields_whose_json_is_another() -> None:
    record = Record(True, {"occupants": ["a"], "visits": 3}, 2)
    draft = shape_of(Room).draft(record, None)
    assert isinstance(draft, Room)
    assert shape_of(Room).changed(draft, record) == {}
    draft.occupants = ["a"]
    draft.visits += 0
    assert shape_of(Room).changed(draft, record) == {}
    draft.occupants.append("b")
    draft.visits = 4
    assert shape_of(Room).changed(draft, record) == {"occupants": ["a", "b"], "visits": 4}


def test_a_field_that_is_not_declared_names_field_and_shape() -> None:
    with pytest.raises(Undeclared, match="Room does not declare 'visit'"):
        Room().visit = 3
    with pytest.raises(Undeclared):
        Room(visit=3)
    with pytest.raises(TypeError, match="part of its shape"):
        del Room().visits


def test_a_value_of_another_type_is_told_by_its_path() -> None:
    draft = shape_of(Room).draft(Record(True), None)
    assert isinstance(draft, Room)
    draft.occupants = ["a", 3]  # type: ignore[list-item] # that is the case
    draft.visits = True
    with pytest.raises(BadArguments) as bad:
        shape_of(Room).changed(draft, Record(True))
    assert {fault.field for fault in bad.value.faults} == {"visits", "occupants[1]"}


def test_a_record_is_read_and_not_written() -> None:
    record = shape_of(Room).seen(Record(True, {"visits": 3}, 1))
    assert isinstance(record, Room)
    assert record.visits == 3
    with pytest.raises(TypeError, match="is read here, not written"):
        record.visits = 4
    with pytest.raises(TypeError, match="instant of a turn"):
        _ = record.now


def test_a_method_is_tried_by_itself_on_a_draft() -> None:
    room = Room(visits=2)
    assert room.greet("guest") == "hello guest"
    assert room.visits == 3
    assert room.look(Handle(Seat(4))) == 4


class Lift(Cell):
    floor: int = 0

    def go(self, floor: int, slowly: bool = False) -> int:
        return floor

    def stop(self, *, floor: int) -> int:
        return floor


def test_arguments_by_place_and_by_name_are_written_alike() -> None:
    go, stop = shape_of(Lift).methods["go"], shape_of(Lift).methods["stop"]
    assert go.written((3, True), {}) == go.written((3,), {"slowly": True}) == {"floor": 3, "slowly": True}
    assert go.written((3,), {}) == {"floor": 3}
    assert stop.written((), {"floor": 3}) == {"floor": 3}
    for method, args, words in [(go, (), {}), (go, (1, True, 2), {}), (go, (1,), {"floor": 1}), (stop, (3,), {})]:
        with pytest.raises(TypeError):
            method.written(args, words)
    with pytest.raises(BadArguments, match="floor: must be"):
        go.written(("3", True), {})


@given(JSON, JSON)
def test_two_values_are_the_same_exactly_when_they_are_written_alike(one: Any, other: Any) -> None:
    import json

    def written(value: Any) -> str:
        return json.dumps(value, sort_keys=True)

    assert same(one, one)
    assert same(one, other) == (written(one) == written(other))
