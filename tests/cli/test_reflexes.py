"""Automations by hand: what is sent, what is said, what is refused; and a file drawn without opening a store."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

SEEN = {
    "reflex": "billing.charge-due",
    "cause": "occurrence:2026-03",
    "rows": [{"id": "s1"}, {"id": "s2"}],
    "tasks": [
        {"unit": "s1", "input": {"amount": 5}, "shows": "charge 5 for s1"},
        {"unit": "s2", "error": "row.amount is missing"},
    ],
    "next_occurrences": ["2026-04-01T02:30:00Z"],
}


def test_a_preview_shows_rows_inputs_and_what_comes_next(typed: Any, told: Any) -> None:
    told.answer("POST", "/reflexes/billing.charge-due/preview", SEEN)
    fact = {"kind": "signal", "name": "x", "payload": 1}
    ended = typed(
        "preview", "billing.charge-due", "--fact", json.dumps(fact), "--at", "2026-03-01T00:00:00Z", "--next", "1"
    )
    assert ended.exit_code == 0
    for shown in (
        "occurrence:2026-03",
        "charge 5 for s1",
        '{"amount":5}',
        "row.amount is missing",
        "2026-04-01T02:30:00Z",
    ):
        assert shown in ended.stdout
    assert told.sent[0].body == {"fact": fact, "at": "2026-03-01T00:00:00Z", "next": 1}
    assert json.loads(typed("preview", "billing.charge-due", "--json").stdout) == SEEN
    assert told.sent[1].body == {}


def test_what_is_no_json_is_a_slip_of_the_caller(typed: Any, told: Any) -> None:
    ended = typed("fire", "x", "--input", "{")
    assert (ended.exit_code, ended.stderr.count("--input is not JSON")) == (2, 1)
    assert told.sent == []


def test_fire_backfill_and_release_say_what_was_done(typed: Any, told: Any) -> None:
    told.answer("POST", "/reflexes/x/fire", {"id": "fact_3"}, status=202)
    assert typed("fire", "x", "--input", '{"a": 1}', "--by", "anna").stdout == "It is fired: fact_3.\n"
    assert told.sent[-1].body == {"input": {"a": 1}, "by": "anna"}
    told.answer("POST", "/reflexes/x/backfill", {"count": 12}, status=202)
    said = typed("backfill", "x", "--since", "2025-01-01T00:00:00Z", "--until", "2025-12-31T00:00:00Z").stdout
    assert said == "12 runs were made.\n"
    told.answer("POST", "/reflexes/x/backfill", {"count": 1}, {"count": 0}, status=202)
    assert typed("backfill", "x", "--since", "2025-01-01T00:00:00Z", "--until", "2025-12-31T00:00:00Z").stdout == (
        "1 run was made.\n"
    )
    said = typed("backfill", "x", "--since", "2025-01-01T00:00:00Z", "--until", "2025-12-31T00:00:00Z").stdout
    assert said.startswith("No run was made: each occurrence")
    told.answer(
        "POST", "/facts/fact_3/release", {"id": "fact_3", "released": True}, {"id": "fact_3", "released": False}
    )
    assert typed("release", "fact_3").stdout == "It is let pass.\n"
    assert typed("release", "fact_3").stdout == "Nothing was done: it is not parked.\n"
    told.refuse("POST", "/reflexes/x/fire", "bad_arguments", 422)
    assert typed("fire", "x").exit_code == 3
    told.refuse("POST", "/reflexes/y/fire", "unknown_name", 404)
    assert typed("fire", "y").exit_code == 4


def test_a_chain_is_told_link_by_link(typed: Any, told: Any) -> None:
    links = [
        {"kind": "task", "id": "task_12", "at": "2026-03-01T02:30:01Z", "detail": {"reflex": "x", "unit": "s1"}},
        {"kind": "fact", "id": "fact_3", "at": "2026-03-01T02:30:00Z", "detail": {"subject": "orders", "by": "anna"}},
    ]
    told.answer("GET", "/reflexes/explain/task_12", {"items": links, "next": None})
    said = typed("explain", "task_12").stdout
    assert said.index("task_12") < said.index("fact_3")
    assert "unit=s1" in said
    assert "by=anna" in said


def test_runs_are_listed_of_one_of_all_with_their_tasks_or_by_what_is_missing(typed: Any, told: Any) -> None:
    run = {
        "id": "reflex_run_7",
        "reflex": "x",
        "cause": "fact:3",
        "state": "settled",
        "total": 1,
        "done": 1,
        "failed": 0,
    }
    for path in ("/reflexes/x/runs", "/reflexes/runs"):
        told.answer("GET", path, {"items": [run], "next": "7"})
    said = typed("reflex-runs", "x", "--limit", "1").stdout
    assert "reflex_run_7" in said
    assert "More: --after 7" in said
    assert told.sent[0].query == {"limit": "1"}
    assert "reflex_run_7" in typed("reflex-runs").stdout
    task = {"id": "task_1", "unit": "s1", "state": "done", "attempt": 1, "output": {"ok": True}}
    told.answer("GET", "/reflexes/runs/reflex_run_7/tasks", {"items": [task], "next": None})
    assert '{"ok":true}' in typed("reflex-runs", "--tasks", "reflex_run_7").stdout
    late = {"reflex": "x", "what": "an occurrence", "due": "2026-03-01T02:30:00Z", "late_seconds": 60.0}
    told.answer("GET", "/reflexes/overdue", {"items": [late], "next": None})
    assert "an occurrence" in typed("reflex-runs", "--overdue").stdout
    both = typed("reflex-runs", "x", "--overdue")
    assert (both.exit_code, "Only one of them" in both.stderr) == (2, True)


SHOP = """
import onefold
from onefold.reflex import Reflexes, Task, effect


