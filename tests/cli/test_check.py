"""`onefold check`: findings as people and programs read them, and what it ends with."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from onefold.cli.root import root
from onefold.terms.codec import parse

ROOT = Path(__file__).resolve().parents[2]
CLEAN = "from onefold import Module\n\nbank = Module('bank', initial=0, key=str, snapshot=len)\n"
CLOCK = """import time

from onefold import Module


def decide(state, event, now):
    return time.time()


bank = Module("bank", initial=0, key=str, decide=decide, snapshot=len)
"""


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """The folder that `typed` works in."""
    (tmp_path / "clean.py").write_text(CLEAN)
    (tmp_path / "clock.py").write_text(CLOCK)
    return tmp_path


def test_nothing_found_ends_with_0(typed: Any, here: Path) -> None:
    ended = typed("check", "clean.py")
    assert (ended.exit_code, ended.stdout, ended.stderr) == (0, "", "1 file: nothing found.\n")


def test_a_finding_ends_with_1_and_says_where_what_and_what_instead(typed: Any, here: Path) -> None:
    ended = typed("check", "clock.py", "clean.py")
    assert ended.exit_code == 1
    first, second = ended.stdout.splitlines()
    assert first.startswith('clock.py:7: clock: In decide of module "bank", `time.time()` reads the clock')
    assert second == "    Use the argument `now`."
    assert ended.stderr == "2 files: 1 finding.\n"


def test_json_is_alone_on_stdout(typed: Any, here: Path) -> None:
    ended = typed("check", "--json", "clock.py")
    assert ended.exit_code == 1
    (finding,) = parse(ended.stdout.encode())["findings"]
    assert {*finding} == {"file", "line", "rule", "problem", "instead"}
    assert (finding["file"], finding["line"], finding["rule"]) == ("clock.py", 7, "clock")
    assert parse(typed("check", "--json", "clean.py").stdout.encode()) == {"findings": []}


def test_a_folder_stands_for_the_python_below_it(typed: Any, here: Path) -> None:
    for place in (".venv/x.py", "node_modules/x.py", "__pycache__/x.py", "env/x.py", "shop/inner/x.py"):
        (here / place).parent.mkdir(parents=True)
        (here / place).write_text(CLOCK)
    (here / "env" / "pyvenv.cfg").touch()
    (here / "notes.txt").write_text(CLOCK)
    ended = typed("check", ".")
    assert re.findall(r"^(\S+):\d+:", ended.stdout, re.MULTILINE) == ["clock.py", "shop/inner/x.py"]


def test_a_file_that_is_named_is_checked_whatever_it_is_called(typed: Any, here: Path) -> None:
    (here / "clock.txt").write_text(CLOCK)
    assert typed("check", "clock.txt").stdout.startswith("clock.txt:7")


def test_the_same_file_twice_is_one(typed: Any, here: Path) -> None:
    assert typed("check", "clock.py", "./clock.py", str(here)).stderr == "2 files: 1 finding.\n"


def test_one_rule_shows_only_that_one(typed: Any, here: Path) -> None:
    assert typed("check", "clock.py", "--rule", "chance").exit_code == 0
    assert typed("check", "clock.py", "--rule", "chance", "--rule", "clock").exit_code == 1


@pytest.mark.parametrize(
    "arguments,said",
    [
        ((), "PATH"),
        (("missing.py",), "missing.py"),
        (("clock.py", "--rule", "clok"), "Did you mean clock?"),
        (("clock.py", "--rule", "x"), "There are clock, chance"),
        (("empty",), "no Python file"),
        (("clock.py", "--nonsense"), "nonsense"),
    ],
)
def test_what_is_typed_wrongly_ends_with_2(typed: Any, here: Path, arguments: tuple[str, ...], said: str) -> None:
    (here / "empty").mkdir()
    ended = typed("check", *arguments)
    assert ended.exit_code == 2
    assert said in ended.stderr


def test_a_syntax_error_is_a_finding(typed: Any, here: Path) -> None:
    (here / "half.py").write_text("def decide(:\n")
    ended = typed("check", "half.py")
    assert ended.exit_code == 1
    assert ended.stdout.startswith("half.py:1: syntax:")


def test_nothing_of_what_it_checks_is_run(typed: Any, here: Path) -> None:
    (here / "loud.py").write_text("import pathlib\npathlib.Path('ran').touch()\nraise SystemExit(9)\n" + CLEAN)
    assert typed("check", "loud.py").exit_code == 0
    assert not (here / "ran").exists()


BANK = """from onefold import Module

from shop.rules import decide

bank = Module("bank", initial=0, key=str, decide=decide, snapshot=len)
"""


@pytest.mark.parametrize("place", ["", "src"])
@pytest.mark.parametrize("imported", ["from shop.rules import decide", "from .rules import decide"])
def test_an_import_leads_to_the_users_own_file(typed: Any, here: Path, place: str, imported: str) -> None:
    shop = here / place / "shop"
    shop.mkdir(parents=True)
    (shop / "__init__.py").touch()
    (shop / "bank.py").write_text(BANK.replace("from shop.rules import decide", imported))
    (shop / "rules.py").write_text("import time\n\n\ndef decide(state, event, now):\n    return time.time()\n")
    ended = typed("check", str(shop / "bank.py"))
    assert ended.stdout.startswith(f"{Path(place, 'shop', 'rules.py')}:5: clock:")


def test_a_name_cannot_steer_the_terminal(typed: Any, here: Path) -> None:
    (here / "odd\x1b[31m.py").write_text(CLOCK)
    assert "\x1b" not in typed("check", ".").stdout


def test_the_hook_runs_a_command_that_exists() -> None:
    text = (ROOT / ".pre-commit-hooks.yaml").read_text()
    said = dict(re.findall(r"^  (\w+): (.+)$", text, re.MULTILINE))
    command, name = said["entry"].split()
    assert (command, said["language"], said["pass_filenames"]) == ("onefold", "python", "false")
    assert name in root.commands
