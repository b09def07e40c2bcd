"""Starting a tool from the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from onefold.cli.call import fields, pairs
from onefold.terms.codec import parse

DONE = {
    "run_id": "run_1",
    "program": "refund_order",
    "status": "done",
    "result": {"type": "Refunded", "refund_id": "re_1"},
}
WAITING = {
    "run_id": "run_1",
    "program": "refund_order",
    "status": "waiting",
    "waits": [{"kind": "approval", "name": "manager"}],
}
SCHEMA = {
    "properties": {
        "order_id": {"type": "string"},
        "amount": {"anyOf": [{"type": "number"}, {"type": "string", "pattern": "x"}]},
        "count": {"type": "integer"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "urgent": {"type": "boolean"},
        "mode": {"enum": ["fast", "slow"]},
    }
}


def test_it_prints_the_result_and_ends_with_0(typed: Any, told: Any) -> None:
    told.answer("POST", "/tools/refund_order", DONE)
    ended = typed("call", "refund_order", '{"order_id": "7"}', "--key", "order-7")
    assert (ended.exit_code, parse(ended.stdout.encode())) == (0, DONE["result"])
    assert told.sent[0].body == {"order_id": "7"}
    assert told.sent[0].headers["idempotency-key"] == '"order-7"'
    assert told.sent[0].headers["prefer"] == "wait=20"


def test_what_is_not_finished_prints_its_receipt_and_ends_with_5(typed: Any, told: Any) -> None:
    told.answer("POST", "/tools/refund_order", WAITING, status=202)
    ended = typed("call", "refund_order", "{}")
    assert (ended.exit_code, parse(ended.stdout.encode())) == (5, WAITING)


def test_json_is_the_body_as_it_came(typed: Any, told: Any) -> None:
    told.answer("POST", "/tools/refund_order", b'{"run_id":"run_1",  "status":"done"}')
    assert typed("call", "refund_order", "{}", "--json").stdout == '{"run_id":"run_1",  "status":"done"}\n'


def test_a_longer_wait_asks_again_until_the_end(typed: Any, told: Any) -> None:
    told.answer("POST", "/tools/refund_order", WAITING, status=202)
    told.answer("GET", "/runs/run_1", DONE)
    ended = typed("call", "refund_order", "{}", "--wait", "40s")
    assert ended.exit_code == 0
    assert [one.path for one in told.sent] == ["/tools/refund_order", "/runs/run_1"]
    assert 1 <= int(told.sent[1].query["wait"]) <= 25


def test_a_run_that_was_started_is_named_when_asking_for_its_end_fails(typed: Any, told: Any) -> None:
    told.answer("POST", "/tools/refund_order", WAITING, status=202)
    told.refuse("GET", "/runs/run_1", "forbidden", 403)
    ended = typed("call", "refund_order", "{}", "--wait", "40s")
    assert (ended.exit_code, "run_1" in ended.stderr, "It was forbidden." in ended.stderr) == (3, True, True)


def test_bad_arguments_are_told_field_by_field_and_end_with_3(typed: Any, told: Any) -> None:
    faults = [{"field": "amount", "problem": "must be at most 500", "got": 900}]
    told.refuse(
        "POST", "/tools/refund_order", "bad_arguments", 422, errors=faults, detail="Nothing was started. amount: …"
    )
    ended = typed("call", "refund_order", '{"amount": 900}')
    assert (ended.exit_code, ended.stdout) == (3, "")
    assert ended.stderr == "Nothing was started.\n- amount: must be at most 500; sent 900\n"


def test_a_problem_with_json_is_alone_on_stdout(typed: Any, told: Any) -> None:
    told.refuse("POST", "/tools/refund_order", "key_conflict", 422)
    ended = typed("call", "refund_order", "{}", "--json")
    assert (ended.exit_code, ended.stderr, parse(ended.stdout.encode())["code"]) == (3, "", "key_conflict")


def test_arguments_come_from_a_file_or_stdin(typed: Any, told: Any) -> None:
    told.answer("POST", "/tools/refund_order", DONE)
    Path("order.json").write_text('{"order_id": "8"}', encoding="utf-8")
    assert typed("call", "refund_order", "-f", "order.json").exit_code == 0
    assert typed("call", "refund_order", "-f", "-", stdin='{"order_id": "9"}').exit_code == 0
    assert [one.body for one in told.sent] == [{"order_id": "8"}, {"order_id": "9"}]


def test_fields_are_typed_by_the_schema_of_the_tool(typed: Any, told: Any) -> None:
    operation = {"requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/In"}}}}}
    document = {"paths": {"/tools/refund_order": {"post": operation}}, "components": {"schemas": {"In": SCHEMA}}}
    told.answer("GET", "/openapi.json", document)
    told.answer("POST", "/tools/refund_order", DONE)
    assert typed("call", "refund_order", "order_id=007", "count=3").exit_code == 0
    assert told.sent[-1].body == {"order_id": "007", "count": 3}


@pytest.mark.parametrize(
    "pair, value",
    [
        ("order_id=007", "007"),
        ("order_id=a=b", "a=b"),
        ("amount=40.10", "40.10"),
        ("count=3", 3),
        ("count=three", "three"),
        ('tags=["a"]', ["a"]),
        ("urgent=true", True),
        ("mode=fast", "fast"),
        ("unknown=1", "1"),
    ],
)
def test_a_field_keeps_its_text_wherever_text_is_allowed(pair: str, value: Any) -> None:
    assert fields(pairs((pair,)), SCHEMA) == {pair.partition("=")[0]: value}


@pytest.mark.parametrize("arguments", [("order_id",), ("=1",), ("a=1", "a=2")])
def test_what_is_no_pair_is_a_usage_error(typed: Any, arguments: tuple[str, ...]) -> None:
    assert typed("call", "refund_order", *arguments).exit_code == 2


@pytest.mark.parametrize(
    "code, status, ends",
    [
        ("run_failed", 500, 1),
        ("run_cancelled", 409, 1),
        ("run_parked", 409, 1),
        ("load_refused", 422, 2),
        ("key_conflict", 422, 3),
        ("forbidden", 403, 3),
        ("unknown_name", 404, 4),
        ("not_found", 404, 4),
        ("owned_elsewhere", 421, 6),
        ("busy", 429, 7),
        ("contended", 409, 7),
        ("outcome_unknown", 503, 7),
        ("broken", 500, 70),
        ("something_new", 418, 3),
        ("something_new", 503, 7),
    ],
)
def test_each_error_has_its_exit_code(typed: Any, told: Any, code: str, status: int, ends: int) -> None:
    told.refuse("POST", "/tools/refund_order", code, status)
    assert typed("call", "refund_order", "{}").exit_code == ends


def test_a_failed_run_that_was_waited_for_ends_with_1(typed: Any, told: Any) -> None:
    told.answer("POST", "/tools/refund_order", WAITING, status=202)
    told.answer("GET", "/runs/run_1", {**DONE, "status": "failed", "error": {"code": "X", "message": "y"}})
    assert typed("call", "refund_order", "{}", "--wait", "5s").exit_code == 1


def test_the_bearer_key_comes_from_the_environment_and_is_not_printed(
    typed: Any, told: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ONEFOLD_KEY", "k3y-of-the-agent")
    told.refuse("POST", "/tools/refund_order", "unauthenticated", 401)
    ended = typed("call", "refund_order", "{}")
    assert told.sent[0].headers["authorization"] == "Bearer k3y-of-the-agent"
    assert "k3y" not in ended.output


def test_a_key_with_quotes_arrives_whole(typed: Any, told: Any) -> None:
    told.answer("POST", "/tools/refund_order", DONE)
    typed("call", "refund_order", "{}", "--key", 'a"b\\c')
    assert told.sent[0].headers["idempotency-key"] == '"a\\"b\\\\c"'


def test_a_wait_without_a_unit_is_refused(typed: Any) -> None:
    ended = typed("call", "refund_order", "--wait", "20")
    assert ended.exit_code == 2
    assert "has no unit" in ended.stderr
