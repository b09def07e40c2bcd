"""Programs that want more than their turn: each stays inside its budget, by every door, and the cell is as it was."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest

from onefold import testing
from onefold.cell.words import Record
from onefold.fleet.mailbox import MAIL
from onefold.host import cells
from onefold.kernel.tables import ACTOR, ALARM, OWED, TURN
from onefold.program.words import LIMITS
from onefold.store.contract import Query
from onefold.terms.turns import OutOfTime, TurnFailed
from onefold.testing import DurableApp
from tests.cell.rooms import Room

SECONDS, PATIENT = 0.3, 60.0  # of what nothing but time ends; and of all else, that no busy machine ends it first
OWN_MB, WORKER_MB = 64, 128  # far above what either needs, far below what an attack wants
MEMORY, OUTPUT = f"{LIMITS.memory_bytes} bytes of memory", f"{LIMITS.output_bytes} bytes of output"
DEPTH, CALLS, SOURCE = "100 calls within calls", "200 for its calls", f"{LIMITS.source_bytes} bytes of source"
NESTED = "it is nested too deeply|Source is too deeply nested|too many nested parentheses"
TIME = "time"
PRINTS = "printing for ever"  # what is printed is judged at the end, and nothing but time ends it
EITHER = "time or memory"  # whichever ends first: the one is a fault, the other a verdict

ATTACKS: list[tuple[str, str, str, str]] = [
    # memory, asked for at once
    ("a long text", "'a' * 10**10", "limit", MEMORY),
    ("a wide format", "'{:>9999999999}'.format('a')", "limit", MEMORY),
    ("a wide f-string", "f'{1:>9999999999}'", "limit", MEMORY),
    ("a width that is a name", "n = 9999999999\nf'{1:>{n}}'", "limit", MEMORY),
    ("a wide percent", "'%9999999999d' % 1", "limit", MEMORY),
    ("a tower of powers", "10**10**8", "limit", MEMORY),
    ("a power by name", "pow(10, 10**8)", "limit", MEMORY),
    ("a long shift", "1 << 10**10", "limit", MEMORY),
    ("zfill", "'a'.zfill(10**10)", "limit", MEMORY),
    ("ljust", "'a'.ljust(10**10)", "limit", MEMORY),
    ("center", "'a'.center(10**10)", "limit", MEMORY),
    ("expandtabs", "'\\t'.expandtabs(10**10)", "raised", "OverflowError"),
    ("replace", "('a' * 10**5).replace('a', 'b' * 10**5)", "limit", MEMORY),
    ("join", "('a' * 10**6).join(['b'] * 10**6)", "limit", MEMORY),
    ("split", "('a ' * 10**6).split()", "limit", MEMORY),
    ("bytes", "bytes(10**10)", "limit", MEMORY),
    ("a tuple", "(1,) * 10**10", "limit", MEMORY),
    ("a list of a range", "list(range(10**12))", "limit", MEMORY),
    ("zipped", "list(zip(range(10**9), range(10**9)))", "limit", MEMORY),
    ("mapped", "list(map(str, range(10**9)))", "limit", MEMORY),
    ("sorted", "sorted(range(10**7))", "limit", MEMORY),
    ("lists in a list", "[[0] * 1000 for _ in range(10**6)]", "limit", MEMORY),
    ("a set", "{i for i in range(10**8)}", "limit", MEMORY),
    ("a generator", "any(False for _ in range(10**12))", "limit", MEMORY),
    ("written as JSON", "import json\njson.dumps([0] * 10**7)", "limit", MEMORY),
    ("stars", "greet(*'a' * 10**9)", "limit", MEMORY),
    ("words", "greet(**{str(i): 1 for i in range(10**6)})", "limit", MEMORY),
    # memory, bit by bit
    ("a list that grows", "x = []\nwhile True:\n    x.append('a' * 1000)", "limit", MEMORY),
    ("a list that doubles", "x = [1]\nwhile True:\n    x = x + x", "limit", MEMORY),
    ("a text that doubles", "x = 'a'\nwhile True:\n    x += x", "limit", MEMORY),
    ("an object that grows", "x = {}\ni = 0\nwhile True:\n    x[i] = i\n    i += 1", "limit", MEMORY),
    ("keys of one hash", "x = {}\nfor i in range(10**7):\n    x[i * (2**61 - 1)] = 1", "limit", MEMORY),
    ("a chain", "x = []\nfor i in range(10**9):\n    x = [x]", "limit", MEMORY),
    ("a limit that is caught", "try:\n    'a' * 10**10\nexcept BaseException:\n    greet('x')", "limit", MEMORY),
    # time
    ("for ever", "while True:\n    pass", TIME, ""),
    ("two to the sixty", "def f(n):\n    return n < 2 or f(n - 1) + f(n - 2)\nf(60)", TIME, ""),
    ("a long sum", "sum(range(10**12))", TIME, ""),
    ("a long search", "max(range(10**10))", TIME, ""),
    ("squares of squares", "x = 10\nfor i in range(60):\n    x = x * x\nx", EITHER, ""),
    ("a long number as text", "x = 9\nfor i in range(24):\n    x = x * x\nstr(x)", EITHER, ""),
    ("products", "x = 10**200000\nfor i in range(10**4):\n    x * x", TIME, ""),
    ("a power with a modulus", "pow(3, 10**5000, 10**5000 + 1)", TIME, ""),
    ("recursion that is caught", "def f():\n    try:\n        return f()\n    except RecursionError:\n        return f()\nf()", TIME, ""),
    ("number from text", "int('9' * 10**6)", "raised", "4300 digits"),
    ("text from number", "str(10**100000)", "raised", "4300 digits"),
    # depth
    ("into itself", "def f():\n    return f()\nf()", "limit", DEPTH),
    ("two into each other", "def f():\n    return g()\ndef g():\n    return f()\nf()", "limit", DEPTH),
    ("lambdas", "f = lambda: g()\ng = lambda: f()\nf()", "limit", DEPTH),
    ("minuses", "-" * 16_000 + "1", "parse", NESTED),
    ("200,000 minuses", "-" * 200_000 + "1", "limit", SOURCE),
    ("brackets", "[" * 5_000, "parse", NESTED),
    ("attributes", "x = 1\nx" + ".a" * 4_000, "parse", NESTED),
    ("subscripts", "x = {}\nx" + "[0]" * 4_000, "parse", NESTED),
    ("calls of calls", "greet" + "('a')" * 3_000, "parse", NESTED),
    ("lambdas in lambdas", "x = " + "lambda: " * 2_000 + "1", "parse", NESTED),
    ("ifs in ifs", "x = " + "1 if 1 else " * 1_200 + "1", "parse", NESTED),
    ("f-strings in f-strings", "f'{" * 200, "parse", "f-string|nested"),
    ("JSON in JSON", "import json\njson.loads('[' * 10**6)", "raised", "recursion limit"),
    # calls
    ("calls for ever", "while True:\n    greet('a')", "limit", CALLS),
    ("calls that are caught", "while True:\n    try:\n        greet('a')\n    except BaseException:\n        pass", "limit", CALLS),
    ("one call too many", "greet('a')\n" * 201, "limit", CALLS),
    ("dear calls", "enter('a')\n" * 41, "limit", CALLS),
    # output
    (PRINTS, "while True:\n    print('x' * 1000)", "limit", OUTPUT),
    ("a long value", "'x' * 70_000", "limit", OUTPUT),
    ("the value of a method", "x = 'a' * 3 * 10**6\ngreet(x)", "limit", OUTPUT),
    ("a long repr", "repr([[0] * 1000] * 30)", "limit", OUTPUT),
    ("a deep value", "x = []\nfor i in range(3000):\n    x = [x]\nx", "raised", "deeper than 64"),
    ("a value that holds itself", "x = []\nx.append(x)\nx", "raised", "it holds itself"),
    ("an object that holds itself", "x = {}\nx['a'] = x\nx", "raised", "it holds itself"),
    ("a function as a value", "f = lambda: 1\n['a', f]", "raised", "a function has no JSON form"),
    ("a method as a value", "x = 1\ngreet", "raised", "a function has no JSON form"),
    ("a class as a value", "class A:\n    pass\nA", "raised", "a type has no JSON form"),
    ("a module as a value", "import math\nmath", "raised", "a module has no JSON form"),
    ("a coroutine as a value", "async def f():\n    pass\nf()", "raised", "a coroutine has no JSON form"),
    ("no number", "x = float('nan')\nx", "raised", "no number in JSON"),
    ("beyond all numbers", "x = 1e400\nx", "raised", "no number in JSON"),
    ("beyond 64 bits", "x = 2**64\nx", "raised", "beyond 64 bits"),
    ("a NUL", "x = 'a\\0b'\nx", "raised", "NUL"),
    ("a NUL in the source", "x = 'a\0b'", "parse", "null bytes"),
    ("half of a pair", "x = '\\ud800'\ngreet(x)", "parse", "half of a surrogate pair"),
    ("half of a pair in one call", "greet('\\ud800')", "parse", "half of a surrogate pair"),
    # arguments
    ("a long argument", "x = 'a' * 10**7\ngreet(x)", "limit", MEMORY),
    ("a deep argument", "x = []\nfor i in range(5000):\n    x = [x]\ngreet(x)", "raised", "deeper than 64"),
    ("a number beyond 64 bits", "x = 10**50\nenter('a', at_most=x)", "raised", "beyond 64 bits"),
    ("fifty digits in one call", "enter('a', at_most=" + "9" * 50 + ")", "raised", "beyond 64 bits"),
    ("a NUL as an argument", "greet('a\\0b')\nx = 1", "raised", "NUL"),
    # ways out
    ("all classes", "().__class__.__bases__[0].__subclasses__()", "raised", "AttributeError"),
    ("globals", "greet.__globals__", "raised", "AttributeError"),
    ("globals by name", "getattr(greet, '__globals__')", "raised", "AttributeError"),
    ("a class by a format", "'{0.__class__.__mro__}'.format(greet)", "raised", "AttributeError"),
    ("globals by a format", "'{0.__globals__}'.format(greet)", "raised", "AttributeError"),
    ("an import by name", "__import__('os')", "call", "__import__"),
    ("a command", "import os\nos.system('true')", "raised", "AttributeError"),
    ("a file", "open('/etc/passwd')\nx = 1", "raised", "PermissionError"),
    ("a file in a with", "with open('x') as f:\n    f()", "raised", "PermissionError"),
    ("leaving", "import sys\nsys.exit(1)", "raised", "AttributeError"),
    ("SystemExit", "raise SystemExit(3)", "raised", "RuntimeError: exceptions can only"),
    ("KeyboardInterrupt", "raise KeyboardInterrupt()", "raised", "KeyboardInterrupt"),
    ("BaseException", "raise BaseException('x')", "raised", "BaseException: x"),
    ("another greet", "greet = 1\ngreet('a')", "raised", "not callable"),
    # handles
    ("a handle twice", "s = seat(1)\ntake(s)\ntake(s)", "handle", "h:Seat:1"),
    ("a handle that was made up", "x = 1\ntake('h:Seat:1')", "handle", "h:Seat:1"),
    ("a handle of another turn", "take('h:Seat:1')", "handle", "h:Seat:1"),
    ("the next handle", "s = seat(1)\ntake('h:Seat:2')", "handle", "h:Seat:2"),
    ("a handle of another kind", "s = seat(1)\ntake(s.replace('Seat', 'Room'))", "handle", "h:Room:1"),
    ("a handle that is an object", "take({'h:Seat:1': 1})\nx = 1", "handle", "h:Seat:1"),
]  # fmt: skip
HARMLESS = [
    ("a pattern that goes back", "import re\nre.match('(a+)+$', 'a' * 26 + 'b')", None),
    ("a longer one", "import re\nre.match('(a+)+$', 'a' * 60 + 'b')", None),
    ("a long sleep", "import time\ntime.sleep(10**9)", None),
    ("a search in a range", "x = 1.5\nx in range(10**12)", False),
    ("many statements", "1\n" * 8_000, 1),
    ("text that looks like a function", "x = 1\n'<function f>'", "<function f>"),
]
IDS = [name for name, *_ in ATTACKS]


@pytest.fixture(scope="module")
def app() -> Iterator[DurableApp]:
    with testing.open(Room) as app:
        app.cell(Room, "lobby").spawn()
        app.cell(Room, "lobby").turn(Room.greet)("before")
        yield app


@pytest.fixture
def timed(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Gives programs as much time as what they are to come to allows."""

    def limited(kind: str) -> None:
        seconds = SECONDS if kind in (TIME, EITHER) else 1.0 if kind == PRINTS else PATIENT
        monkeypatch.setattr(cells, "LIMITS", replace(LIMITS, seconds=seconds))

    limited("")
    return limited


