"""What has no counterpart at Google's, or is worth a sentence of its own."""

from __future__ import annotations

from typing import Any

import pytest

from onefold.reflex.cel import Meter, Unmet, as_json, compiled


def run(text: str, **see: Any) -> Any:
    return as_json(compiled(text)(see, Meter()))


@pytest.mark.parametrize(
    "text, value",
    [
        ("1 + 0.5", 1.5),
        ("3 / 2", 1),
        ("double(3) / 2", 1.5),
        ("row.l[1.0]", 2),
        ("row.m.map(k, k)", ["a", "b", "z"]),
        ("row.m.filter(k, row.m[k] > 1)", ["a", "b"]),
        ("'a,b'.split(',')", ["a", "b"]),
        ("['a', 'b'].join('-')", "a-b"),
        ("['a', 'b'].join()", "ab"),
        ("' a '.trim()", "a"),
        ("'aXb'.upperAscii() + 'É'.lowerAscii()", "AXBÉ"),
        ("'a.b.c'.replace('.', '/')", "a/b/c"),
        ("''.split('')", []),
        ("string(2.0)", "2"),
        ("string(0.1)", "0.1"),
        ("string(1e20)", "1e+20"),
        ("timestamp('2026-03-29T01:30:00.250Z')", "2026-03-29T01:30:00.250000Z"),
        ("timestamp('2026-03-29T03:30:00+02:00')", "2026-03-29T01:30:00Z"),
        ("timestamp(0) + duration('1.5s')", "1970-01-01T00:00:01.500000Z"),
        ("duration('1h30m')", "5400s"),
        ("duration('-1.5s')", "-1.5s"),
        ("string(duration('250ms'))", "0.25s"),
        ("timestamp(now).getDayOfWeek()", 0),
        ("bool('t') && !bool('0')", True),
        ("rows.exists(r, r.zz || r.a == 1)", True),
        ("has(row.m.a) && !has(row.m.q)", True),
        ("row['m']['z']", 1),
    ],
)
def test_a_value_is_what_it_says(text: str, value: Any) -> None:
    row = {"l": [1, 2, 3], "m": {"z": 1, "b": 2, "a": 3}}
    assert run(text, row=row, rows=[{"a": 1}], now="2026-03-29T01:30:00Z") == value


@pytest.mark.parametrize(
    "text", ["1 == true", "0 == false", "'1' == 1", "null == false", "[1] == [true]", "{'a': 1} == {'a': true}"]
)
def test_a_number_never_equals_a_truth(text: str) -> None:
    assert run(f"dyn({text.split(' == ')[0]}) == {text.split(' == ')[1]}") is False


@pytest.mark.parametrize(
    "text, problem",
    [
        ("'a' + 1", "write string"),
        ("1 && true", "takes true or false, not a whole number"),
        ("row ? 1 : 2", "takes true or false, not an object"),
        ("{1: 2}", "in JSON it is text"),
        ("{'a': 1, 'a': 2}", "stands twice"),
        ("row[1]", "its keys are text"),
        ("[1]['a']", "whole numbers from 0"),
        ("[1][1.5]", "whole numbers from 0"),
        ("1[0]", "has no items"),
        ("1.5 % 2", "two whole numbers"),
        ("'a' < 1", "no order"),
        ("size(null)", "does not take null"),
        ("dyn(1).map(x, x)", "of a list or an object"),
        ("['a', 1].join()", "list of text"),
        ("'a'.replace('a', 1)", "takes text"),
        ("'a'.split(1)", "takes text"),
        ("dyn(1).contains('a')", "takes text"),
        ("dyn(1).getHours()", "of an instant"),
        ("1.0 / 0.0", "divided by zero"),
        ("string([1])", "does not take a list"),
    ],
)
def test_what_cannot_be_computed_says_why(text: str, problem: str) -> None:
    with pytest.raises(Unmet) as told:
        run(text, row={})
    assert problem in told.value.problem
