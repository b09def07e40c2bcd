"""What Google's own evaluator says to the same expressions. It is right where both have an answer."""

from __future__ import annotations

from typing import Any

import pytest
from cel_expr_python import cel
from hypothesis import given
from hypothesis import strategies as st

from onefold.reflex.cel import Meter, Misread, Unmet, as_json, compiled
from onefold.reflex.seams import ROOTS

THEIRS = cel.NewEnv(variables=dict.fromkeys(ROOTS, cel.Type.DYN))
SEE: dict[str, Any] = {
    "params": {"days": 5, "rate": 0.5, "on": True},
    "row": {"a": 3, "b": 2.5, "s": "héllo", "n": None, "l": [1, 2, 3], "m": {"x": 1}},
    "rows": [{"a": n, "s": "x" * n} for n in range(5)],
    "now": "2026-03-29T01:30:00Z",
}


def ours(text: str) -> Any:
    try:
        return as_json(compiled(text)(SEE, Meter()))
    except (Misread, Unmet):
        return Unmet


def theirs(text: str) -> Any:
    try:
        value = THEIRS.compile(text).eval(data=SEE)
    except RuntimeError:
        return Unmet
    return Unmet if value.type() == cel.Type.ERROR else as_json(value.plain_value())


AGREED = """
row.a | row.missing | row["a"] | row["b"] * 2.0 | row.l[1] | row.l[3] | row.l[-1] | row.m.x | row.m.x.y | row.n
1 + 2 * 3 | (1 + 2) * 3 | 7 / 2 | -7 / 2 | 7 % 3 | -7 % 3 | 7 % -3 | 1 / 0 | 1 % 0 | 7.0 / 2.0 | 2 - 3 - 4 | - - 1 | -(1)
9223372036854775807 + 1 | -9223372036854775808 | -9223372036854775808 - 1 | 9223372036854775807 * 2 | 9223372036854775808
1 < 2 | dyn(1) < 1.5 | row.a > 2.5 | "a" < "b" | true > false | row.s < 1 | null < 1 | 1 == dyn(1.0) | dyn(1) == "1" | dyn(true) == 1
row.n == null | [1, 2] == [1, 2] | [1] == [dyn(1.0)] | {"a": 1} == {"a": 1} | row.m == {"x": 1} | row.m != {"x": 2}
true && false | true || row.missing | row.missing || true | false && row.missing | row.missing && false | row.missing || false
!true | !!true | !row.a | row.a && true | true ? 1 : 2 | false ? row.missing : 2 | row.a ? 1 : 2 | true ? false ? 1 : 2 : 3
has(row.a) | has(row.missing) | has(row.m.x) | has(row.missing.x) | has(row.a.b) | has(row)
size(row.s) | row.s.size() | size(row.l) | size(row.m) | size(1) | size(rows)
rows.map(r, r.a) | rows.map(r, r.a > 2, r.s) | rows.filter(r, r.a % 2 == 0) | rows.all(r, r.a < 5) | rows.exists(r, r.a == 3)
rows.exists_one(r, r.a == 3) | rows.exists_one(r, r.a > 1) | rows.exists(r, r.zz) | rows.exists(r, r.a == 3 || r.zz)
rows.all(r, r.a < 4 && r.zz) | [].all(x, x) | [].exists(x, x) | row.a.map(x, x) | rows.map(row, row.a) | row.m.all(k, k == "x")
rows.map(r, rows.map(q, q.a * r.a)) | rows.map(r, r.a).filter(n, n > 1).exists(n, n == 4) | [[1]].map(x, x.map(y, y + 1))
3 in row.l | 9 in row.l | "x" in row.m | "y" in row.m | 1 in row.m | 1 in 2 | dyn(1.0) in [1, 2]
"a" + "b" | dyn("a") + 1 | [1] + [2] | row.l + row.l | [1, "a", null] | {"a": 1, "b": {"c": [1]}} | {"a": 1, "a": 2}
string(1) | string(-5) | string(true) | string("x") | string(1.5) | string(timestamp(now)) | int("12") | int("x") | int(2.9) | int(-2.9)
int("9223372036854775808") | double("1.5") | double(3) | double("x") | int(1e300) | bool("true") | bool("maybe")
"abc".contains("b") | "abc".startsWith("ab") | "abc".endsWith("bc") | "abc".contains(1) | row.s.contains("é") | 'it\\'s' | "\\u00e9\\n"
timestamp("2026-01-31T09:00:00+01:00") | timestamp("nope") | timestamp(now) - duration("72h") | timestamp(now) > timestamp("2026-01-01T00:00:00Z")
duration("1h30m") == duration("90m") | timestamp(now) - timestamp("2026-03-28T01:30:00Z") == duration("24h") | int(timestamp(now))
timestamp(now).getFullYear() | timestamp(now).getMonth() | timestamp(now).getDate() | timestamp(now).getDayOfMonth()
timestamp(now).getDayOfWeek() | timestamp(now).getHours() | timestamp(now).getMinutes() | timestamp(now).getSeconds()
foo | row. | row..a | 1 + | (1 | [1, | {"a" 1} | a.b(c | row.in | `a` | row.`s` | $ | rows.map(1, 2) | rows.map(r) | nope(1) | row.nope()
0x10 | 1e3 | .5 | 1.5e-3 | 1 // told | true? 1 :2 | row.a==3&&row.b==2.5 | !(row.a == 3) | -row.a | -row.s
"""
ASKED = [text.strip() for line in AGREED.strip().splitlines() for text in line.split(" | ")]


@pytest.mark.parametrize("text", ASKED)
def test_an_expression_means_what_it_means_elsewhere(text: str) -> None:
    mine, their = ours(text), theirs(text)
    assert (type(mine), mine) == (type(their), their)


numbers = st.one_of(
    st.integers(-100, 100).map(str), st.sampled_from(["row.a", "params.days", "size(rows)", "row.l[0]"])
)
truths = st.sampled_from(["true", "false", "params.on", "row.missing", "has(row.a)"])


def arithmetic(of: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.tuples(of, st.sampled_from("+-*/%"), of).map(lambda t: f"({t[0]} {t[1]} {t[2]})")


def logic(of: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    two = st.tuples(of, st.sampled_from(["&&", "||"]), of).map(lambda t: f"({t[0]} {t[1]} {t[2]})")
    return two | of.map(lambda t: f"!{t}") | st.tuples(of, of, of).map(lambda t: f"({t[0]} ? {t[1]} : {t[2]})")


@given(st.recursive(numbers, arithmetic, max_leaves=8) | st.recursive(truths, logic, max_leaves=8))
def test_what_is_put_together_means_the_same(text: str) -> None:
    assert ours(text) == theirs(text)


def test_the_one_difference_is_that_numbers_mix() -> None:
    assert ours("params.days * params.rate") == 2.5
    assert theirs("params.days * params.rate") is Unmet