def peak_mb(process: int | str) -> float:
    """The most memory a process ever had."""
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    return 0.0


def workers() -> list[int]:
    return [int(each) for task in Path("/proc/self/task").iterdir() for each in (task / "children").read_text().split()]


async def record(app: testing.AwaitedApp) -> Record:
    seen = await app.host.cells.read("Room", "lobby", caller=app.caller)
    return seen.record


async def rows(app: testing.AwaitedApp) -> list[object]:
    space = await app.host.space("main")
    return [await space.look(Query(table)) for table in (ACTOR, TURN, OWED, ALARM, MAIL)]


def held(fault: Any, kind: str, told: str, source: str) -> None:
    if kind == TIME or isinstance(fault, OutOfTime):
        assert isinstance(fault, OutOfTime)
        assert kind in (TIME, EITHER)
        return
    kind, told = ("limit", MEMORY) if kind == EITHER else (kind, told)
    assert isinstance(fault, TurnFailed)
    assert fault.kind == kind, f"{source[:80]!r} came to {fault}"
    assert re.search(told.replace("(", r"\("), str(fault)), f"{source[:80]!r} came to {fault}"


@pytest.mark.parametrize("name, source, kind, told", ATTACKS, ids=IDS)
def test_an_attack_stays_inside_its_budget_and_leaves_the_cell_as_it_was(
    app: DurableApp, timed: Callable[[str], None], name: str, source: str, kind: str, told: str
) -> None:
    lobby = app.cell(Room, "lobby")
    before, all_before = app.wait_for(record(app.awaited)), app.wait_for(rows(app.awaited))
    own = peak_mb("self")
    timed(name if name == PRINTS else kind)
    with pytest.raises((TurnFailed, OutOfTime)) as fault:
        lobby.run(source)
    timed("")
    held(fault.value, kind, told, source)
    assert app.wait_for(record(app.awaited)) == before
    if isinstance(fault.value, OutOfTime):
        assert app.wait_for(rows(app.awaited)) == all_before, "a fault of time stores nothing"
    assert peak_mb("self") - own < OWN_MB
    assert all(peak_mb(worker) < WORKER_MB for worker in workers())
    assert app.cell(Room, "lobby").run("x = 'still'\nx").value == "still"


