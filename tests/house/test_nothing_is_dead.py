"""Code that nobody reaches is a claim that nobody checks."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.house.tree import modules, parsed, python_files, shown

# Doors: what a person, an installer or an interpreter starts. Everything else is imported by something.
DOORS = {"onefold", "onefold.cli", "onefold.__main__"}


def names_in(path: Path) -> set[str]:
    """Every dotted name a file imports, and every text in it that could name a module loaded when first needed."""
    found: set[str] = set()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("onefold."):
            found |= {node.value, node.value.rpartition(":")[0]}
    return found


def reached() -> set[str]:
    """The names that something else mentions. What `testing` offers is reached by tests and benches."""
    package = modules()
    found = {name for module, path in package.items() for name in names_in(path) if name != module}
    outside = {name for path in python_files("tests", "bench", "examples") for name in names_in(path)}
    return found | {name for name in outside if name.startswith("onefold.testing")}


def test_every_module_is_reached() -> None:
    package, used = modules(), reached()
    dead = [
        shown(path)
        for name, path in package.items()
        if name not in DOORS and name not in used and not any(other.startswith(f"{name}.") for other in package)
    ]
    assert dead == []


def test_no_package_holds_nothing() -> None:
    """A room is drawn when it is built: a folder with only a head says more than there is."""
    package = modules()
    hollow = [
        shown(path)
        for name, path in package.items()
        if path.name == "__init__.py"
        and not any(other.startswith(f"{name}.") for other in package)
        and len(parsed(path).body) <= 1
    ]
    assert hollow == []


def test_nothing_is_promised_for_later() -> None:
    """No method that only raises NotImplementedError: what is not built is not named."""
    promised = [
        f"{shown(path)}:{node.lineno}"
        for path in python_files("src", "examples")
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Name) and node.id == "NotImplementedError"
    ]
    assert promised == []
