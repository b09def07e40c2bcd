"""The list of commands: each explained, each in the documentation, and none of them slow to be asked about."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from onefold import __version__
from onefold.cli.root import root

ROOT = Path(__file__).resolve().parents[2]
HEAVY = {"pydantic", "httpx2", "mcp", "starlette", "uvicorn", "apsw", "msgspec", "jinja2"}


def commands(of: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, command in of.commands.items():
        yield (*path, name)
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))


@pytest.mark.parametrize("path", list(commands(root)), ids=" ".join)
def test_every_command_explains_itself(typed: Any, path: tuple[str, ...]) -> None:
    ended = typed(*path, "--help")
    assert ended.exit_code == 0
    assert len(ended.stdout.splitlines()) > 4


def test_every_command_stands_in_the_documentation() -> None:
    told = (ROOT / "README.md").read_text() + (ROOT / "docs" / "tour.md").read_text()
    assert [name for name in root.commands if f"onefold {name}" not in told] == []


def test_the_version_is_said(typed: Any) -> None:
    assert typed("--version").stdout == f"onefold {__version__}\n"


def test_help_loads_nothing_heavy() -> None:
    code = "import sys; from onefold.cli.root import root; root.main(['--help'], standalone_mode=False); print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], cwd=ROOT / "src", capture_output=True, text=True, check=True)
    assert set(ran.stdout.split()) & HEAVY == set()


@pytest.mark.parametrize("arguments", [(), ("nonsense",), ("runs", "nonsense"), ("call",), ("runs", "show")])
def test_what_is_typed_wrongly_ends_with_2(typed: Any, arguments: tuple[str, ...]) -> None:
    assert typed(*arguments).exit_code == 2
