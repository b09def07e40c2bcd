"""`onefold deploy`: what is sent, what is printed, and how it ends; and the whole way, over a socket, under bubblewrap."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from onefold.terms.codec import parse

VERSION = {
    "outcome": "deployed",
    "file": "refund",
    "version": 2,
    "generation": 5,
    "tools": ["refund_order"],
    "digest": "sha256:00",
    "by": "anna",
    "at": "2026-01-01T00:00:00Z",
}


@pytest.fixture
def refund(tmp_path: Path) -> str:
    (tmp_path / "refund.py").write_text("x = 'ü'\n", encoding="utf-8")
    return "refund.py"


def test_a_file_is_sent_with_the_key_and_what_it_became_is_told(
    typed: Any, told: Any, refund: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ONEFOLD_KEY", "a-key-of-somebody")
    told.answer("PUT", "/deployed/refund", VERSION)
    ended = typed("deploy", refund, "--to", told.url)
    assert (ended.exit_code, ended.stderr) == (0, "")
    assert ended.stdout == f"Deployed version 2 of refund to {told.url}.\n  {told.url}/tools/refund_order\n"
    (sent,) = told.sent
    assert (sent.method, sent.body) == ("PUT", {"source": "x = 'ü'\n"})
    assert sent.headers["authorization"] == "Bearer a-key-of-somebody"


def test_json_is_the_body_alone(typed: Any, told: Any, refund: str) -> None:
    told.answer("PUT", "/deployed/refund", {**VERSION, "outcome": "unchanged"})
    ended = typed("deploy", refund, "--to", told.url, "--json")
    assert (ended.exit_code, parse(ended.stdout.encode())["outcome"], ended.stderr) == (0, "unchanged", "")
    assert typed("deploy", refund, "--to", told.url).stdout.startswith(
        "Nothing changed: version 2 of refund is just that."
    )


def test_a_rollback_goes_to_the_version_before_by_its_number(typed: Any, told: Any, refund: str) -> None:
    told.answer("GET", "/deployed/refund", {"items": [VERSION, {**VERSION, "version": 1}], "next": None})
    told.answer("POST", "/deployed/refund/rollback", {**VERSION, "version": 3, "back_to": 1})
    ended = typed("deploy", refund, "--to", told.url, "--rollback")
    assert (ended.exit_code, ended.stdout.splitlines()[0]) == (
        0,
        f"Deployed version 3 of refund (version 1 again) to {told.url}.",
    )
    assert [(one.method, one.body) for one in told.sent] == [("GET", None), ("POST", {"version": 1})]


def test_a_rollback_goes_to_the_version_that_is_named(typed: Any, told: Any, refund: str) -> None:
    told.answer("POST", "/deployed/refund/rollback", {**VERSION, "version": 4, "back_to": 2})
    assert typed("deploy", refund, "--to", told.url, "--rollback", "2").exit_code == 0
    assert [(one.method, one.body) for one in told.sent] == [("POST", {"version": 2})]


def test_a_file_is_taken_away_also_where_it_is_gone_here(typed: Any, told: Any) -> None:
    told.answer("DELETE", "/deployed/refund", {**VERSION, "outcome": "removed", "version": 3, "tools": []})
    ended = typed("deploy", "refund.py", "--to", told.url, "--remove")
    assert (ended.exit_code, ended.stdout) == (0, f"Took refund away from {told.url}, as version 3.\n")
    assert typed("deploy", "refund.py", "--to", told.url, "--remove", "--rollback").exit_code == 2
    assert [(one.method, one.body) for one in told.sent] == [("DELETE", None)]


def test_where_there_is_none_before_nothing_is_sent(typed: Any, told: Any, refund: str) -> None:
    told.answer("GET", "/deployed/refund", {"items": [VERSION], "next": None})
    ended = typed("deploy", refund, "--to", told.url, "--rollback")
    assert (ended.exit_code, "none before it" in ended.stderr, len(told.sent)) == (2, True, 1)


@pytest.mark.parametrize(
    "code,status,ends",
    [("load_refused", 422, 2), ("forbidden", 403, 3), ("not_found", 404, 4), ("too_large", 413, 3), ("busy", 429, 7)],
)
def test_a_refusal_ends_as_its_error_does(
    typed: Any, told: Any, refund: str, code: str, status: int, ends: int
) -> None:
    told.refuse("PUT", "/deployed/refund", code, status)
    ended = typed("deploy", refund, "--to", told.url)
    assert (ended.exit_code, ended.stdout, f"It was {code}." in ended.stderr) == (ends, "", True)


def test_findings_stand_one_a_line(typed: Any, told: Any, refund: str) -> None:
    findings = [{"where": "refund.py:3: clock", "problem": "reads the clock", "level": "refused"}]
    told.refuse("PUT", "/deployed/refund", "load_refused", 422, findings=[*findings, *findings])
    ended = typed("deploy", refund, "--to", told.url)
    assert ended.stderr.splitlines()[-2:] == ["refund.py:3: clock: reads the clock"] * 2


@pytest.mark.parametrize("arguments", [(), ("--to", "example.com"), ("--to", "http://127.0.0.1:1", "--rollback", "x")])
def test_a_slip_is_told_before_anything_is_sent(typed: Any, told: Any, refund: str, arguments: tuple[str, ...]) -> None:
    assert (typed("deploy", refund, *arguments).exit_code, told.sent) == (2, [])


def test_a_file_that_is_no_text_is_not_sent(typed: Any, told: Any, tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_bytes(b"x = '\xff'\n")
    ended = typed("deploy", "bad.py", "--to", told.url)
    assert (ended.exit_code, "no UTF-8 at byte 5" in ended.stderr, told.sent) == (2, True, [])
    assert typed("deploy", "nowhere.py", "--to", told.url).exit_code == 2


def test_a_named_address_is_the_only_one_asked(typed: Any, refund: str, tmp_path: Path) -> None:
    (tmp_path / "onefold.toml").write_text('app = "refund.py"\n')
    assert typed("deploy", refund, "--to", "http://127.0.0.1:1").exit_code == 7
