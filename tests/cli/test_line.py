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
