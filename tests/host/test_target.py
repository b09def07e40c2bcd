"""From what a person types to what is served."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from onefold import App
from onefold.host.target import Target, file_of, load
from onefold.terms.errors import LoadRefused

ACTUATOR = """
from pydantic import BaseModel
from onefold import App, Run, actuator

class Asked(BaseModel):
    name: str

@actuator
async def {name}(run: Run, asked: Asked) -> str:
    return asked.name
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder; what a test imports from it is forgotten afterwards."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


def written(folder: Path, name: str, text: str) -> None:
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text(text, encoding="utf-8")


def loaded(target: str, folder: Path) -> Target[App]:
    return load(target, App, folder)


def refused(target: str, folder: Path) -> str:
    with pytest.raises(LoadRefused) as caught:
        load(target, App, folder)
    return str(caught.value)


def test_a_file_without_an_app_offers_the_actuators_it_defines_itself(folder: Path) -> None:
    written(folder, "other_part.py", ACTUATOR.format(name="imported"))
    written(folder, "greeting.py", "from other_part import imported\n" + ACTUATOR.format(name="greet"))
    found = loaded("greeting.py", folder)
    assert [part.name for part in found.parts] == ["greet"]
    assert (found.app, found.title, found.file) == (None, "greeting", folder / "greeting.py")


def test_an_app_file_offers_its_app(folder: Path) -> None:
    written(folder, "shop.py", ACTUATOR.format(name="greet") + 'app = App(greet, store="memory:")\n')
    found = loaded("shop.py", folder)
    assert isinstance(found.app, App)
    assert found.parts == ()


def test_a_name_picks_one_part(folder: Path) -> None:
    text = ACTUATOR.format(name="greet") + ACTUATOR.format(name="leave") + "small = App(leave)\n"
    written(folder, "both.py", text)
    assert [part.name for part in loaded("both.py:greet", folder).parts] == ["greet"]
    assert isinstance(loaded("both.py:small", folder).app, App)


def test_a_package_is_imported_from_the_working_folder(folder: Path) -> None:
    written(folder, "shop_pkg/__init__.py", "")
    written(folder, "shop_pkg/tools.py", ACTUATOR.format(name="greet"))
    assert [part.name for part in loaded("shop_pkg.tools:greet", folder).parts] == ["greet"]
    assert file_of("shop_pkg.tools:greet", folder) == folder / "shop_pkg" / "tools.py"
    assert file_of("shop_pkg", folder) == folder / "shop_pkg" / "__init__.py"


def test_a_file_named_like_a_library_does_not_take_its_place(folder: Path) -> None:
    written(folder, "json.py", ACTUATOR.format(name="greet"))
    before = sys.modules.get("json")
    assert [part.name for part in loaded("json.py", folder).parts] == ["greet"]
    assert sys.modules.get("json") is before


@pytest.mark.parametrize(
    "target, told",
    [
        ("missing.py", "there is no such file"),
        ("empty.py", "holds neither `app = onefold.App(...)` nor an actuator of its own"),
        ("empty.py:gret", "did you mean 'greet'?"),
        ("empty.py:greet", "is a int, not an App and not an actuator"),
        ("wrong_app.py", "'app' is a str, not an App"),
        ("syntax.py", "syntax.py:2: "),
        ("raises.py", "raises.py:3: KeyError: 'PAY_URL'"),
        ("needs.py", "needs.py:2: the variable SHOP_PAY_URL is not set; set it where this is started"),
        ("imports.py", "imports.py:1: ModuleNotFoundError"),
        ("not a target", "is no target. Write file.py"),
        ("", "is no target"),
        ("nowhere.to_be_found", "ModuleNotFoundError"),
    ],
)
def test_what_cannot_be_served_is_refused_with_its_place(folder: Path, target: str, told: str) -> None:
    written(folder, "empty.py", "greet = 1\n")
    written(folder, "wrong_app.py", "app = 'x'\n")
    written(folder, "syntax.py", "x = 1\ndef f(:\n")
    written(folder, "raises.py", "import os\ndef read():\n    return {}['PAY_URL']\nread()\n")
    written(folder, "needs.py", "import os\nURL = os.environ['SHOP_PAY_URL']\n")
    written(folder, "imports.py", "import there_is_no_such_module_here\n")
    assert told in refused(target, folder)


def test_a_file_that_was_refused_can_be_loaded_once_it_is_mended(folder: Path) -> None:
    written(folder, "mended.py", "1 / 0\n")
    assert "ZeroDivisionError" in refused("mended.py", folder)
    written(folder, "mended.py", ACTUATOR.format(name="greet"))
    assert [part.name for part in loaded("mended.py", folder).parts] == ["greet"]
