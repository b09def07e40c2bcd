"""Templates: JSON with expressions at its leaves."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onefold.reflex.cel import FUEL
from onefold.reflex.templates import CelTransform, free_names
from onefold.terms.codec import canonical
from onefold.terms.errors import BadArguments

transform = CelTransform()
texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts
)
plain = st.recursive(
    scalars,
    lambda of: st.lists(of, max_size=4) | st.dictionaries(texts.filter(lambda k: k[:1] != "$"), of, max_size=4),
    max_leaves=12,
)
anything = st.recursive(
    scalars, lambda of: st.lists(of, max_size=4) | st.dictionaries(texts, of, max_size=4), max_leaves=12
)
ENV: dict[str, Any] = {
    "params": {"graceDays": 5},
    "occurrence": {"key": "2026-03", "at": "2026-03-01T03:30:00Z"},
    "row": {"id": "s1", "amount": 12, "tags": ["b", "a"], "m": {"z": 1, "a": 2, "k": 3}},
    "rows": [{"id": f"s{n}", "amount": n} for n in range(3)],
    "now": "2026-03-01T03:30:01Z",
}


def escaped(value: Any) -> Any:
    """The template that gives this value."""
    if isinstance(value, dict):
        return {f"${key}" if key[:1] == "$" else key: escaped(item) for key, item in value.items()}
    return [escaped(item) for item in value] if isinstance(value, list) else value


@given(plain)
def test_a_template_without_leaves_is_itself(value: Any) -> None:
    assert canonical(transform(value, {})) == canonical(value)
    assert free_names(value) == []


@given(anything)
def test_any_value_can_be_written_as_it_is(value: Any) -> None:
    assert canonical(transform(escaped(value), {})) == canonical(value)


@given(anything)
def test_what_a_leaf_gives_is_the_value(value: Any) -> None:
    given_back = transform(
        {"a": {"$": "row"}, "b": {"$each": "rows", "do": {"$": "item"}}}, {"row": value, "rows": [value]}
    )
    assert canonical(given_back) == canonical({"a": value, "b": [value]})


def test_leaves_see_the_environment() -> None:
    template = {
        "subscription": {"$": "row.id"},
        "amount": {"$": "row.amount * params.graceDays"},
        "month": {"$": "occurrence.key"},
        "since": {"$": "timestamp(now) - duration('72h')"},
        "lines": {
            "$each": "rows.filter(r, r.amount > 0)",
            "as": "r",
            "do": {"id": {"$": "r.id"}, "of": {"$": "row.id"}},
        },
        "fixed": ["a", 1, None, {"$$": "x", "$$ref": "y"}],
    }
    assert transform(template, ENV) == {
        "subscription": "s1",
        "amount": 60,
        "month": "2026-03",
        "since": "2026-02-26T03:30:01Z",
        "lines": [{"id": "s1", "of": "s1"}, {"id": "s2", "of": "s1"}],
        "fixed": ["a", 1, None, {"$": "x", "$ref": "y"}],
    }


def test_each_may_stand_within_each() -> None:
    template = {"$each": "rows", "as": "r", "do": {"$each": "row.tags", "do": {"$": "r.id + item"}}}
    assert transform(template, ENV) == [["s0b", "s0a"], ["s1b", "s1a"], ["s2b", "s2a"]]
    assert free_names(template) == []


def test_every_process_gives_the_same_bytes() -> None:
    script = (
        "from onefold.reflex.templates import CelTransform\n"
        "from onefold.terms.codec import canonical\n"
        "env = {'row': {'m': dict.fromkeys('zyxwvutsrq', 1)}}\n"
        "print(canonical(CelTransform()({'a': {'$': 'row.m.map(k, k)'}, 'b': {'$': 'row.m'}}, env)).decode())"
    )
    run = [sys.executable, "-c", script]
    told = {subprocess.run(run, capture_output=True, check=True, env={"PYTHONHASHSEED": seed}).stdout for seed in "12"}
    letters = sorted("zyxwvutsrq")
    assert told == {canonical({"a": letters, "b": dict.fromkeys(letters, 1)}) + b"\n"}


@given(plain, plain)
def test_the_same_question_has_the_same_answer(row: Any, other: Any) -> None:
    template = {"a": {"$": "row"}, "b": {"$": "[row, row == params]"}}
    once = canonical(transform(template, {"row": row, "params": other}))
    assert once == canonical(transform(template, {"params": other, "row": row}))


def test_what_it_gives_is_a_copy() -> None:
    row = {"l": [1]}
    given_back = transform({"a": {"$": "row.l"}, "b": {"$": "row.l"}}, {"row": row})
    given_back["a"].append(2)
    assert (row, given_back["b"]) == ({"l": [1]}, [1])


# --- what is wrong, before it runs ------------------------------------------------------------------


@pytest.mark.parametrize(
    "template, where, problem",
    [
        ({"a": [{"$": "rwo.x"}]}, "effect.input.a[0]", "there is no 'rwo' here; did you mean 'row'?"),
        ({"$": "zzz"}, "effect.input", "there is params, occurrence, fact"),
        ({"a": {"$": "1 +"}}, "effect.input.a", "ends too early (character 4"),
        ({"a": {"$": "rows.mpa(r, r)"}}, "effect.input.a", "did you mean 'map'?"),
        ({"$": "1", "x": 2}, "effect.input", "stands alone"),
        ({"$": 1}, "effect.input", "an expression is text"),
        ({"$ref": 1}, "effect.input", "write '$$ref'"),
        ({"$eac": "rows", "do": 1}, "effect.input", "did you mean '$each'"),
        ({"$each": "rows"}, "effect.input", 'needs "do"'),
        ({"$each": ["a"], "do": 1}, "effect.input", "as text"),
        ({"$each": "rows", "do": 1, "ass": "r"}, "effect.input", "did you mean 'as'?"),
        ({"$each": "rows", "do": 1, "as": "row"}, "effect.input", "is a new name"),
        ({"$each": "rows", "do": 1, "as": "in"}, "effect.input", "is a new name"),
        ({"$each": "rowss", "do": 1}, "effect.input.$each", "did you mean 'rows'?"),
        ({"$each": "rows", "as": "r", "do": {"a": {"$": "q.id"}}}, "effect.input.do.a", "there is no 'q' here"),
        ({"a": {"$": "item.id"}}, "effect.input.a", "there is no 'item' here"),
    ],
)
def test_a_slip_is_found_before_it_runs(template: Any, where: str, problem: str) -> None:
    (finding,) = free_names(template, "effect.input")
    assert finding.where == where
    assert problem in finding.problem
    assert finding.level == "refused"
    with pytest.raises(BadArguments):
        transform(template, {})


def test_names_may_be_narrowed() -> None:
    (finding,) = free_names({"$": "row.x + fact.y"}, "when", known=("params", "fact"))
    assert "there is no 'row' here" in finding.problem


def test_names_of_a_loop_are_its_own() -> None:
    template = {"$": "rows.map(r, r.a + params.b) + fact.l"}
    assert free_names(template) == []


# --- what is wrong, when it runs --------------------------------------------------------------------


@pytest.mark.parametrize(
    "template, field, problem",
    [
        ({"a": {"b": {"$": "row.amuont"}}}, "a.b", "did you mean 'amount'?, in 'row.amuont'"),
        ({"a": [1, {"$": "fact.x"}]}, "a[1]", "there is no 'fact' here"),
        ({"$each": "row", "do": 1}, "$each", "must give a list"),
        ({"$each": "rows", "do": {"$": "item.nope"}}, "do[0]", "there is no 'nope' in it"),
        ({"a": {"$": "double('1e300') * 1e300"}}, "a", "not finite"),
    ],
)
def test_a_fault_names_its_place(template: Any, field: str, problem: str) -> None:
    with pytest.raises(BadArguments) as told:
        transform(template, ENV)
    (fault,) = told.value.faults
    assert fault.field == field
    assert problem in fault.problem


def test_one_call_has_one_budget() -> None:
    small = CelTransform(fuel=100)
    assert small({"$": "rows.map(r, r.id)"}, {"rows": ENV["rows"]}) == ["s0", "s1", "s2"]
    with pytest.raises(BadArguments, match="more than 100 steps"):
        small([{"$": "rows.map(r, r.id)"}] * 20, {"rows": ENV["rows"]})
    with pytest.raises(BadArguments, match="more than 100 steps"):
        small({"$each": "rows", "do": 1}, {"rows": [1] * 200})
    assert FUEL >= 10_000 * 10  # as many rows as one batch may hold, and ten steps for each


@pytest.mark.parametrize("expression", ["rows.map(a, rows)", "rows.map(a, [1, 2].map(b, rows))", "[row, row, row]"])
def test_what_it_gives_is_bounded(expression: str) -> None:
    rows = [{"id": n} for n in range(300)]
    with pytest.raises(BadArguments, match="would give more than 1048576 bytes"):
        transform({"a": {"$": expression}}, {"rows": rows * 4, "row": "x" * 500_000})


def test_depth_is_bounded() -> None:
    deep: Any = 1
    for _ in range(80):
        deep = [deep]
    assert "nested deeper" in free_names(deep)[0].problem
    for template, env in ((deep, {}), ({"$": "row"}, {"row": deep})):
        with pytest.raises(BadArguments, match="nested deeper"):
            transform(template, env)
