"""Decisions, changes and pins are written down where the next person looks for them."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

from tests.house.tree import ROOT, parsed, python_files, shown

ADRS = sorted((ROOT / "docs" / "adr").glob("[0-9]*.md"))
PARTS = ("Context", "Decision", "Consequences")
SHORTEST, LONGEST = 20, 45
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def pins() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return dict(line.lower().replace("_", "-").split("==") for line in lines if "==" in line)


def test_a_decision_fits_on_a_page() -> None:
    sizes = {shown(path): len(path.read_text(encoding="utf-8").splitlines()) for path in ADRS}
    assert {path: lines for path, lines in sizes.items() if not SHORTEST <= lines <= LONGEST} == {}


def test_a_decision_has_context_decision_and_consequences() -> None:
    missing = {
        shown(path): lacks
        for path in ADRS
        if (lacks := [p for p in PARTS if not re.search(rf"^## {p}", path.read_text(encoding="utf-8"), re.MULTILINE)])
    }
    assert missing == {}


def test_decisions_are_numbered_once() -> None:
    assert [path.name for path in ADRS if not re.fullmatch(r"\d{4}-[a-z0-9-]+\.md", path.name)] == []
    numbers = [path.name[:4] for path in ADRS]
    assert sorted(set(numbers)) == numbers


def test_every_decision_stands_in_the_index_under_its_title() -> None:
    index = (ROOT / "docs" / "adr" / "README.md").read_text(encoding="utf-8")
    titles = {path: path.read_text(encoding="utf-8").partition("\n")[0] for path in ADRS}
    wanted = {path: re.fullmatch(rf"# {path.name[:4]}: (.+)", title) for path, title in titles.items()}
    assert [shown(path) for path, title in wanted.items() if title is None] == []
    lines = [f"- [{path.name[:4]}]({path.name}): {title[1]}" for path, title in wanted.items() if title]
    assert [line for line in lines if line not in index.splitlines()] == []
    assert len(re.findall(r"^- \[", index, re.MULTILINE)) == len(lines)


def test_the_changelog_opens_with_what_is_new() -> None:
    heads = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert heads
    assert re.match(rf"Unreleased\b|{re.escape(PROJECT['version'])}\b", heads[0])


def test_every_dependency_is_pinned() -> None:
    wanted = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["dev"], "hatchling"]
    names = [re.split(r"[ <>=;\[]", line)[0].lower() for line in wanted]
    assert [name for name in names if name not in pins()] == []


def test_every_dependency_is_imported_and_stands_there_once() -> None:
    names = [re.split(r"[ <>=;\[]", line)[0] for line in PROJECT["dependencies"]]
    assert sorted(set(names)) == sorted(names)
    found = {name.partition(".")[0] for path in python_files("src") for name in imported(path)}
    assert [name for name in names if name.replace("-", "_") not in found] == []


def imported(path: Path) -> Iterator[str]:
    """The modules a file names, also those that it loads when they are first needed."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module


def test_a_pin_is_a_release_and_nothing_else() -> None:
    """No address, no file, no hash: where a release comes from is the installer's business."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if not re.fullmatch(r"#.*|[A-Za-z0-9_.-]+==[0-9][\w.]*", line)] == []


def test_every_make_rule_says_what_it_does() -> None:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert re.findall(r"^([a-z-]+):(?!.*##).*$", text, re.MULTILINE) == []
