"""The repository as the house rules read it: which files there are, and what is in them.

For: finding files, parsing them once, naming modules.
Never: judges. Each rule stands in a test of its own, and says there why it is a rule.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterator
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "onefold"
CODE = ("src", "tests", "examples", "bench", "build_support")
PROSE = ("README.md", "CHANGELOG.md", "docs", "examples", "bench", "src", "tests", "build_support")
SETTINGS = ("Makefile", "pyproject.toml", "ruff.toml", ".importlinter", ".ci/run", "constraints.txt", "onefold.toml")
TEXT = {".py", ".md", ".toml", ".json", ".txt", ".sh", ".sql", ".html", ".css", ".js", ".yml", ".yaml", ""}


def python_files(*folders: str) -> list[Path]:
    """Every Python file below the folders, in order."""
    return sorted(path for folder in folders or CODE for path in (ROOT / folder).rglob("*.py"))


def text_files() -> Iterator[Path]:
    """Every file a person may read: code, prose, settings."""
    for name in (*SETTINGS, *PROSE):
        place = ROOT / name
        if place.is_file():
            yield place
        elif place.is_dir():
            yield from sorted(p for p in place.rglob("*") if p.is_file() and p.suffix in TEXT and not _made(p))


def _made(path: Path) -> bool:
    """Whether a tool made it: what lies in a cache, or in what git ignores, is nobody's words."""
    return ignored(path) or any(part.startswith(".") for part in path.relative_to(ROOT).parts)


def ignored(path: Path) -> bool:
    """Whether .gitignore names it, or a folder it lies in. Read here: an unpacked archive has no git to ask."""
    parts = path.relative_to(ROOT).parts
    return any(fnmatch(part, pattern) for part in parts for pattern in _ignored_names())


@cache
def _ignored_names() -> tuple[str, ...]:
    lines = (ROOT / ".gitignore").read_text(encoding="utf-8").split()
    return tuple(line.rstrip("/") for line in lines)


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def comments(path: Path) -> Iterator[tuple[int, str]]:
    """Each comment with its line."""
    for token in tokenize.generate_tokens(io.StringIO(path.read_text(encoding="utf-8")).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def shown(path: Path) -> str:
    return str(path.relative_to(ROOT))


def module_name(path: Path) -> str:
    """`src/onefold/kernel/fold.py` is `onefold.kernel.fold`; a package's `__init__.py` is the package."""
    parts = list(path.relative_to(ROOT / "src").with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def modules() -> dict[str, Path]:
    """Every module of the package by its name."""
    return {module_name(path): path for path in python_files("src")}


def rooms() -> dict[str, Path]:
    """The rooms: folders directly under the package that hold code."""
    return {p.name: p for p in sorted(PACKAGE.iterdir()) if p.is_dir() and any(p.glob("*.py"))}


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
