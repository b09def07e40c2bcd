"""The floors are a contract, a start stays small, and a forgotten case is found by both type checkers."""

from __future__ import annotations

import configparser
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.tree import PACKAGE, ROOT, modules

HEAVY = {"click", "jinja2", "mcp", "prometheus_client", "pydantic", "pytest", "starlette", "uvicorn"}
FORGOTTEN = """\
from onefold import Approved, Expired, Rejected

def paid(answer: Approved | Rejected | Expired) -> bool:
    match answer:
        case Approved():
            return True
        case Rejected():
            return False
    return False
"""


def contracts() -> configparser.ConfigParser:
    read = configparser.ConfigParser()
    read.read(ROOT / ".importlinter", encoding="utf-8")
    return read


def layers() -> list[str]:
    lines = contracts()["importlinter:contract:floors"]["layers"].split("\n")
    return [word.strip() for line in lines for word in line.replace(":", "|").split("|") if word.strip()]


def exists(room: str) -> bool:
    return (PACKAGE / room / "__init__.py").exists() or (PACKAGE / f"{room}.py").exists()


def test_a_room_that_is_built_is_no_longer_in_parentheses() -> None:
    """An optional floor holds nothing by itself; it is for rooms that are still to come."""
    assert [room for room in layers() if room.startswith("(") and exists(room.strip("()"))] == []


def test_a_pure_room_that_is_built_is_held_pure() -> None:
    held = contracts()["importlinter:contract:pure"]["source_modules"].split()
    built = [f"onefold.{room}" for room in ("terms", "almanac", "fence", "kernel", "machine") if exists(room)]
    assert [room for room in built if room not in held] == []


def loaded_by(imports: list[str]) -> set[str]:
    code = f"import importlib, sys\nfor name in {imports!r}: importlib.import_module(name)\nprint(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT / "src")
    assert ran.returncode == 0, ran.stderr
    return set(ran.stdout.split())


def test_a_start_stays_small() -> None:
    """Heavy libraries are imported when first needed: an app of one module starts in a quarter of a second."""
    assert loaded_by(["onefold"]) & HEAVY == set()


@pytest.mark.parametrize("room", ["terms", "store", "kernel", "node"])
def test_the_kernel_runs_without_what_people_write_with(room: str) -> None:
    """A module's events are dataclasses; pydantic is loaded where somebody used it."""
    assert loaded_by([name for name in modules() if f"{name}.".startswith(f"onefold.{room}.")]) & HEAVY == set()


def test_mypy_finds_a_forgotten_case(tmp_path: Path) -> None:
    file = tmp_path / "forgotten.py"
    file.write_text(FORGOTTEN, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--config-file", "pyproject.toml", str(file)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert "[exhaustive-match]" in ran.stdout, ran.stdout + ran.stderr
    assert "Found 1 error" in ran.stdout, ran.stdout


@pytest.mark.needs_node
def test_pyright_finds_a_forgotten_case(tmp_path: Path, pyright: list[str]) -> None:
    (tmp_path / "forgotten.py").write_text("# pyright: reportMatchNotExhaustive=true\n" + FORGOTTEN, encoding="utf-8")
    ran = subprocess.run(
        [*pyright, "--pythonpath", sys.executable, str(tmp_path / "forgotten.py")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "reportMatchNotExhaustive" in ran.stdout, ran.stdout + ran.stderr
    assert "could not be resolved" not in ran.stdout
