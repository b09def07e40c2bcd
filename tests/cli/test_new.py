"""A folder to start from runs as it is, and the refund template is the example itself."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from onefold import testing
from onefold.cli.new import TEMPLATES
from onefold.host.config import settle

ROOT = Path(__file__).resolve().parents[2]
CHECK = "import sys; from onefold import App; from onefold.host.target import load; t = load(sys.argv[1], App, __import__('pathlib').Path.cwd()); print(*[getattr(p, 'name', None) or p.__name__ for p in (t.app.parts if t.app else t.parts)])"
TOOLS = {
    "refund": "refund_order",
    "approval-inbox": "ask_a_person",
    "nightly-report": "nightly_report",
    "agent-memory": "Memory",
    "github-triage": "triage_issue",
}


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


@pytest.mark.parametrize("template", TEMPLATES)
def test_what_is_made_passes_the_check(typed: Any, tmp_path: Path, template: str) -> None:
    typed("new", "shop", "--template", template)
    ended = typed("check", "shop")
    assert (ended.exit_code, ended.stdout) == (0, "")


def made(typed: Any, tmp_path: Path, template: str, file: str) -> Any:
    """The module of a template, as it is served."""
    typed("new", "shop", "--template", template)
    spec = importlib.util.spec_from_file_location(f"made_{template.replace('-', '_')}", tmp_path / "shop" / file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_an_agents_memory_remembers(typed: Any, tmp_path: Path) -> None:
    memory = made(typed, tmp_path, "agent-memory", "memory.py").Memory
    with testing.open(memory) as app:
        one = app.cell(memory, "c42")
        assert one.turn(memory.recall)("rent") is None
        one.run("remember(topic='rent', text='on the 1st')\nremember(topic='heat', text='gas')")
        assert one.turn(memory.recall)("rent") == "on the 1st"
        assert one.turn(memory.topics)() == ["heat", "rent"]
        assert [one.turn(memory.forget)("rent"), one.turn(memory.forget)("rent")] == [True, False]


@pytest.mark.parametrize(
    "title, decided, label",
    [("It crashes", None, "bug"), ("Hm", True, "bug"), ("Hm", False, "question"), ("Hm", "nobody", "needs triage")],
)
def test_new_issues_are_labelled_and_what_is_unclear_is_asked(
    typed: Any, tmp_path: Path, title: str, decided: Any, label: str
) -> None:
    triage = made(typed, tmp_path, "github-triage", "triage.py")
    with testing.open(triage.triage_issue) as app:
        app.stub(triage.add_label, returns=None)
        said = {"action": "opened", "issue": {"number": 7, "title": title, "id": 1}, "repository": {"full_name": "a/b"}}
        delivery = triage.Delivery.model_validate(said)
        receipt = app.start(triage.triage_issue, delivery)
        if decided == "nobody":
            app.clock.advance("7 days")
        elif decided is not None:
            (app.approve if decided else app.reject)(receipt, "maintainer", by="ann")
        assert receipt.result() == triage.Labelled(issue=7, label=label)
        (called,) = app.calls(triage.add_label)
        assert called.args[-3:] == ("a/b", 7, label)
        assert app.call(triage.triage_issue, triage.Delivery(action="closed")).reason == "no new issue: closed"


def test_a_delivery_as_github_sends_it_is_taken(typed: Any, tmp_path: Path) -> None:
    triage = made(typed, tmp_path, "github-triage", "triage.py")
    sender = {"login": "x", "id": 1}
    issue = {"number": 7, "title": "It crashes", "body": None, "user": sender, "labels": []}
    repository = {"id": 4, "full_name": "a/b", "owner": sender, "private": False}
    body = {"action": "opened", "issue": issue, "repository": repository, "sender": sender}
    assert triage.triage_issue.check(body).issue.title == "It crashes"


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
    assert typed("new", "shop", "--template", "of-none").exit_code == 2


def test_what_to_type_next_can_be_typed_whatever_the_folder_is_called(typed: Any) -> None:
    assert "cd 'My shop'" in typed("new", "My shop").output
