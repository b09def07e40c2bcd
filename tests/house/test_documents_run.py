"""A document is a program for people: its code runs, its links lead somewhere, its commands exist."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.blocks import FENCE, Block, blocks
from tests.house.tree import ROOT, shown

README = ROOT / "README.md"
DOCUMENTS = [path for path in (README, *sorted((ROOT / "docs").rglob("*.md"))) if path.exists()]
RUN_WITHIN_S = 60
documents = pytest.mark.parametrize("document", DOCUMENTS, ids=shown)


def printed(block: Block, folder: Path, document: Path) -> str:
    """Run one block the way a reader would: a file of its own, in an empty folder, with the installed package."""
    script = folder / f"block_{block.line}.py"
    script.write_text(block.code, encoding="utf-8")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(folder)])}
    ran = subprocess.run(
        [sys.executable, script.name],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        timeout=RUN_WITHIN_S,
        check=False,
    )
    assert ran.returncode == 0, f"{shown(document)}:{block.line} ended {ran.returncode}\n{ran.stdout}{ran.stderr}"
    return ran.stdout


@documents
def test_its_marked_blocks_run(document: Path, tmp_path: Path) -> None:
    last: str | None = None
    for block in blocks(document):
        if block.file:
            (tmp_path / block.file).write_text(block.code, encoding="utf-8")
        elif block.language == "python" and "run" in block.marks:
            last = printed(block, tmp_path, document)
        elif block.language == "text" and "output" in block.marks:
            assert last == block.code, f"{shown(document)}:{block.line} shows another output than its code prints"


@documents
def test_its_other_python_parses(document: Path) -> None:
    for block in blocks(document):
        if block.language == "python" and "sketch" not in block.marks:
            ast.parse(block.code, filename=f"{shown(document)}:{block.line}")
    assert all(block.language for block in blocks(document)), "a block without a language is not checked; say text"


@documents
def test_its_links_lead_somewhere(document: Path) -> None:
    targets = re.findall(r"\]\((?!https?:|mailto:|#)([^)#\s]+)", document.read_text(encoding="utf-8"))
    assert [target for target in targets if not (document.parent / target).exists()] == []


def sections(document: Path) -> list[str]:
    """Its headings, as links name them."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", document.read_text(encoding="utf-8")), re.MULTILINE)
    return [re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings]


@documents
def test_its_links_lead_to_sections_that_are_there(document: Path) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#\s]*)#([^)\s]+)\)", document.read_text(encoding="utf-8"))
    wrong = [
        f"{file}#{section}"
        for file, section in links
        if section not in sections((document.parent / file) if file else document)
    ]
    assert wrong == []


@documents
def test_it_has_one_title_and_says_nothing_twice(document: Path) -> None:
    text = FENCE.sub("", document.read_text(encoding="utf-8"))
    assert len(re.findall(r"^# ", text, re.MULTILINE)) == 1
    named = sections(document)
    assert [section for section in set(named) if named.count(section) > 1] == []


@documents
def test_its_make_commands_exist(document: Path) -> None:
    rules = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    named = set(re.findall(r"(?:^|`|\$ )make ([a-z-]+)", document.read_text(encoding="utf-8"), re.MULTILINE))
    assert named - rules == set()


def test_the_readme_is_a_program() -> None:
    """The first page shows code that runs as printed, and the two commands that set everything up."""
    assert README.exists(), "a reader begins at README.md"
    text = README.read_text(encoding="utf-8")
    assert any("run" in block.marks or block.file for block in blocks(README))
    assert {"make run", "make test"} <= set(re.findall(r"make (?:run|test)\b", text))
