"""The whole check: it never raises, it reads files beside the one it was given, and what we show people is clean."""

from __future__ import annotations

import ast
import sysconfig
import warnings
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onefold.fence import Finding, Source, check
from tests.house.blocks import blocks

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = Path(sysconfig.get_path("stdlib"))
SAMPLE = 150
WITHIN_S = 120  # seconds take a quick machine two or three
LEFT_OUT = {"site-packages", "lib2to3", "idlelib", "turtledemo"}


@cache
def library() -> list[Path]:
    """About 150 files of the standard library, its odd test files too, the same ones each time."""
    files = sorted(path for path in LIBRARY.rglob("*.py") if not LEFT_OUT & {*path.parts})
    return files[:: max(1, len(files) // SAMPLE)]


@cache
def small() -> list[Path]:
    return [path for path in library() if path.stat().st_size < 10_000]


def tree(raw: bytes) -> ast.Module:
    """Raises: SyntaxError, ValueError. Odd escapes are warnings, and no faults here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(raw)


def guarded(raw: bytes) -> bytes:
    """A file in which every function and method is given to a Module, and every other one made an actuator."""
    names = []
    for node in tree(raw).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names.append(node.name)
        elif isinstance(node, ast.ClassDef):
            names += [f"{node.name}.{part.name}" for part in node.body if isinstance(part, ast.FunctionDef)]
    lines = ["", "from onefold import Module as _Module, actuator as _actuator"]
    for at, name in enumerate(names):
        lines.append(f"_actuator({name})" if at % 2 else f"_Module('m', initial=0, decide={name}, snapshot=len)")
    return raw + "\n".join(lines).encode() + b"\n"


def checked(text: str, file: str = "file.py") -> list[Finding]:
    return check([Source(file, text.encode())])


@pytest.mark.timeout(WITHIN_S)
def test_the_standard_library_is_read_without_a_fault_and_without_a_finding() -> None:
    """Nothing in it is Onefold's, and a part of it is no Python of this version, or none at all on purpose."""
    found = [finding for path in library() for finding in check([Source(str(path), path.read_bytes())])]
    assert [finding for finding in found if finding.rule != "syntax"] == []


@pytest.mark.timeout(3 * WITHIN_S)
def test_every_function_of_the_standard_library_can_be_followed() -> None:
    read = 0
    for path in library():
        try:
            raw = guarded(path.read_bytes())
        except (SyntaxError, ValueError):
            continue
        found = check([Source(str(path), raw)])
        assert not [finding for finding in found if finding.rule == "syntax"], path
        read += 1
    assert read > SAMPLE // 2


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_half_a_file_is_a_finding_and_no_fault(data: st.DataObject) -> None:
    """Files cut and glued anywhere: what is left is Python, or it is told of."""
    one = data.draw(st.sampled_from(small())).read_bytes()
    cut = data.draw(st.integers(0, len(one)))
    again = data.draw(st.integers(0, len(one)))
    raw = one[:cut] + data.draw(st.binary(max_size=4)) + one[again:]
    found = check([Source("file.py", raw)])
    try:
        tree(raw)
    except (SyntaxError, ValueError):
        assert [finding.rule for finding in found] == ["syntax"]
    else:
        assert "syntax" not in {finding.rule for finding in found}


HEAD = "from onefold import Module\n"
TAIL = "\nModule('m', initial=0, key=str, decide=decide, snapshot=len)\n"
DEEP = {
    "a sum of 2500 parts": "def decide(s, e, now):\n    return " + "+".join(["1"] * 2500),
    "a chain of 900 calls": "def decide(s, e, now):\n    return s" + ".f()" * 900,
    "900 elifs": "def decide(s, e, now):\n    if e: pass\n" + "".join(f"    elif s == {n}: pass\n" for n in range(900)),
    "80 functions within": "def decide(s, e, now):\n"
    + "".join(f"{' ' * (n + 1)}def f{n}():\n" for n in range(80))
    + " " * 81
    + "return 1",
    "500 functions after one another": "\n".join(f"def f{n}(x): return f{n + 1}(x)" for n in range(500))
    + "\ndef f500(x): return x\ndef decide(s, e, now): return f0(s)",
    "names in a circle": "def decide(s, e, now):\n    while e:\n        a = b\n        b = c\n        c = a | b\n    return list(c)",
    "two functions that call each other": "def f(x): return g(x)\ndef g(x): return f(x)\ndef decide(s, e, now): return f(s)",
    "a class that is its own base": "class A(A): pass\ndef decide(s, e, now): return A().x",
    "a name that is made of itself": "X = X\nY = [Y]\ndef decide(s, e, now):\n    return X, Y[0], now",
}


@pytest.mark.parametrize("title", DEEP)
def test_deep_and_circular_files_are_read(title: str) -> None:
    assert [f for f in checked(HEAD + DEEP[title] + TAIL) if f.rule == "syntax"] == []


@pytest.mark.parametrize(
    "raw",
    [
        b"\0",
        b"\xff\xfe\x00",
        b"# coding: nonsense\n",
        b"x = '\xff'",
        b"def",
        b"  x = 1",
        b"(" * 500,
        b"x = " + b"-" * 90_000,
    ],
    ids=["NUL", "UTF-16", "an unknown encoding", "no UTF-8", "half", "indented", "brackets", "minuses"],
)
def test_what_is_no_python_is_one_finding(raw: bytes) -> None:
    (finding,) = check([Source("file.py", raw)])
    assert finding.rule == "syntax"
    assert finding.line >= 1


def test_the_line_of_a_syntax_error_is_told() -> None:
    (finding,) = checked("x = 1\n\ny = = 2\n")
    assert finding.line == 3


# --- several files ------------------------------------------------------------------------------------

RULES = """
import time

from shop.clock import stamp


def decide(state, event, now):
    return stamp(), time.monotonic()


def evolve(state, fact):
    return state
"""
CLOCK = "import datetime\n\n\ndef stamp():\n    return datetime.datetime.now()\n"
BANK = """
from onefold import Module
from shop import rules
from shop.rules import evolve

Module("bank", initial=0, key=lambda event: event.id, decide=rules.decide, evolve=evolve, snapshot=len)
"""


def beside(files: dict[str, str]):
    def find(importer: str, module: str, level: int) -> Source | None:
        name = "/".join(module.split(".")) if not level else "/".join(["shop", *module.split(".")])
        for file in (f"{name}.py", f"{name}/__init__.py"):
            if file in files:
                return Source(file, files[file].encode())
        return None

    return find


def test_a_modules_functions_are_found_in_the_file_they_stand_in() -> None:
    files = {"shop/rules.py": RULES, "shop/clock.py": CLOCK}
    found = check([Source("shop/bank.py", BANK.encode())], beside(files))
    assert [(f.file, f.line, f.rule) for f in found] == [("shop/clock.py", 5, "clock"), ("shop/rules.py", 8, "clock")]
    assert "decide → stamp" in found[0].problem


def test_without_the_other_file_nothing_is_guessed() -> None:
    assert check([Source("shop/bank.py", BANK.encode())]) == []


def test_a_relative_import_is_followed() -> None:
    bank = BANK.replace("from shop import rules", "from . import rules").replace("from shop.rules", "from .rules")
    files = {"shop/rules.py": RULES.replace("from shop.clock", "from .clock"), "shop/clock.py": CLOCK}
    assert len(check([Source("shop/bank.py", bank.encode())], beside(files))) == 2


def test_a_comment_in_the_other_file_is_heard() -> None:
    files = {
        "shop/rules.py": RULES,
        "shop/clock.py": CLOCK.replace(".now()", ".now()  # onefold: allow clock because x"),
    }
    found = check([Source("shop/bank.py", BANK.encode())], beside(files))
    assert [f.file for f in found] == ["shop/rules.py"]


def test_an_idle_comment_is_told_of_only_where_the_file_was_asked_for() -> None:
    files = {"shop/rules.py": RULES + "X = 1  # onefold: allow chance because x\n", "shop/clock.py": CLOCK}
    bank = Source("shop/bank.py", BANK.encode())
    assert "allow" not in {f.rule for f in check([bank], beside(files))}
    both = check([bank, Source("shop/rules.py", files["shop/rules.py"].encode())], beside(files))
    assert [f.file for f in both if f.rule == "allow"] == ["shop/rules.py"]


def test_a_file_that_cannot_be_read_beside_the_one_asked_for_is_left_alone() -> None:
    assert check([Source("shop/bank.py", BANK.encode())], beside({"shop/rules.py": "def decide(:"})) == []


def test_the_standard_library_is_never_looked_for_among_the_users_files() -> None:
    text = "import random\nfrom onefold import Module\nModule('m', initial=0, decide=lambda s, e, n: random.random(), snapshot=len)"
    found = check([Source("a.py", text.encode())], beside({"random.py": "def random(): return 4"}))
    assert [f.rule for f in found] == ["chance"]


def test_two_files_that_import_each_other_are_read() -> None:
    files = {"shop/a.py": "from shop.b import x as y\nx = y", "shop/b.py": "from shop.a import x as y\nx = y"}
    text = "from shop.a import x\nfrom onefold import Module\nModule('m', initial=0, decide=x, snapshot=len)"
    assert check([Source("c.py", text.encode())], beside(files)) == []


def test_a_place_that_several_reach_is_told_of_once() -> None:
    text = """
import time
from onefold import Module
def stamp(): return time.time()
def decide(s, e, now): return stamp()
def evolve(s, f): return stamp()
Module("a", initial=0, decide=decide, evolve=evolve, snapshot=len)
Module("b", initial=0, decide=decide, snapshot=len)
"""
    (finding,) = checked(text)
    assert 'decide of module "a"' in finding.problem


def test_two_things_of_one_line_are_two_findings() -> None:
    text = "import time\nfrom onefold import Module\nModule('m', initial=0, decide=lambda s, e, n: (time.time(), time.time()), snapshot=len)"
    assert [f.rule for f in checked(text)] == ["clock", "clock"]


def test_findings_come_by_file_and_line() -> None:
    one = (
        "import time\nfrom onefold import Module\nModule('m', initial=time.time(), decide=lambda s, e, n: time.time())"
    )
    found = check([Source("b.py", one.encode()), Source("a.py", one.encode())])
    assert [f.file for f in found] == ["a.py"] * 3 + ["b.py"] * 3
    assert found == sorted(found)


# --- what we show people --------------------------------------------------------------------------------

SHOWN = [
    *sorted((ROOT / "examples").glob("*.py")),
    *sorted((ROOT / "src" / "onefold" / "cli" / "templates").glob("*/*.py.txt")),
]


@pytest.mark.parametrize("path", SHOWN, ids=lambda path: str(path.relative_to(ROOT)))
def test_examples_and_templates_are_clean(path: Path) -> None:
    assert check([Source(str(path), path.read_bytes())]) == []


DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_code_in_documents_is_clean_but_for_what_is_shown_on_purpose(document: Path) -> None:
    code = [b for b in blocks(document) if b.language == "python" and "sketch" not in b.marks]
    found = [f for block in code for f in checked(block.code, f"{document.name}:{block.line}")]
    wrong = {f.rule for f in found}
    assert wrong == ({"clock", "key-source"} if document.name == "check.md" else set())
