"""A turn of a cell from the command line."""

from __future__ import annotations

from typing import Any

from onefold.terms.codec import parse


def test_it_prints_the_value_and_ends_with_0(typed: Any, told: Any) -> None:
    told.answer("POST", "/cells/Room/lobby/turns", {"branch": "", "value": "hello", "ran": 1})
    ended = typed("turn", "Room", "lobby", "greet('a')", "--key", "k")
    assert (ended.exit_code, parse(ended.stdout.encode())) == (0, "hello")
    assert (told.sent[0].body, told.sent[0].headers["idempotency-key"]) == ({"program": "greet('a')"}, '"k"')


def test_a_program_may_come_by_stdin(typed: Any, told: Any) -> None:
    told.answer("POST", "/cells/Room/a%2Fb/turns", {"branch": "", "value": None, "ran": 2})
    assert typed("turn", "Room", "a/b", "-", "--json", stdin="x = 1\nx").exit_code == 0
    assert told.sent[0].body == {"program": "x = 1\nx"}


def test_a_turn_that_failed_ends_with_1(typed: Any, told: Any) -> None:
    told.refuse("POST", "/cells/Room/lobby/turns", "program_raised", 422)
    assert typed("turn", "Room", "lobby", "1 / 0").exit_code == 1


def test_a_posted_program_is_not_waited_for(typed: Any, told: Any) -> None:
    posted = {"outcome": "posted", "id": "k", "owner": None}
    told.answer("POST", "/cells/Room/lobby/turns", posted, status=202)
    ended = typed("turn", "Room", "lobby", "greet('a')", "--key", "k", "--post")
    assert (ended.exit_code, parse(ended.stdout.encode())) == (0, posted)
    assert told.sent[0].headers["prefer"] == "respond-async"