@pytest.mark.usefixtures("timed")
@pytest.mark.parametrize("name, source, value", HARMLESS, ids=[name for name, *_ in HARMLESS])
def test_what_only_looks_like_an_attack_is_a_turn(app: DurableApp, name: str, source: str, value: object) -> None:
    before = app.wait_for(record(app.awaited))
    assert app.cell(Room, "lobby").run(source).value == value
    assert app.wait_for(record(app.awaited)) == before


@pytest.mark.parametrize(
    "name, source, kind, told",
    [each for each in ATTACKS if each[2] not in (TIME, EITHER)],
    ids=[each[0] for each in ATTACKS if each[2] not in (TIME, EITHER)],
)
def test_a_letter_that_attacks_is_not_taken_or_is_a_verdict_under_its_key(
    app: DurableApp, timed: Callable[[str], None], name: str, source: str, kind: str, told: str
) -> None:
    before, all_before = app.wait_for(record(app.awaited)), app.wait_for(rows(app.awaited))
    lobby = app.cell(Room, "lobby")
    timed(name)
    try:
        lobby.post(source, key=name)
    except TurnFailed as refused:
        held(refused, kind, told, source)
        assert kind in ("parse", "call") or told == SOURCE
        assert app.wait_for(rows(app.awaited)) == all_before
        return
    app.settle()
    assert app.wait_for(record(app.awaited)) == before
    turns = app.wait_for(rows(app.awaited))
    with pytest.raises(TurnFailed) as fault:
        lobby.run(source, key=name)
    held(fault.value, kind, told, source)
    assert app.wait_for(rows(app.awaited)) == turns, "the verdict was there, and nothing ran again"
    assert app.parked.list() == []


