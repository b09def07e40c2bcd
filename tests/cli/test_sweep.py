"""`onefold sweep` and `onefold prune`: what is sent, what is said, what is refused."""

from __future__ import annotations

from typing import Any


def test_a_sweep_sends_what_was_said_and_tells_what_went(typed: Any, told: Any) -> None:
    told.answer("POST", "/sweep", {"runs": 3, "replies": 2, "dry_run": True})
    ended = typed("sweep", "--runs", "30 days", "--replies", "1d", "--dry-run")
    assert ended.exit_code == 0
    assert ended.stdout == "3 runs and 2 replies would go.\n"
    assert told.sent[0].body == {"runs": "30 days", "replies": "1d", "dry_run": True}
    told.answer("POST", "/sweep", {"runs": 1, "replies": 0, "dry_run": False})
    assert typed("sweep").stdout == "1 runs and 0 replies are gone.\n"
    assert told.sent[1].body == {"dry_run": False}


def test_a_sweep_of_reflexes_tells_of_their_runs_and_facts(typed: Any, told: Any) -> None:
    told.answer("POST", "/sweep", {"runs": 0, "replies": 0, "reflex_runs": 4, "intake": 5, "dry_run": True})
    ended = typed("sweep", "--reflex-runs", "1d", "--intake", "2d", "--dry-run")
    assert ended.stdout.splitlines()[1] == "4 reflex runs and 5 facts would go."
    assert told.sent[0].body == {"reflex_runs": "1d", "intake": "2d", "dry_run": True}


def test_a_refused_sweep_ends_with_the_exit_of_a_refusal(typed: Any, told: Any) -> None:
    told.refuse("POST", "/sweep", "bad_arguments", 422)
    assert typed("sweep", "--intake", "1d").exit_code == 3
    assert told.sent[0].body == {"intake": "1d", "dry_run": False}


def test_a_prune_says_where_the_history_begins(typed: Any, told: Any) -> None:
    told.answer("POST", "/modules/bank/room%2F7/prune", {"facts": 500, "begins": 501})
    ended = typed("prune", "bank", "room/7")
    assert ended.stdout == "500 facts are gone; the history begins at number 501.\n"
    assert typed("prune", "bank", "room/7", "--json").stdout.strip() == '{"begins":501,"facts":500}'
