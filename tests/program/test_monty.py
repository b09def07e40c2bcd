"""Statements run one after another in a worker that can do nothing else, and each stop is a verdict with a reason."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from onefold.program.monty import Interpreter
from onefold.program.source import read
from onefold.program.words import LIMITS, Limits, Ran, Statements, Stopped, Verdict
from onefold.terms.turns import OutOfTime

NOW = datetime(2026, 3, 29, 1, 30, tzinfo=UTC)


class Noted:
    """A method that notes what it was called with."""

    def __init__(self, *parameters: str, cost: int = 1, gives: Any = None, fault: Exception | None = None) -> None:
        self.parameters: Sequence[str] = parameters
        self.cost = cost
        self.gives = gives
        self.fault = fault
        self.heard: list[dict[str, Any]] = []

    def __call__(self, arguments: Mapping[str, Any], /) -> Any:
        self.heard.append(dict(arguments))
        if self.fault is not None:
            raise self.fault
        return self.gives


@pytest.fixture(scope="module")
def interpreter() -> Iterator[Interpreter]:
    interpreter = Interpreter()
    yield interpreter
    interpreter.close()


def run(interpreter: Interpreter, source: str, limits: Limits = LIMITS, seed: int = 7, **scope: Noted) -> Verdict:
    program = read(source, scope, limits)
    if isinstance(program, Stopped):
        return program
    assert isinstance(program, Statements)
    return interpreter.run(program, scope, NOW, seed, limits)


def test_several_calls_share_names_and_conditions(interpreter: Interpreter) -> None:
    get, put = Noted("topic", gives=None), Noted("topic", "text", gives=1)
    verdict = run(
        interpreter, "seen = get('rent')\nif seen is None:\n    put('rent', text='on the 1st')\nseen", get=get, put=put
    )
    assert verdict == Ran(None, 3)
    assert (get.heard, put.heard) == ([{"topic": "rent"}], [{"topic": "rent", "text": "on the 1st"}])


def test_it_stops_where_it_raises_and_says_how_far_it_came(interpreter: Interpreter) -> None:
    stopped = run(interpreter, "x = 1\ny = 2\nx / 0\ny")
    assert stopped == Stopped("raised", {"message": "ZeroDivisionError: division by zero"}, 2, 4)


def test_a_method_that_raises_is_told_in_its_own_words(interpreter: Interpreter) -> None:
    stopped = run(interpreter, "x = 1\nfull()", full=Noted(fault=ValueError("the room is full.")))
    assert stopped == Stopped("raised", {"message": "ValueError: the room is full"}, 1, 2)


def test_a_program_may_catch_what_a_method_raises(interpreter: Interpreter) -> None:
    caught = "try:\n    full()\nexcept ValueError:\n    x = 'later'\nx"
    assert run(interpreter, caught, full=Noted(fault=ValueError("full"))) == Ran("later", 2)


@pytest.mark.parametrize(
    "source, limit",
    [
        ("[0] * 10 ** 9", "16777216 bytes of memory"),
        ("'a' * 10 ** 9", "16777216 bytes of memory"),
        ("def f():\n    return f()\nf()", "100 calls within calls"),
        ("print('x' * 70_000)", "65536 bytes of output"),
        ("'x' * 70_000", "65536 bytes of output"),
        ("for _ in range(300):\n    go()", "200 for its calls"),
        ("for _ in range(300):\n    try:\n        go()\n    except BaseException:\n        pass", "200 for its calls"),
        ("dear()\nx = 1\ndear()", "200 for its calls"),
    ],
)
def test_a_limit_is_a_verdict_that_names_it(interpreter: Interpreter, source: str, limit: str) -> None:
    stopped = run(interpreter, source, go=Noted(), dear=Noted(cost=150))
    assert isinstance(stopped, Stopped)
    assert (stopped.kind, stopped.told) == ("limit", {"limit": limit})


@pytest.mark.parametrize(
    "source", ["while True:\n    pass", "def f(n):\n    return n < 2 or f(n - 1) + f(n - 2)\nf(60)"]
)
def test_time_is_a_fault_and_no_verdict(interpreter: Interpreter, source: str) -> None:
    with pytest.raises(OutOfTime):
        run(interpreter, source, Limits(seconds=0.05))


def test_after_a_program_that_ran_out_of_time_the_next_one_runs(interpreter: Interpreter) -> None:
    with pytest.raises(OutOfTime):
        run(interpreter, "while True:\n    pass", Limits(seconds=0.05))
    assert run(interpreter, "x = 1\nx + 1") == Ran(2, 2)


def test_clock_and_chance_are_those_of_the_turn(interpreter: Interpreter) -> None:
    source = "import datetime, random, time\ntime.sleep(3600)\n[str(datetime.datetime.now(datetime.timezone.utc)), random.random(), list({'b', 'a', 'c'})]"
    first, second, other = (run(interpreter, source, seed=seed) for seed in (1, 1, 2))
    assert isinstance(first, Ran)
    assert first == second != other
    assert first.value[0].startswith("2026-03-29 01:30:00")


@pytest.mark.parametrize(
    "source",
    [
        "open('/etc/passwd').read()",
        "import os\nos.listdir('/')",
        "import os\nos.environ['HOME']",
        "import socket\nsocket.socket()",
        "import subprocess\nsubprocess.run(['true'])",
        "__import__('os').system('true')",
        "().__class__.__base__.__subclasses__()",
        "go.__globals__",
        "go.__self__",
        "eval('go.__code__')",
    ],
)
def test_there_is_no_way_out(interpreter: Interpreter, source: str) -> None:
    stopped = run(interpreter, source, go=Noted())
    assert isinstance(stopped, Stopped)
    assert stopped.kind in ("raised", "call")


@pytest.mark.parametrize("value", ["b'raw'", "float('nan')", "10 ** 100", "{1: 2}", "'a\\0b'", "object()", "1j"])
def test_a_value_without_a_json_form_cannot_leave(interpreter: Interpreter, value: str) -> None:
    stopped = run(interpreter, f"x = 1\n{value}", go=Noted())
    assert isinstance(stopped, Stopped)
    assert stopped.kind in ("raised", "parse", "call")


def test_arguments_are_checked_before_a_method_sees_them(interpreter: Interpreter) -> None:
    put = Noted("topic", "text")
    for source, told in (
        ("x = 1\nput('a', 'b', 'c')", "takes 2 arguments"),
        ("x = 1\nput('a', topic='b')", "topic: is given twice"),
        ("x = 1\nput(topik='a')", "did you mean 'topic'?"),
        ("x = 1\nput(topic=b'a')", "bytes has no JSON form"),
    ):
        stopped = run(interpreter, source, put=put)
        assert isinstance(stopped, Stopped)
        assert told in stopped.told["message"]
    assert put.heard == []


def test_a_syntax_that_only_the_interpreter_refuses_is_told_by_its_line(interpreter: Interpreter) -> None:
    stopped = run(interpreter, "x = 1\n\ndef f():\n    yield 1\n")
    assert isinstance(stopped, Stopped)
    assert (stopped.kind, stopped.ran, stopped.of) == ("parse", 1, 2)
    assert stopped.told["line"] >= 3


@pytest.mark.parametrize(
    "deep", ["lambda: " * 190 + "1", "-" * 190 + "1", "[" * 190 + "]" * 190, "1 if x else " * 190 + "1"]
)
def test_the_interpreter_takes_whatever_is_not_nested_too_deeply(interpreter: Interpreter, deep: str) -> None:
    assert run(interpreter, f"x = 1\n\ny = {deep}\nx") == Ran(1, 3)


def test_what_is_too_deep_is_told_by_its_line_before_anything_runs(interpreter: Interpreter) -> None:
    stopped = run(interpreter, "x = 1\n\ny = " + "lambda: " * 400 + "1")
    assert isinstance(stopped, Stopped)
    assert (stopped.kind, stopped.told["line"], stopped.ran, stopped.of) == ("parse", 3, 0, 0)
