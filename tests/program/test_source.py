"""A program's text is read as data: one call, statements, or a sentence that says why it is neither."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onefold.program.source import read
from onefold.program.words import LIMITS, Limits, OneCall, Statements, Stopped


class Named:
    """A method that is only asked what it takes."""

    cost = 1

    def __init__(self, *parameters: str) -> None:
        self.parameters: Sequence[str] = parameters

    def __call__(self, arguments: Mapping[str, Any], /) -> Any:
        raise AssertionError("reading calls nothing")


SCOPE = {"greet": Named("name"), "enter": Named("who", "at_most")}


@pytest.mark.parametrize(
    "source, name, arguments",
    [
        ('greet(name="guest")', "greet", {"name": "guest"}),
        ('greet("guest")', "greet", {"name": "guest"}),
        ('enter("a", at_most=-3)', "enter", {"who": "a", "at_most": -3}),
        (
            "  \n# a remark\ngreet(name=[1, {'a': (None, True, 1.5)}])  # and one more\n",
            "greet",
            {"name": [1, {"a": [None, True, 1.5]}]},
        ),
        ("greet()", "greet", {}),
    ],
)
def test_one_call_with_literals_needs_no_interpreter(source: str, name: str, arguments: dict[str, Any]) -> None:
    assert read(source.lstrip(" "), SCOPE, LIMITS) == OneCall(name, arguments)


@pytest.mark.parametrize(
    "source",
    [
        "greet(1 + 1)",
        "greet(name=greet(name='a'))",
        "greet(*[1])",
        "greet(**{'name': 1})",
        "greet('a', name='b')",
        "greet('a', 'b', 'c')",
        "greet(10 ** 100)",
        "greet(b'raw')",
        "greet({1: 2})",
        "greet('a'); greet('b')",
        "len('abc')",
        "x = greet('a')",
    ],
)
def test_whatever_is_more_than_that_is_statements(source: str) -> None:
    assert isinstance(read(source, SCOPE, LIMITS), Statements)


def test_statements_are_cut_where_they_stand() -> None:
    source = "x = 1; y = 'é'\n@len\ndef f(a):\n    # within\n    return a\nif x:\n    greet('é')\nelse:\n    pass\nf(x)"
    program = read(source, SCOPE, LIMITS)
    assert program == Statements(
        (
            "x = 1",
            "y = 'é'",
            "@len\ndef f(a):\n    # within\n    return a",
            "if x:\n    greet('é')\nelse:\n    pass",
            "f(x)",
        ),
        (1, 1, 2, 6, 10),
    )


@pytest.mark.parametrize(
    "source, line",
    [
        ("greet(", 1),
        ("x = 1\nx = = 2", 2),
        ("", 1),
        ("# nothing", 1),
        ("a\0b", 1),
        ("greet('\ud800')", 1),
        ("x = 1\ngreet('\\ud800')", 2),
        ("(" * 5_000, 1),
        ("-" * 16_000 + "1", 1),
        ("x" + ".y" * 8_000, 1),
        ("x = 1\nx" + ".y" * LIMITS.nesting, 2),
        ("[" * 90 + "]" * 90 + "\nx = (", 2),
    ],
    ids=[
        "open",
        "second line",
        "empty",
        "remark",
        "nul",
        "surrogate",
        "escaped",
        "brackets",
        "minus",
        "attributes",
        "a few too many",
        "both",
    ],
)
def test_what_is_no_program_is_told_by_its_line(source: str, line: int) -> None:
    stopped = read(source, SCOPE, LIMITS)
    assert isinstance(stopped, Stopped)
    assert (stopped.kind, stopped.told["line"], stopped.ran) == ("parse", line, 0)
    assert stopped.told["message"]


@pytest.mark.parametrize("deep", ["x = 1\nx" + ".y" * 190, "x = " + "-" * 190 + "1", "x = " + "+".join("1" * 190)])
def test_what_is_nested_less_is_read_whichever_python_it_is(deep: str) -> None:
    assert isinstance(read(deep, SCOPE, LIMITS), Statements)


def test_a_name_that_nobody_defines_is_found_before_anything_runs() -> None:
    stopped = read("x = 1\nif x:\n    greeet('a')", SCOPE, LIMITS)
    assert stopped == Stopped("call", {"name": "greeet", "nearest": "greet"}, 0, 2)
    within = read("greet(name=namee('a'))", SCOPE, LIMITS)
    assert within == Stopped("call", {"name": "namee", "nearest": None}, 0, 1)


@pytest.mark.parametrize(
    "source",
    [
        "def f(): pass\nf()",
        "f = greet\nf('a')",
        "for f in [greet]:\n    f('a')",
        "import json as f\nf(1)",
        "[f(1) for f in [len]]",
        "(lambda f: f(1))(len)",
        "try:\n    1\nexcept ValueError as f:\n    f()",
        "match 1:\n    case f:\n        f()",
        "with open('x') as f:\n    f()",
    ],
)
def test_a_name_that_the_program_defines_is_its_own(source: str) -> None:
    assert isinstance(read(source, SCOPE, LIMITS), Statements)


def test_a_source_that_is_too_long_is_not_read() -> None:
    stopped = read("greet('é')" + "#" * 100, SCOPE, Limits(source_bytes=100))
    assert stopped == Stopped("limit", {"limit": "100 bytes of source"}, 0, 0)


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(source: str) -> None:
    assert isinstance(read(source, SCOPE, LIMITS), OneCall | Statements | Stopped)


@given(st.text(alphabet="greet()[]{}'\",=:\n x1.", max_size=40))
def test_any_text_that_looks_like_a_program_is_read_or_refused(source: str) -> None:
    assert isinstance(read(source, SCOPE, LIMITS), OneCall | Statements | Stopped)
