"""docs/promises.md names, for each promise and each invariant, tests that exist among the guarantees."""

from __future__ import annotations

import re

import pytest

from tests.house.tree import ROOT, functions, parsed, python_files

PAGE = ROOT / "docs" / "promises.md"
KINDS = ("promises", "invariants")
ROW = re.compile(r"\| (\d+) \| (.+?) \| (.+?) \|$", re.MULTILINE)


def table(kind: str) -> dict[int, tuple[str, list[str]]]:
    """Number to sentence and names of tests."""
    parts = re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    (part,) = [part for part in parts if part.startswith("The ten") and kind in part.splitlines()[0]]
    return {int(number): (said, re.findall(r"`(\w+)`", held)) for number, said, held in ROW.findall(part)}


def guarantees() -> dict[str, int]:
    """How often each test stands in tests/guarantees."""
    found: dict[str, int] = {}
    for path in python_files("tests/guarantees"):
        for function in functions(parsed(path)):
            if function.name.startswith("test_"):
                found[function.name] = found.get(function.name, 0) + 1
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_all_ten_are_there_and_each_is_held_by_a_test_of_the_guarantees(kind: str) -> None:
    rows = table(kind)
    assert list(rows) == list(range(1, 11))
    tests = guarantees()
    assert {number: names for number, (_, names) in rows.items() if not names} == {}
    assert [name for _, names in rows.values() for name in names if tests.get(name) != 1] == []


@pytest.mark.parametrize("kind", KINDS)
def test_each_says_what_it_is_in_a_sentence(kind: str) -> None:
    assert [said for said, _ in table(kind).values() if not re.fullmatch(r"[A-Z].{10,160}\.", said)] == []
