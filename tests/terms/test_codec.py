"""What two readers could take differently is refused; what is taken has one form."""

from __future__ import annotations

import hashlib
import json
import math
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from onefold.terms.codec import canonical, digest, parse, parse_canonical
from onefold.terms.errors import BadArguments
from onefold.terms.limits import MAX_DEPTH, MAX_INT, MIN_INT

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
scalars = (
    st.none() | st.booleans() | st.integers(MIN_INT, MAX_INT) | st.floats(allow_nan=False, allow_infinity=False) | texts
)
values = st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(texts, inner), max_leaves=20)


def same(one: Any, other: Any) -> bool:
    """Equal, and of the same types: 1, 1.0 and True are three."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other) and (not isinstance(one, float) or math.copysign(1, one) == math.copysign(1, other))


@given(values)
def test_a_value_comes_back_from_its_canonical_form(value: Any) -> None:
    raw = canonical(value)
    assert same(parse(raw), value)
    assert canonical(parse(raw)) == raw
    assert canonical(parse(raw), parsed=True) == raw


@given(values, st.booleans(), st.booleans(), st.sampled_from([None, 1, "\t"]))
def test_one_value_has_one_form_however_it_came(value: Any, sort: bool, ascii: bool, indent: Any) -> None:
    came = json.dumps(value, sort_keys=sort, ensure_ascii=ascii, indent=indent).encode()
    assert parse_canonical(came) == (value, canonical(value))


@given(st.dictionaries(texts, scalars, min_size=2))
def test_the_order_of_keys_changes_nothing(value: dict[str, Any]) -> None:
    turned = dict(reversed(value.items()))
    assert canonical(turned) == canonical(value)
    assert list(json.loads(canonical(value))) == sorted(value)


@given(st.dictionaries(texts, values, min_size=1, max_size=5), st.data())
def test_a_key_that_stands_twice_is_refused(value: dict[str, Any], data: st.DataObject) -> None:
    key = data.draw(st.sampled_from(sorted(value)))
    again = data.draw(scalars)
    at = data.draw(st.integers(0, len(value)))
    pairs = list(value.items())
    pairs.insert(at, (key, again))
    ascii = data.draw(st.booleans())
    told = [f"{json.dumps(k, ensure_ascii=ascii)}:{json.dumps(v, ensure_ascii=ascii)}" for k, v in pairs]
    raw = data.draw(st.sampled_from(["{{{}}}", '[1,{{"a:b":[{{{}}}]}}]'])).format(",".join(told)).encode()
    with pytest.raises(BadArguments, match="stands twice"):
        parse(raw)


@given(st.binary(max_size=60))
def test_any_bytes_are_a_value_or_a_refusal(raw: bytes) -> None:
    try:
        value = parse(raw)
    except BadArguments:
        return
    assert parse(canonical(value)) == value


MARKS = [
    "{",
    "}",
    "[",
    "]",
    '"a"',
    '"b:"',
    '"\\u003a"',
    '"\\u0000"',
    '"\\\\u0000"',
    ":",
    ",",
    "1",
    "1e400",
    "null",
    " ",
]


@given(st.lists(st.sampled_from(MARKS), max_size=14))
def test_what_is_taken_is_what_a_strict_reader_takes(marks: list[str]) -> None:
    raw = "".join(marks).encode()

    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        assert len(dict(found)) == len(found)
        return dict(found)

    def number(told: str) -> float:
        assert math.isfinite(float(told))
        return float(told)

    try:
        other = json.loads(raw, object_pairs_hook=pairs, parse_float=number)
        assert "\0" not in str(json.dumps(other, ensure_ascii=False))
        assert "\\u0000" not in json.dumps(other).replace("\\\\", "")
    except (ValueError, AssertionError):
        other = BadArguments
    try:
        ours: Any = parse(raw)
    except BadArguments:
        ours = BadArguments
    assert ours == other


HOSTILE = [
    (b'{"amount":1,"amount":500}', "amount: stands twice"),
    (b'{"a":1,"\\u0061":2}', "a: stands twice"),
    (b'{"x":[{"a":"b:c","a":"d:e"}]}', "x[0].a: stands twice"),
    (b'{"x":[{"a":"b\\u003ac","a":"d"}]}', "x[0].a: stands twice"),
    (b'{"a:":1,"a:":2}', "a:: stands twice"),
    (b"NaN", "not JSON"),
    (b"[Infinity]", "not JSON"),
    (b"-Infinity", "not JSON"),
    (b"1e400", "out of range"),
    (b"-1e400", "out of range"),
    (b'{"a":[1e999]}', "out of range"),
    (b"1" * 50, "within 64 bits"),
    (b"1" * 5000, "out of range"),
    (b"9223372036854775808", "within 64 bits"),
    (b"18446744073709551615", "within 64 bits"),
    (b"-9223372036854775809", "within 64 bits"),
    (b'{"a":[0,{"b":9223372036854775808}]}', "a[1].b: must be a whole number within 64 bits"),
    (b'"\\ud800"', "not JSON"),
    (b'"\\udc00"', "not JSON"),
    (b'"\\ud800x"', "not JSON"),
    (b'"\\udc00\\ud800"', "not JSON"),
    (b'{"\\ud800":1}', "not JSON"),
    (b'"\xed\xa0\x80"', "not UTF-8"),
    (b'"\xff"', "not UTF-8"),
    (b'"\xc0\x80"', "not UTF-8"),
    (b'"\\u0000"', "NUL"),
    (b'"\x00"', "not JSON"),
    (b'{"a":{"b":["x\\u0000"]}}', "a.b[0]: holds a NUL"),
    (b'{"a\\u0000":1}', "key that holds a NUL"),
    (b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1), "nested deeper than 64"),
    (b'{"a":' * (MAX_DEPTH + 1) + b"1" + b"}" * (MAX_DEPTH + 1), "nested deeper than 64"),
    (b"[" * 100_000, "nested deeper than 64"),
    (b'{"a":' * 100_000, "nested deeper than 64"),
    (b"[" * 100_000 + b"]" * 100_000, "nested deeper than 64"),
    (b"\xef\xbb\xbf{}", "not JSON"),
    ('{"a":1}'.encode("utf-16"), "not JSON"),
    (b"", "ends too early"),
    (b" ", "ends too early"),
    (b'{"a":1', "ends too early"),
    (b"1 2", "trailing"),
    (b"{}{}", "trailing"),
    (b'{"a":1}\x00', "trailing"),
    (b"{'a':1}", "not JSON"),
    (b'{"a":1,}', "trailing comma"),
    (b"[1,]", "trailing comma"),
    (b"// x\n1", "not JSON"),
    (b"01", "not JSON"),
    (b"+1", "not JSON"),
    (b".5", "not JSON"),
    (b"1.", "not JSON"),
    (b"0x10", "trailing"),
    (b"True", "not JSON"),
    (b'"a\nb"', "not JSON"),
    (b'"\\x41"', "not JSON"),
    (b"\x80\x04\x95", "not JSON"),  # a pickle
]


@pytest.mark.parametrize("raw, why", HOSTILE)
def test_hostile_json_is_refused_in_plain_words(raw: bytes, why: str) -> None:
    with pytest.raises(BadArguments) as refused:
        parse(raw, "the body")
    assert why in str(refused.value)
    assert len(str(refused.value)) < 1000
    canonical([[fault.field, fault.problem, fault.got] for fault in refused.value.faults])


@pytest.mark.parametrize(
    "raw, value",
    [
        (b"9223372036854775807", MAX_INT),
        (b"-9223372036854775808", MIN_INT),
        (b"[" * MAX_DEPTH + b"]" * MAX_DEPTH, None),
        (b'"\\ud83d\\ude00"', "\U0001f600"),
        (b'"\\\\u0000"', "\\u0000"),
        (b'{"a":"b\\u003ac"}', {"a": "b:c"}),
        (b' {"a" : [ 1 , 2.50 ] } \n', {"a": [1, 2.5]}),
        (b"1e-400", 0.0),
        (b"-0", 0),
        (b'""', ""),
        (b'{"":{}}', {"": {}}),
    ],
)
def test_what_is_strange_but_plain_is_taken(raw: bytes, value: Any) -> None:
    found = parse(raw)
    assert value is None or same(found, value)


@pytest.mark.parametrize(
    "value, raw",
    [
        ({"b": 1, "a": [True, None]}, b'{"a":[true,null],"b":1}'),
        (1, b"1"),
        (1.0, b"1.0"),
        (-0.0, b"-0.0"),
        (1e22, b"1e22"),
        ("é\u2028</script>\x7f", '"é\u2028</script>\x7f"'.encode()),
        ('a"\\\n\x1f', b'"a\\"\\\\\\n\\u001f"'),
        ({"é": 1, "z": 2, "\U0001f600": 3, "\uffff": 4}, '{"z":2,"é":1,"\uffff":4,"\U0001f600":3}'.encode()),
    ],
)
def test_the_canonical_form_is_fixed(value: Any, raw: bytes) -> None:
    assert canonical(value) == raw


@pytest.mark.parametrize(
    "value, where",
    [
        (math.nan, ""),
        ({"a": [math.inf]}, "a[0]"),
        (MAX_INT + 1, ""),
        ({"a": {"b": MIN_INT - 1}}, "a.b"),
        ("\ud800", ""),
        ({"a": "\udfff"}, "a"),
        ({"\ud800": 1}, ""),
        (["a\0"], "[0]"),
        ({"a\0": 1}, ""),
        ({1: 2}, ""),
        ({"a": {None: 1}}, "a"),
        ({"a": (1, 2)}, "a"),
        ({1, 2}, ""),
        (b"bytes", ""),
        (Decimal(1), ""),
        (date(2026, 1, 1), ""),
        (object(), ""),
        ([Any], "[0]"),
    ],
)
def test_what_could_not_be_read_back_is_not_written(value: Any, where: str) -> None:
    with pytest.raises(BadArguments) as refused:
        canonical(value)
    (fault,) = refused.value.faults
    assert fault.field == where
    canonical([fault.problem, fault.got])  # the refusal itself can be sent


def test_deep_values_are_not_written() -> None:
    deep: Any = 1
    for _ in range(MAX_DEPTH):
        deep = [deep]
    assert parse(canonical(deep)) == deep
    with pytest.raises(BadArguments, match="nested deeper"):
        canonical([deep])
    itself: list[Any] = []
    itself.append(itself)
    with pytest.raises(BadArguments, match="nested deeper"):
        canonical(itself)


@given(values, values)
def test_two_values_have_two_forms(one: Any, other: Any) -> None:
    assume(not same(one, other))
    assert canonical(one) != canonical(other)


def test_a_digest_keeps_all_its_bytes() -> None:
    assert digest(b"x") == hashlib.sha256(b"x").digest()
    assert len(digest(b"")) == 32
