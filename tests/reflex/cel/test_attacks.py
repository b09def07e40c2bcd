"""Expressions written by somebody who means harm, or who slipped."""

from __future__ import annotations

from typing import Any

import pytest

from onefold.reflex.cel import FUEL, Meter, Misread, Spent, Unmet, compiled

TEN = "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]"


def nested(depth: int) -> str:
    text = "1"
    for n in range(depth):
        text = f"{TEN}.map(x{n}, {text})"
    return text


def run(text: str, **see: Any) -> Any:
    return compiled(text)(see, Meter())


@pytest.mark.parametrize(
    "text",
    [
        nested(8),
        "rows.map(a, rows.map(b, rows.map(c, a.n * b.n * c.n)))",
        "rows.map(a, row.s + row.s)",
        "rows.map(a, row.s.upperAscii())",
        "row.s.replace('a', row.s)",
        "rows.map(a, row.s).join(row.s)",
        "rows.map(a, row.s.split('a'))",
        "rows.map(a, rows + rows)",
        "rows.exists(a, row.s != row.t)",
        "rows.exists(a, rows.map(b, b) == rows.map(b, b) && false)",
        "rows.map(a, a in rows.map(b, 0.5))",
        "rows.map(a, rows.map(b, rows)) == rows.map(a, rows.map(b, rows))",
    ],
)
def test_what_would_take_for_ever_is_stopped(text: str) -> None:
    rows = [{"n": n} for n in range(2_000)]
    with pytest.raises(Spent):
        run(text, rows=rows, row={"s": "a" * 200_000, "t": "a" * 200_000})


def test_a_budget_that_is_spent_is_not_made_up_for() -> None:
    with pytest.raises(Spent):
        run(f"size({nested(7)}) > 0 || true")


@pytest.mark.parametrize(
    "text, problem",
    [
        ("(" * 40 + "1" + ")" * 40, "nested deeper"),
        ("[" * 40 + "]" * 40, "nested deeper"),
        ("true ? (" * 40, "nested deeper"),
        ("!" * 40 + "true", "signs in a row"),
        ("-" * 1_000 + "1", "signs in a row"),
        ("1" + "+1" * 500, "operations inside one another"),
        ("row" + ".a" * 500, "operations inside one another"),
        ("1" * 3_000, "at most 2000"),
        ("1" * 1_000, "64 bits"),
        ("0x" + "f" * 100, "64 bits"),
        ("'\\u0000'", "no text can have"),
        ("'\\ud800'", "no text can have"),
        ("'\\q'", "escape that is not known"),
        ("'open", "cannot stand"),
        ("1u", "unsigned"),
        ("b'x'", "bytes"),
        ("1abc", "no number"),
        ("row.s.matches('(a+)+$')", "patterns are not known"),
        ("rows.mpa(r, r)", "did you mean 'map'"),
        ("sise(rows)", "did you mean 'size'"),
        ("contains('a')", "write x.contains"),
        ("row.string()", "write string(…)"),
        ("size()", "takes 1 argument, not 0"),
        ("rows.map(r)", "takes a new name"),
        ("rows.map(r.a, 1)", "takes a new name"),
        ("rows.map(in, 1)", "word of the language"),
        ("has(row)", "takes one field"),
        ("for", "word of the language"),
        ("a; b", "cannot stand"),
        ("__import__('os')", "no function"),
        ("row.__class__()", "no method"),
        ("", "ends too early"),
        ("// nothing", "ends too early"),
    ],
)
def test_what_is_no_expression_is_told_apart(text: str, problem: str) -> None:
    with pytest.raises(Misread) as told:
        compiled(text)
    assert problem in told.value.problem
    assert told.value.at >= 1


@pytest.mark.parametrize("text", ["row.__class__", "row['__class__']", "row.a.__init__", "now.format", "rows.append"])
def test_pythons_own_names_are_fields_that_are_not_there(text: str) -> None:
    with pytest.raises(Unmet):
        run(text, row={"a": "x"}, rows=[], now="x")


@pytest.mark.parametrize(
    "text",
    [
        "int('99999')[0]",
        "timestamp(9223372036854775807)",
        "timestamp('9999-12-31T23:59:59-12:00')",
        "duration('999999999999h')",
        "timestamp('9999-12-31T23:59:59Z') + duration('24h')",
        "int('" + "9" * 500 + "')",
        "double('" + "9" * 500 + "')",
        "timestamp('2026-13-31T00:00:00Z')",
        "duration('')",
        "duration('-')",
        "int(double('nan'))",
        "row.big + 1",
        "-row.least",
        "row.least / -1",
        "row.least % 0",
    ],
)
def test_numbers_and_instants_out_of_range_are_told(text: str) -> None:
    with pytest.raises((Unmet, Misread)):
        run(text, row={"big": 2**63 - 1, "least": -(2**63)})


def test_the_budget_is_what_is_documented() -> None:
    meter = Meter()
    meter.spend(FUEL)
    with pytest.raises(Spent):
        meter.spend(1)


def test_a_slip_in_a_field_names_the_nearest() -> None:
    with pytest.raises(Unmet, match="did you mean 'amount'"):
        run("row.amuont", row={"amount": 1})
    with pytest.raises(Unmet, match="there is a, b"):
        run("row.quite", row={"b": 1, "a": 1})
    with pytest.raises(Unmet, match="there is no 'fact' here; there is row"):
        run("fact.x", row={})
