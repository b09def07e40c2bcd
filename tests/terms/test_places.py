"""Where something happened is told by the program's own line, whatever it called, and without a folder."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable

import pytest

from onefold.terms.duration import duration_ms
from onefold.terms.errors import OnefoldError
from onefold.terms.places import at_place, place_of, place_of_function


def raised(what: Callable[[], None]) -> BaseException:
    with pytest.raises((ValueError, OnefoldError)) as fault:
        what()
    return fault.value


def line(function: object) -> int:
    return inspect.getsourcelines(function)[1]  # type: ignore[arg-type]


def test_of_what_a_library_raised_the_line_that_called_it_is_told() -> None:
    def ask() -> None:
        json.loads("{")

    assert place_of(raised(ask)) == f"test_places.py:{line(ask) + 1}"


def test_of_what_this_package_raised_too() -> None:
    def ask() -> None:
        duration_ms("nonsense")

    assert place_of(raised(ask)) == f"test_places.py:{line(ask) + 1}"


def test_a_fault_that_was_never_raised_has_its_causes_place_or_none() -> None:
    def fall() -> None:
        raise ValueError

    outer = RuntimeError("told")
    assert place_of(outer) is None
    outer.__cause__ = raised(fall)
    assert place_of(outer) == f"test_places.py:{line(fall) + 1}"


def test_a_function_is_where_it_is_written_and_ours_is_nowhere() -> None:
    assert place_of_function(line) == f"test_places.py:{line(line)}"
    assert place_of_function(place_of) is place_of_function(len) is place_of_function(None) is None
    assert (at_place("a.py:1"), at_place(None)) == (" (a.py:1)", "")
