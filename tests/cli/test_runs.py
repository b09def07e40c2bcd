"""Runs, approvals and parked items, listed and told."""

from __future__ import annotations

from typing import Any

import pytest

from onefold.terms.codec import parse

RUN = {
    "run_id": "run_1",
    "program": "refund_order",
    "status": "waiting",
    "key": "order-8",
    "started_at": "2026-11-30T10:00:00Z",
    "updated_at": "2026-11-30T10:00:01Z",
    "waits": [
        {"kind": "approval", "name": "manager", "message": "Pay \x1b[2Jback 150?", "until": "2026-12-01T10:00:00Z"}
    ],
}
PARKED = {"id": "p1", "kind": "owed", "program": "bank", "cause": "uncertain", "since": "2026-11-30T10:00:00Z"}


def test_a_list_says_what_each_run_waits_for(typed: Any, told: Any) -> None:
    told.answer("GET", "/runs", {"items": [RUN], "next": "n2"})
    ended = typed("runs", "list", "--program", "refund_order", "--status", "waiting", "--limit", "5")
    assert told.sent[0].query == {"program": "refund_order", "status": "waiting", "limit": "5"}
    assert 'approval "manager" until 2026-12-01T10:00:00Z' in ended.stdout
    assert "--after n2" in ended.stdout


def test_bare_runs_and_parked_list(typed: Any, told: Any) -> None:
    told.answer("GET", "/runs", {"items": [], "next": None})
    told.answer("GET", "/parked", {"items": [], "next": None})
    assert typed("runs").stdout == "There are no such runs.\n"
    assert typed("parked").stdout == "Nothing is parked.\n"


@pytest.mark.parametrize(
    "arguments, path, body",
    [
        (("runs", "list"), "/runs", b'{"items": [],  "next": null}'),
        (("runs", "show", "run_1"), "/runs/run_1", b'{"run_id": "run_1",  "status": "done"}'),
        (("runs", "show", "run_1", "--journal"), "/runs/run_1/journal", b'{"items": [],  "next": null}'),
        (("parked", "list"), "/parked", b'{"items": [],  "next": null}'),
        (("parked", "show", "p1"), "/parked/p1", b'{"id": "p1",  "kind": "owed"}'),
        (("export", "refund_order"), "/tools/refund_order/tables", b'["refunds" ]'),
    ],
)
def test_every_read_gives_the_body_of_its_twin(
    typed: Any, told: Any, arguments: tuple[str, ...], path: str, body: bytes
) -> None:
    told.answer("GET", "/runs/run_1", RUN)
    told.answer("GET", path, body)
    ended = typed(*arguments, "--json")
    assert (ended.exit_code, ended.stdout.encode(), ended.stderr) == (0, body + b"\n", "")


def test_a_run_is_forked_from_a_step_under_a_key(typed: Any, told: Any) -> None:
    told.answer("POST", "/runs/run_1/fork", {**RUN, "run_id": "run_2"})
    ended = typed("runs", "fork", "run_1", "--from", "0#3", "--key", "k")
    assert (ended.exit_code, "run_2" in ended.stdout) == (0, True)
    assert told.sent[-1].body == {"from": "0#3"}
    assert told.sent[-1].headers["idempotency-key"] in ("k", '"k"')
    assert typed("runs", "fork", "run_1").exit_code == 2


def test_a_message_cannot_steer_the_terminal(typed: Any, told: Any) -> None:
    told.answer("GET", "/runs/run_1", RUN)
    ended = typed("runs", "show", "run_1")
    assert "\x1b" not in ended.stdout
    assert "Pay \N{REPLACEMENT CHARACTER}[2Jback 150?" in ended.stdout


def test_a_run_is_cancelled_with_its_reason(typed: Any, told: Any) -> None:
    told.answer("POST", "/runs/run_1/cancel", {**RUN, "status": "cancelled"})
    assert typed("runs", "cancel", "run_1", "--reason", "wrong order").exit_code == 0
    assert told.sent[0].body == {"reason": "wrong order"}


@pytest.mark.parametrize("status, stays", [("done", True), ("failed", True), ("cancelled", False), ("waiting", False)])
def test_a_run_that_had_ended_is_not_said_to_be_cancelled(typed: Any, told: Any, status: str, stays: bool) -> None:
    told.answer("POST", "/runs/run_1/cancel", {**RUN, "status": status})
    ended = typed("runs", "cancel", "run_1")
    assert (ended.exit_code, "Nothing was cancelled" in ended.stderr) == (0, stays)


@pytest.mark.parametrize("status, stays", [("done", True), ("cancelled", True), ("failed", False), ("parked", False)])
def test_only_what_stopped_is_tried_again(typed: Any, told: Any, status: str, stays: bool) -> None:
    told.answer("GET", "/runs/run_1", {**RUN, "status": status})
    told.answer("POST", "/runs/run_1/retry", {**RUN, "status": "running"})
    ended = typed("runs", "retry", "run_1")
    assert (ended.exit_code, "Nothing was tried again" in ended.stderr) == (0, stays)


def test_an_event_is_sent_under_its_key(typed: Any, told: Any) -> None:
    told.answer("POST", "/runs/run_1/events/Paid", RUN)
    assert typed("runs", "send", "run_1", "Paid", '{"amount": 4}', "--key", "k").exit_code == 0
    assert (told.sent[0].body, told.sent[0].headers["idempotency-key"]) == ({"amount": 4}, '"k"')


