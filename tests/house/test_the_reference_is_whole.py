"""The reference names every option, verb, setting and error there is, and says of an error what the code says."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from onefold import App, Module, Receipt, Retry, Run, errors, reflex
from onefold.actuators.database import Database
from onefold.actuators.declare import Actuator
from onefold.host.config import Config, settle
from onefold.host.settings import KNOWN
from onefold.host.verbs import Approvals, Blobs, Parked, Runs
from onefold.reflex import CelTransform, Engine, Reflexes, Signal, Task, Write, effect, select
from tests.house.blocks import Block, blocks
from tests.house.tree import ROOT

REFERENCE = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
SETTINGS = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
TABLES = [block for block in blocks(ROOT / "docs" / "settings.md") if block.language == "toml"]
WORDS = set(re.findall(r"\w+", " ".join(re.findall(r"`([^`\n]+)`", REFERENCE))))
UNTOLD = {"settled", "host", "drain", "function"}  # of the app: for those who serve it; of @actuator: what it stands on
PLAIN = {"self", "f", "part", "data", "other"}  # told by their place, under another word; other: taken to be refused
CARRIED = {"Fault", "Finding", "OnefoldError", "Suspended"}  # no row of their own


def public(of: type) -> Iterator[str]:
    return (name for name in vars(of) if not name.startswith("_"))


@pytest.mark.parametrize("of", [App, Run, Database, Runs, Approvals, Parked, Blobs])
def test_every_verb_is_told(of: type) -> None:
    assert set(public(of)) - WORDS - UNTOLD == set()


SPOKEN = [
    verb
    for of in (App, Run, Database, Runs, Approvals, Parked, Blobs, Receipt)
    for name in public(of)
    if name not in UNTOLD and inspect.isfunction(verb := vars(of)[name])
]
MADE = [App.__init__, Actuator.__init__, Module.__init__, Retry.__init__]
MADE += [made.__init__ for made in (Reflexes, Engine, CelTransform, Task, Write, Signal)]
MADE += [type(effect).__call__, effect.sql, type(select).__call__, select.sql]


def test_every_name_of_reflexes_is_told() -> None:
    assert set(reflex.__all__) - WORDS == set()


@pytest.mark.parametrize("takes", [*MADE, *SPOKEN], ids=lambda takes: takes.__qualname__)
def test_every_argument_is_told(takes: Callable[..., object]) -> None:
    assert set(inspect.signature(takes).parameters) - WORDS - UNTOLD - PLAIN == set()


def test_every_error_is_told_as_it_is() -> None:
    told = {
        name: (int(status), int(code))
        for name, status, code in re.findall(r"^\| \**`(\w+)`\** \| (\d+) \| (\d+) \|", REFERENCE, re.MULTILINE)
    }
    raised = {name: getattr(errors, name) for name in set(errors.__all__) - CARRIED}
    assert told == {name: (kind.status, kind.exit) for name, kind in raised.items()}


def test_every_setting_is_told_with_its_variable() -> None:
    named = [setting.replace("*", "NAME") for setting in KNOWN]
    told = set(re.findall(r"`([^`\n]+)`", SETTINGS))
    assert [name for name in named if not {name, variable(name)} <= told] == []


def variable(setting: str) -> str:
    return f"ONEFOLD_{setting.upper().replace('.', '__')}"


@pytest.mark.parametrize("block", TABLES, ids=lambda block: f"line {block.line}")
def test_each_example_of_settings_is_taken(block: Block, tmp_path: Path) -> None:
    (tmp_path / "onefold.toml").write_text(block.code, encoding="utf-8")
    assert settle(file=tmp_path / "onefold.toml") != Config()
