"""A name says what a thing is; a head says what it is for and what it never does."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tests.house.tree import comments, functions, modules, parsed, python_files, rooms, shown

# Words that say where code ended up and not what it does.
EMPTY_WORDS = re.compile(r"(^|_)(utils?|managers?|helpers?|misc|common|stuff)(_|$)")
EMPTY_CLASSES = re.compile(r"(Utils?|Manager|Helper|Handler)$")
HEAD_LINES = 3

# Where a broad except may stand, and what passes through that door.
DOORS = {
    "host": "the driver: a fault of one part must not stop the clock of all",
    "node": "a module's own fault is its caller's answer, and takes no other turn of the batch along",
    "store": "one party's fault is its own outcome, and takes no other body of the commit along",
    "program": "what a method of a cell raises is its turn's verdict, and stored as one",
    "actuators": "effect execution: every fault of a step becomes a row",
    "reflex": "what a template, a selection or an effect raises is a row of its own run, and stops no other",
    "ports": "what a stranger's file raises is the answer to who asked it, and ends no pass but its own",
    "serve": "every fault becomes a problem that a caller can read",
    "terms": "what an author's own words and looks raise is said of them, and breaks no refusal",
    "testing": "what a module under test raises is for a law to judge",
}


def head(path: Path) -> str:
    return ast.get_docstring(parsed(path)) or ""


def test_no_file_has_a_name_that_says_nothing() -> None:
    assert [shown(path) for path in python_files() if EMPTY_WORDS.search(path.stem)] == []


def test_no_class_has_a_name_that_says_nothing() -> None:
    found = [
        f"{shown(path)}:{node.lineno} {node.name}"
        for path in python_files("src")
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.ClassDef) and EMPTY_CLASSES.search(node.name)
    ]
    assert found == []


def test_every_file_opens_with_a_head() -> None:
    assert [shown(path) for path in python_files() if path.name != "__init__.py" and not head(path)] == []


def test_every_room_says_what_it_is_for_and_what_it_never_does() -> None:
    """In its `__init__`, or in the file that carries the room: at least three lines, one of them with a never."""

    def says(path: Path) -> bool:
        text = head(path)
        return len(text.splitlines()) >= HEAD_LINES and "never" in text.lower()

    assert [name for name, folder in rooms().items() if not any(map(says, sorted(folder.glob("*.py"))))] == []


def imports() -> dict[str, set[str]]:
    """Which rooms each room imports, also when it first needs them."""
    found: dict[str, set[str]] = {name: set() for name in rooms()}
    for room, folder in rooms().items():
        for path in folder.rglob("*.py"):
            for node in ast.walk(parsed(path)):
                named = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
                named += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
                found[room] |= {part for name in named if (part := f"{name}..".split(".")[1]) in found} - {room}
    return found


def test_a_head_that_says_what_its_room_imports_says_what_is_so() -> None:
    real, wrong = imports(), []
    for room, folder in rooms().items():
        told = re.search(
            r"^Imports: (.+?)\.  Imported by: (.+?)\.$", head(folder / "__init__.py"), re.MULTILINE | re.DOTALL
        )
        if told is None or "every room" in told[2]:
            continue
        takes, taken = ({*re.findall(r"\w+", part)} & real.keys() for part in told.groups())
        if (takes, taken) != (real[room], {other for other in real if room in real[other]}):
            wrong.append((room, real[room], sorted(other for other in real if room in real[other])))
    assert wrong == []


def test_a_broad_except_is_one_of_the_doors() -> None:
    """The linter (BLE001) finds every broad except; the ones let through name their door, in a room that has one."""
    wrong = [
        f"{shown(path)}:{line} {text}"
        for name, path in modules().items()
        for line, text in comments(path)
        if "BLE001" in text and ("the door:" not in text or name.split(".")[1] not in DOORS)
    ]
    assert wrong == []


def test_every_silenced_finding_says_why() -> None:
    """`# noqa: CODE - reason`, so that the next reader can tell whether it still holds."""
    silent = [
        f"{shown(path)}:{line} {text}"
        for path in python_files()
        for line, text in comments(path)
        if "noqa:" in text and not re.search(r"noqa: [A-Z]+\d+(, ?[A-Z]+\d+)* - \S", text)
    ]
    assert silent == []


def test_every_test_holds_something() -> None:
    """A test without an assertion passes whatever happens."""
    holds = re.compile(r"raises|warns|fail|check|expect|assert|run|prove|refuse|survives|released", re.IGNORECASE)

    def asserts(node: ast.AST) -> bool:
        if isinstance(node, ast.Assert):
            return True
        called = node.func if isinstance(node, ast.Call) else None
        name = called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else ""
        return bool(holds.search(name))

    hollow = [
        f"{shown(path)}:{test.lineno} {test.name}"
        for path in python_files("tests")
        for test in functions(parsed(path))
        if test.name.startswith("test_") and not any(asserts(node) for node in ast.walk(test))
    ]
    assert hollow == []
