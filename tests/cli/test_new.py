"""A folder to start from runs as it is, and the refund template is the example itself."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from onefold.cli.new import TEMPLATES
from onefold.host.config import settle

ROOT = Path(__file__).resolve().parents[2]
CHECK = "import sys; from onefold import App; from onefold.host.target import load; print(*[p.name for p in load(sys.argv[1], App, __import__('pathlib').Path.cwd()).parts])"
TOOLS = {"refund": "refund_order", "approval-inbox": "ask_a_person", "nightly-report": "nightly_report"}


@pytest.mark.parametrize("template", TEMPLATES)
def test_every_template_makes_an_app_that_loads(typed: Any, tmp_path: Path, template: str) -> None:
    assert typed("new", "shop", "--template", template).exit_code == 0
    shop = tmp_path / "shop"
    config = settle(file=shop / "onefold.toml")
    assert config.app is not None
    env = {**os.environ, "PAY_URL": "http://127.0.0.1:1", "PYTHONPATH": str(ROOT / "src")}
    loads = [sys.executable, "-c", CHECK, config.app]
    ran = subprocess.run(loads, cwd=shop, env=env, capture_output=True, text=True, check=False)
    assert (ran.stdout.split(), ran.stderr) == ([TOOLS[template]], "")
    assert TOOLS[template] in (shop / "README.md").read_text()
    assert "onefold-data/" in (shop / ".gitignore").read_text()


@pytest.mark.parametrize("name", ["refund.py", "provider.py", "onefold.toml"])
def test_the_refund_template_is_the_example(typed: Any, tmp_path: Path, name: str) -> None:
    typed("new", "shop")
    assert (tmp_path / "shop" / name).read_bytes() == (ROOT / "examples" / name).read_bytes()


def test_nothing_is_written_into_a_folder_that_holds_something(typed: Any, tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "mine.txt").write_text("mine")
    ended = typed("new", "shop")
    assert ended.exit_code == 2
    assert "Nothing was written" in ended.stderr
    assert [file.name for file in (tmp_path / "shop").iterdir()] == ["mine.txt"]


def test_a_template_that_is_not_there_is_a_usage_error(typed: Any) -> None:
    assert typed("new", "shop", "--template", "agent-memory").exit_code == 2