def test_the_inbox_has_every_open_approval_oldest_first(typed: Any, told: Any) -> None:
    old = {"kind": "approval", "name": "boss", "message": "Go?", "since": "2026-11-29T10:00:00Z"}
    new = {**old, "name": "manager", "since": "2026-11-30T10:00:00Z"}
    first = {"items": [{**RUN, "waits": [new, {"kind": "sleep"}]}], "next": "n"}
    told.answer("GET", "/runs", first, {"items": [{**RUN, "run_id": "run_2", "waits": [old]}], "next": None}, first)
    shown = typed("approve").stdout.splitlines()
    assert [line.split()[0] for line in shown] == ["run_id", "run_2", "run_1"]
    assert told.sent[0].query["status"] == "waiting"


def test_the_inbox_as_json(typed: Any, told: Any) -> None:
    told.answer("GET", "/runs", {"items": [RUN], "next": None})
    found = parse(typed("approve", "--json").stdout.encode())
    assert [(one["run_id"], one["name"]) for one in found["items"]] == [("run_1", "manager")]


def test_a_yes_is_sent_and_told(typed: Any, told: Any) -> None:
    told.answer(
        "POST",
        "/runs/run_1/approvals/manager",
        {"outcome": "decided", "by": "anna", "way": "approved", "at": "2026-11-30T10:00:00Z"},
    )
    ended = typed("approve", "run_1", "manager", "--yes", "--by", "anna", "--reason", "fine")
    assert (ended.exit_code, ended.stdout) == (0, "Approved by anna.\n")
    assert told.sent[0].body == {"approve": True, "comment": "fine"}
    assert told.sent[0].headers["onefold-by"] == "anna"


def test_a_name_in_any_script_is_sent(typed: Any, told: Any) -> None:
    told.answer("POST", "/runs/run_1/approvals/manager", {"outcome": "decided", "by": "\u674e"})
    typed("approve", "run_1", "manager", "--yes", "--by", "\u674e")
    assert told.sent[0].headers["onefold-by"] == "%E6%9D%8E"


def test_who_decided_before_and_which_way_is_said(typed: Any, told: Any) -> None:
    before = {"outcome": "already_decided", "by": "ben", "way": "rejected", "at": "2026-11-30T10:00:00Z"}
    told.answer("POST", "/runs/run_1/approvals/manager", before)
    ended = typed("approve", "run_1", "manager", "--yes")
    assert ended.stdout == "ben had already rejected at 2026-11-30T10:00:00Z. Nothing was changed.\n"


def test_an_event_that_is_no_json_is_shown_as_it_is_sent(typed: Any, told: Any) -> None:
    ended = typed("runs", "send", "run_1", "Note", "text=hi")
    assert (ended.exit_code, told.sent) == (2, [])
    assert """onefold runs send run_1 Note '{"text":"hi"}'""" in ended.stderr


def test_a_no_carries_its_reason(typed: Any, told: Any) -> None:
    told.answer("POST", "/runs/run_1/approvals/manager", {"outcome": "decided", "by": "anna", "way": "rejected"})
    assert typed("approve", "run_1", "manager", "--no", "--reason", "too much").stdout == "Rejected by anna.\n"
    assert told.sent[0].body == {"approve": False, "reason": "too much"}


@pytest.mark.parametrize("outcome", ["already_decided", "expired", "cancelled"])
def test_a_decision_that_came_too_late_says_so_and_ends_with_3(typed: Any, told: Any, outcome: str) -> None:
    told.answer(
        "POST", "/runs/run_1/approvals/manager", {"outcome": outcome, "by": "ben", "at": "2026-11-30T10:00:00Z"}
    )
    ended = typed("approve", "run_1", "manager", "--yes")
    assert ended.exit_code == 3
    assert "Nothing was" in ended.stdout


@pytest.mark.parametrize(
    "arguments", [("approve", "run_1", "manager"), ("approve", "run_1", "--yes"), ("approve", "--yes")]
)
def test_nothing_is_decided_without_being_told_which_way(typed: Any, told: Any, arguments: tuple[str, ...]) -> None:
    assert typed(*arguments).exit_code == 2
    assert told.sent == []


def test_what_is_parked_is_listed_retried_and_dropped_for_a_reason(typed: Any, told: Any) -> None:
    told.answer("GET", "/parked", {"items": [PARKED], "next": None})
    told.answer("POST", "/parked/p1/retry", b"", status=204)
    told.answer("POST", "/parked/p1/drop", b"", status=204)
    assert "uncertain" in typed("parked", "list").stdout
    assert typed("parked", "retry", "p1").exit_code == 0
    assert typed("parked", "drop", "p1").exit_code == 2
    assert typed("parked", "drop", "p1", "--reason", "paid by hand").exit_code == 0
    assert told.sent[-1].body == {"reason": "paid by hand"}


def test_a_long_list_of_what_is_parked_says_how_it_goes_on(typed: Any, told: Any) -> None:
    told.answer("GET", "/parked", {"items": [PARKED], "next": "1.p1"})
    ended = typed("parked", "--limit", "1", "--after", "0.p0")
    assert told.sent[-1].query == {"limit": "1", "after": "0.p0"}
    assert "More: --after 1.p1" in ended.stdout


def test_a_group_without_a_command_lists_and_takes_the_options_of_the_list() -> None:
    from click.testing import CliRunner

    from onefold.cli.parked import parked
    from onefold.cli.runs import runs

    refused = CliRunner().invoke(runs, ["--limit", "0"])
    assert "Invalid value for '--limit'" in refused.output
    assert "--json" in CliRunner().invoke(parked, ["list", "--help"]).output
    assert "Commands:" in CliRunner().invoke(runs, ["--help"]).output
