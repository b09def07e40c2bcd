"""A turn of a cell from the command line."""

from __future__ import annotations

import importlib
import json
import pkgutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import onefold.terms
from onefold.cli.answers import _classes
from onefold.terms.codec import parse
from onefold.terms.errors import OnefoldError


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


def test_every_error_of_the_terms_has_its_exit_where_nothing_else_is_imported() -> None:
    """A test imports the whole package, and a command next to nothing of it: a failed turn ended with 3 there."""
    asked = "from onefold.cli.answers import _EXITS; import json; print(json.dumps(_EXITS))"
    source = Path(onefold.__file__).parent.parent
    told = subprocess.run([sys.executable, "-c", asked], cwd=source, capture_output=True, text=True, check=True)
    for module in pkgutil.iter_modules(onefold.terms.__path__):
        importlib.import_module(f"onefold.terms.{module.name}")
    exits = json.loads(told.stdout)
    own = [error for error in _classes(OnefoldError) if error.__module__.startswith("onefold.terms.")]
    assert len(own) > 30
    assert {error.code: error.exit for error in own}.items() <= exits.items()


def test_a_post_without_a_key_is_told_before_anything_is_sent(typed: Any, told: Any) -> None:
    ended = typed("turn", "Room", "lobby", "greet('a')", "--post")
    assert (ended.exit_code, "--post needs --key" in ended.stderr, told.sent) == (2, True, [])


def test_a_posted_program_is_not_waited_for(typed: Any, told: Any) -> None:
    posted = {"outcome": "posted", "id": "k", "owner": None}
    told.answer("POST", "/cells/Room/lobby/turns", posted, status=202)
    ended = typed("turn", "Room", "lobby", "greet('a')", "--key", "k", "--post")
    assert (ended.exit_code, parse(ended.stdout.encode())) == (0, posted)
    assert told.sent[0].headers["prefer"] == "respond-async"