@effect("mail.thank")
async def thank(task: Task) -> None: ...


app = onefold.App(Reflexes("shop.json", effects=[thank]))
"""
DEFINITION = {
    "id": "shop.thank",
    "intent": "Thank for each sale.",
    "on": {"fact": {"signal": "sale"}},
    "effect": {"name": "mail.thank"},
}


@pytest.fixture
def shop(typed: Any, tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text(SHOP.replace('"shop.json"', f'r"{tmp_path / "shop.json"}"'))
    (tmp_path / "shop.json").write_text(json.dumps(DEFINITION))
    return tmp_path


def test_why_a_run_was_skipped_or_a_task_failed_is_told_whole(typed: Any, told: Any) -> None:
    why = "Nothing was shaped. with.month: there is no 'occurrence' here; there is fact, facts, now, params"
    told.answer("GET", "/reflexes/x/runs", {"items": [{"id": "reflex_run_1", "note": why}], "next": None})
    assert why in typed("reflex-runs", "x").stdout
    told.answer("POST", "/reflexes/x/preview", {**SEEN, "tasks": [{"unit": "s1", "error": why}]})
    assert why in typed("preview", "x").stdout
    told.answer("GET", "/reflexes/x/runs", {"items": [{"id": "reflex_run_1", "note": "x" * 5_000}], "next": None})
    assert len(typed("reflex-runs", "x").stdout) < 1_000


def test_a_graph_is_drawn_with_what_is_blind_and_no_store_is_opened(typed: Any, shop: Path) -> None:
    ended = typed("graph", "shop.py")
    assert ended.exit_code == 0
    assert "shop.thank" in ended.stdout
    assert "does not say what it writes" in ended.stderr
    assert typed("graph", "shop.py", "--dot").stdout.startswith("digraph")
    body = json.loads(typed("graph", "shop.py", "--json").stdout)
    assert [finding["level"] for finding in body["findings"]] == ["warning"]
    assert not (shop / "onefold-data").exists()


def test_a_file_that_would_be_refused_is_drawn_and_its_faults_are_told(typed: Any, shop: Path) -> None:
    wrong = [{**DEFINITION, "effect": {"name": "mail.thnk"}}, {"id": "b"}]
    (shop / "shop.json").write_text(json.dumps(wrong))
    ended = typed("graph", "shop.py")
    assert "did you mean 'mail.thank'?" in ended.stderr


def test_an_app_that_nobody_serves_is_opened_for_the_command(typed: Any, shop: Path, monkeypatch: Any) -> None:
    (shop / "onefold.toml").write_text('app = "shop.py"\nlisten = "127.0.0.1:1"\n')
    monkeypatch.delenv("ONEFOLD_LISTEN")
    seen = json.loads(
        typed("preview", "shop.thank", "--fact", '{"kind":"signal","name":"sale","payload":1}', "--json").stdout
    )
    assert (seen["cause"], len(seen["tasks"])) == ("fact", 1)
    fired = json.loads(typed("fire", "shop.thank", "--json").stdout)
    chain = json.loads(typed("explain", fired["id"], "--json").stdout)
    assert chain["items"][0]["detail"]["by"] == "the command line"
    assert typed("explain", "fact_99").exit_code == 4
