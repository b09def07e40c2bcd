"""Whom a command asks, and what it says when nobody answers."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def nobody() -> str:
    """An address that nothing listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{free.getsockname()[1]}"


def test_a_named_address_is_the_only_one_asked(typed: Any, nobody: str) -> None:
    Path("onefold.toml").write_text('app = "app.py"', encoding="utf-8")
    for command in (("runs",), ("runs", "list")):
        ended = typed(*command, "--url", nobody)
        assert (ended.exit_code, ended.stdout) == (7, "")
        assert "nothing listens there" in ended.stderr


def test_without_an_app_to_open_it_says_so(typed: Any, nobody: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONEFOLD_LISTEN", nobody.removeprefix("http://"))
    ended = typed("runs", "list")
    assert ended.exit_code == 7
    assert "no onefold.toml here names an app" in ended.stderr
    assert "Start it with `onefold dev FILE`, or say --url" in ended.stderr


@pytest.mark.parametrize("said", ["127.0.0.1:8611", "localhost:8611", "tools.example.com", "ftp://a"])
def test_an_address_without_its_scheme_is_told_before_anything_is_sent(typed: Any, said: str) -> None:
    ended = typed("runs", "list", "--url", said)
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert "begins with http:// or https://" in ended.stderr


def test_a_list_with_nothing_in_it_says_whose_it_is(typed: Any, told: Any) -> None:
    told.answer("GET", "/runs", {"items": [], "next": None})
    ended = typed("runs", "list")
    assert ended.exit_code == 0
    assert ended.stderr == f"Asked: {told.url}.\n"
    assert typed("runs", "list", "--url", told.url).stderr == ""


def test_the_app_may_be_named_by_a_variable_alone(typed: Any, nobody: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = (
        "import onefold",
        "@onefold.actuator",
        "async def hello(run: onefold.Run) -> str:",
        "    return 'hello'",
        "app = onefold.App(hello)",
    )
    Path("named.py").write_text("\n".join(lines), encoding="utf-8")
    monkeypatch.setenv("ONEFOLD_LISTEN", nobody.removeprefix("http://"))
    monkeypatch.setenv("ONEFOLD_APP", "named.py")
    ended = typed("call", "hello")
    assert (ended.exit_code, ended.stdout) == (0, '"hello"\n')


def test_what_is_not_onefold_is_not_taken_for_it(typed: Any, told: Any) -> None:
    told.answer("GET", "/runs", b"<html>hello</html>", media="text/html", status=404)
    ended = typed("runs", "list")
    assert ended.exit_code == 7
    assert "is not Onefold" in ended.stderr


def test_a_broken_configuration_ends_with_2(typed: Any) -> None:
    Path("onefold.toml").write_text("listn = 3", encoding="utf-8")
    ended = typed("runs", "list")
    assert ended.exit_code == 2
    assert "did you mean 'listen'?" in ended.stderr


def test_whom_a_command_acts_as_goes_along(typed: Any, told: Any) -> None:
    told.answer("GET", "/runs", {"items": [], "next": None})
    typed("runs", "list", "--as", "studio 42")
    assert told.sent[0].headers["onefold-as"] == "studio%2042"


def test_a_part_of_a_path_cannot_become_two(typed: Any, told: Any) -> None:
    typed("runs", "show", "a/../b")
    assert told.sent[0].path == "/runs/a%2F..%2Fb"


# --- whom it asked ---------------------------------------------------------------------------------------


def test_another_app_than_this_folder_names_is_told_nothing(typed: Any, told: Any, tmp_path: Path) -> None:
    (tmp_path / "stock.py").write_text("")
    (tmp_path / "onefold.toml").write_text('app = "stock.py"')
    told.app = "shop"
    told.answer("POST", "/sweep", {"runs": 0, "replies": 0, "dry_run": False})
    for command in (("sweep", "--replies", "1 ms"), ("runs",), ("call", "ship", "{}")):
        ended = typed(*command)
        assert (ended.exit_code, ended.stdout) == (2, "")
        assert f"Nothing was done: {told.url} is the app 'shop'" in ended.stderr
        assert "'stock'" in ended.stderr
    assert {one.method for one in told.sent} == {"HEAD"}
    meant = typed("sweep", "--replies", "1 ms", "--url", told.url)
    assert (meant.exit_code, meant.stderr) == (0, "")


@pytest.mark.parametrize("name", ["stock", "onefold"])
def test_the_app_that_this_folder_names_is_asked(typed: Any, told: Any, tmp_path: Path, name: str) -> None:
    (tmp_path / "stock.py").write_text("")
    (tmp_path / "onefold.toml").write_text('app = "stock.py:app"')
    told.app = name
    told.answer("GET", "/runs", {"items": [], "next": None})
    ended = typed("runs")
    assert (ended.exit_code, ended.stderr) == (0, "")


def test_who_was_changed_and_who_does_not_know_a_name_is_said(typed: Any, told: Any) -> None:
    told.app = "shop"
    told.answer("POST", "/sweep", {"runs": 0, "replies": 0, "dry_run": False})
    assert typed("sweep", "--replies", "1 ms").stderr == f"Asked: the app 'shop' at {told.url}.\n"
    assert typed("sweep", "--replies", "1 ms", "--json").stderr == ""
    told.refuse("POST", "/tools/ship", "unknown_name", 404)
    ended = typed("call", "ship", "{}", "--url", told.url)
    assert (ended.exit_code, ended.stderr) == (4, f"Asked: the app 'shop' at {told.url}.\nIt was unknown_name.\n")


def test_an_app_that_cannot_be_opened_here_says_that_nobody_answered(
    typed: Any, nobody: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("ONEFOLD_LISTEN", nobody.removeprefix("http://"))
    (tmp_path / "refund.py").write_text('import os\nos.environ["NO_SUCH_VARIABLE"]\n')
    (tmp_path / "onefold.toml").write_text('app = "refund.py"')
    ended = typed("runs")
    assert ended.exit_code == 2
    assert f"{nobody}: nothing listens there, so this command opened refund.py itself" in ended.stderr
    assert "refund.py:2" in ended.stderr


def test_where_a_key_comes_from_is_said(typed: Any, told: Any) -> None:
    told.refuse("GET", "/runs", "unauthenticated", 401)
    ended = typed("runs")
    assert (ended.exit_code, ended.stderr.splitlines()[-1]) == (
        3,
        "A command sends the key that is in the variable ONEFOLD_KEY, and no other.",
    )
    for help in (("--help",), ("runs", "list", "--help")):
        assert "ONEFOLD_KEY" in typed(*help).stdout
