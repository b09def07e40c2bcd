"""What is public is a list, the list is true, and nothing else is public. Its order is the linter's (RUF022)."""

from __future__ import annotations

import importlib
import tomllib

import pytest

from tests.house.tree import PACKAGE, ROOT, modules

# The public API, name by name. A name whose room is not built yet stands in LATER.
NAMES = set(
    "App actuator Actuator Run Step Retry Receipt Approved Rejected Expired Module Decision Owed Answer "
    "port Port Cell Reflexes OnefoldError Failed blocking errors __version__".split()
)
LATER = {"Cell": "cell", "Reflexes": "reflex"}
PUBLIC_ROOMS = ("blocking", "cell", "machine", "timers", "reflex", "fleet", "testing")


def built(room: str) -> bool:
    return (PACKAGE / room / "__init__.py").exists() or (PACKAGE / f"{room}.py").exists()


def test_onefold_exports_the_names_of_the_api() -> None:
    expected = NAMES - {name for name, room in LATER.items() if not built(room)}
    assert set(importlib.import_module("onefold").__all__) == expected


@pytest.mark.parametrize("room", [room for room in PUBLIC_ROOMS if built(room)])
def test_a_public_room_says_what_is_public(room: str) -> None:
    assert importlib.import_module(f"onefold.{room}").__all__


def test_each_error_of_the_tree_can_be_imported_by_its_public_name() -> None:
    public = importlib.import_module("onefold.errors")
    trees = [importlib.import_module(f"onefold.terms.{name}") for name in ("errors", "damage", "turns")]
    drawn = {
        name: value
        for tree in trees
        for name, value in vars(tree).items()
        if isinstance(value, type) and value.__module__ == tree.__name__
    }
    assert drawn.keys() - set(public.__all__) == set()
    assert all(getattr(public, name) is getattr(trees[0], name, drawn.get(name)) for name in public.__all__)
    assert importlib.import_module("onefold").errors is public


def test_every_export_exists_once() -> None:
    wrong: dict[str, list[str]] = {}
    for name in modules():
        if name == "onefold.__main__":
            continue
        module = importlib.import_module(name)
        listed = list(getattr(module, "__all__", ()))
        faults = [item for item in listed if not hasattr(module, item)]
        faults += [item for item in set(listed) if listed.count(item) > 1]
        if faults:
            wrong[name] = faults
    assert wrong == {}


def test_the_version_is_said_once() -> None:
    said = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    assert importlib.import_module("onefold").__version__ == said