def test_a_letter_that_runs_out_of_time_is_tried_again_and_then_parked(
    app: DurableApp, timed: Callable[[str], None]
) -> None:
    lobby = app.cell(Room, "lobby")
    timed(TIME)
    before = app.wait_for(record(app.awaited))
    lobby.post("while True:\n    greet\n", key="for ever")
    lobby.post("greet('x')\nspoil()", key="behind it")
    app.clock.advance("2 hours")
    assert app.wait_for(record(app.awaited)) == before
    (item,) = app.parked.list()
    assert "A program took longer than" in item.cause
    app.parked.drop(item.id, reason="it never ends")


async def test_over_http_an_attack_is_a_problem_and_the_cell_as_it_was(timed: Callable[[str], None]) -> None:
    async with testing.open(Room) as app:
        await app.cell(Room, "lobby").spawn()
        transport = httpx2.ASGITransport(app=app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:8600", timeout=60) as http:
            for name, source, kind, _ in [each for each in ATTACKS if each[0] != "half of a pair in one call"]:
                timed(name if name == PRINTS else kind)
                answer = await http.post("/cells/Room/lobby/turns", json={"program": source})
                problem = answer.json()
                if kind == TIME or (kind == EITHER and answer.status_code == 503):
                    assert answer.status_code == 503, name
                elif "\0" in source:
                    assert answer.status_code == 400, name
                else:
                    assert (answer.status_code, problem["turn"]["kind"]) == (
                        422,
                        "limit" if kind == EITHER else kind,
                    ), name
        assert await app.cell(Room, "lobby").read() == Room()
        assert (await record(app)).changes == 1
