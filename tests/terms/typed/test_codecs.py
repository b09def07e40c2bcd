"""What was written is read; what could not be read back is not written."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from enum import IntEnum
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onefold.terms.codec import canonical, parse
from onefold.terms.errors import BadArguments, CallerError
from onefold.terms.limits import MAX_INT, MIN_INT
from onefold.terms.typed import Codec, UnknownKind, codec_of
from tests.terms.typed.kinds import CLASSES, LEAVES, UNIONS, Color, Deposit, Level, PayOut, any_type, deposits, payouts

ALL = [pytest.param(kind, values, id=str(kind)) for kind, values in [*LEAVES, *CLASSES, *UNIONS]]


def check_round_trip(codec: Codec[Any], value: Any) -> None:
    raw = codec.encode(value)
    assert canonical(parse(raw)) == raw
    found = codec.decode(raw)
    assert found == value
    assert type(found) is type(value)
    assert codec.encode(found) == raw
    assert codec.from_json(parse(raw)) == value
    assert codec.to_json(value) == parse(raw)
    assert codec.seal(value) == (raw, value)
    assert codec.round_trip(value) == value
    assert codec.decode(codec.slim(value)) == value
    assert codec.slim(found) == codec.slim(value)
    assert codec.seal(value, slim=True) == (codec.slim(value), value)
    assert codec.from_json(parse(codec.slim(value))) == value


@pytest.mark.parametrize("kind, values", ALL)
@settings(max_examples=20)
@given(data=st.data())
def test_every_type_comes_back(kind: Any, values: st.SearchStrategy[Any], data: st.DataObject) -> None:
    check_round_trip(codec_of(kind), data.draw(values))


@given(any_type())
def test_every_type_made_of_types_comes_back(pair: tuple[Any, Any]) -> None:
    kind, value = pair
    check_round_trip(codec_of(kind), value)


@pytest.mark.parametrize("kind, values", [pytest.param(kind, values, id=str(kind)) for kind, values in CLASSES])
@settings(max_examples=20)
@given(data=st.data())
def test_a_lone_class_may_carry_its_name(kind: Any, values: st.SearchStrategy[Any], data: st.DataObject) -> None:
    if getattr(kind, "__total__", None) is not None:
        return  # a TypedDict is a dict and has no name
    codec = codec_of(kind, tagged=True)
    value = data.draw(values)
    check_round_trip(codec, value)
    assert codec.to_json(value)["type"] == (getattr(kind, "__origin__", None) or kind).__name__


@pytest.mark.parametrize("kind, values", ALL)
@settings(max_examples=10)
@given(data=st.data())
def test_two_values_never_have_the_same_bytes(kind: Any, values: st.SearchStrategy[Any], data: st.DataObject) -> None:
    codec = codec_of(kind)
    one, other = data.draw(values), data.draw(values)
    if one != other:
        assert codec.encode(one) != codec.encode(other)
        assert codec.slim(one) != codec.slim(other)


@given(st.lists(deposits | payouts, max_size=4))
def test_many_are_written_and_read_as_one_by_one(values: list[Any]) -> None:
    codec = codec_of(Deposit | PayOut)
    raw = codec.seal_many(values)[0]
    assert raw == b"[" + b",".join(codec.encode(value) for value in values) + b"]"
    assert codec.decode_many(raw) == values
    assert codec.seal_many(values) == (raw, values)


def test_the_form_is_the_one_that_was_promised() -> None:
    codec = codec_of(Deposit | PayOut)
    assert codec.encode(Deposit("1", "a", Decimal("5.00"))) == (
        b'{"account":"a","amount":"5.00","id":"1","type":"Deposit"}'
    )
    assert codec_of(bytes).encode(b"\xff") == b'"/w=="'
    assert codec_of(UUID).encode(UUID(int=1)) == b'"00000000-0000-0000-0000-000000000001"'
    noon = datetime.fromisoformat("2026-01-31T12:00:00.250+02:00")
    assert codec_of(datetime).encode(noon) == b'"2026-01-31T10:00:00.250000Z"'
    assert codec_of(datetime).decode(b'"2026-01-31T12:00:00+02:00"').tzinfo is UTC


def test_the_first_time_is_like_every_time() -> None:
    """What a step gives back is what replay will give back: an int where a float is declared is one."""
    value = codec_of(float).round_trip(1)
    assert (value, type(value)) == (1.0, float)
    assert type(codec_of(int).round_trip(Level.LOW)) is int


def test_a_set_has_one_form_in_every_process() -> None:
    program = (
        "from onefold.terms.typed import codec_of\n"
        "print(codec_of(set[str]).encode(set('abcdefgh')), codec_of(frozenset[str | None]).encode(frozenset('ab') | {None}))"
    )
    for seed in ("1", "2", "3"):
        env = {"PYTHONHASHSEED": seed, "PYTHONPATH": "src"}
        ran = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, check=True, text=True)
        assert ran.stdout == """b'["a","b","c","d","e","f","g","h"]' b'["a","b",null]'\n"""


# --- defaults --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Before:
    id: str


@dataclass(frozen=True)
class After:
    id: str
    flag: bool = False
    some: tuple[str, ...] = ()
    count: int = 1


def test_a_default_added_later_changes_no_digest() -> None:
    assert codec_of(Before).slim(Before("1")) == codec_of(After).slim(After("1")) == b'{"id":"1"}'
    assert codec_of(list[After]).slim([After("1")]) == b'[{"id":"1"}]'
    assert codec_of(After).slim(After("1", count=2)) == b'{"count":2,"id":"1"}'


def test_a_field_that_was_left_out_has_its_default() -> None:
    assert codec_of(After).decode(b'{"id":"1"}') == After("1")
    assert codec_of(PayOut).decode(b'{"id":"1","account":"a","amount":"1"}').tags == []


def test_defaults_are_not_shared() -> None:
    codec = codec_of(PayOut)
    one, other = (codec.decode(b'{"id":"1","account":"a","amount":"1"}') for _ in range(2))
    one.tags.append("x")
    assert other.tags == []


def test_a_default_that_only_equals_is_kept() -> None:
    @dataclass
    class Odd:
        value: int | bool = 1

    codec = codec_of(Odd)
    assert codec.slim(Odd(True)) == b'{"value":true}'
    assert codec.slim(Odd(1)) == b"{}"


# --- what does not fit -------------------------------------------------------------------------------


class Count(IntEnum):
    MANY = 2**70


UNFIT: list[tuple[Any, Any, str]] = [
    (int, MAX_INT + 1, "at most"),
    (int, MIN_INT - 1, "at least"),
    (int, True, "a whole number"),
    (int, 1.0, "a whole number"),
    (int, "1", "a whole number"),
    (int, None, "a whole number"),
    (float, float("nan"), "finite"),
    (float, float("-inf"), "finite"),
    (float | None, float("nan"), "finite"),
    (float, "1", "a number"),
    (bool, 1, "true or false"),
    (str, 1, "text"),
    (str, "\ud800", "surrogate"),
    (str, "a\0", "NUL"),
    (str, UUID(int=1), "UUID"),
    (str, Decimal(1), "Decimal"),
    (str, b"a", "bytes"),
    (Decimal, Decimal("NaN"), "finite"),
    (Decimal, Decimal("sNaN"), "finite"),
    (Decimal, Decimal("-Infinity"), "finite"),
    (Decimal, Decimal("1E+999999"), "finite"),
    (Decimal, 1.5, "decimal"),
    (Decimal, "1", "decimal"),
    (UUID, "00000000-0000-0000-0000-000000000001", "UUID"),
    (bytes, "YWJj", "bytes"),
    (datetime, datetime(2026, 1, 1), "time zone"),  # noqa: DTZ001 - what is refused
    (datetime, "2026-01-01T00:00:00Z", "instant"),
    (Color, "r", "one of 'r' or 'b'"),
    (list[int], (1, 2), "list"),
    (list[int], [1, "2"], "[1]: must be a whole number"),
    (tuple[int, ...], [1], "tuple"),
    (tuple[int, str], (1,), "tuple of 2"),
    (set[int], frozenset({1}), "set"),
    (set[str], {"a", 1}, "list"),
    (dict[str, int], {1: 1}, "text as keys"),
    (dict[str, int], {"a": "b"}, "a: must be a whole number"),
    (dict[str, int], {"\ud800": 1}, "surrogate"),
    (dict[str, int], {"a\0": 1}, "NUL"),
    (dict[str, Any], {"a": {"b": (1,)}}, "a.b: "),
    (dict[str, Any], {"a": Decimal(1)}, "a: "),
    (Any, 2**63, "64 bits"),
    (Any, object(), "object"),
    (Any, {1: 2}, "key"),
    (Deposit, Deposit(5, "a", Decimal(1)), "id: must be text"),  # type: ignore[arg-type]
    (Deposit, Deposit("1", "a", Decimal("NaN")), "amount: must be a finite"),
    (Deposit, PayOut("1", "a", Decimal(1)), "a Deposit"),
    (Deposit, {"id": "1"}, "a Deposit"),
    (Deposit | PayOut, None, "a Deposit or a PayOut"),
    (Deposit | PayOut, {"type": "Deposit"}, "a Deposit or a PayOut"),
    (list[Deposit | PayOut], [5], "a Deposit or a PayOut"),
    (None, 0, "null"),
]


@pytest.mark.parametrize("kind, value, why", UNFIT)
def test_what_could_not_be_read_back_is_not_written(kind: Any, value: Any, why: str) -> None:
    codec = codec_of(kind)
    for write in (codec.encode, codec.seal, codec.slim, codec.to_json, lambda v: codec.seal_many([v])):
        with pytest.raises(BadArguments) as refused:
            write(value)
        assert why in str(refused.value)
        assert str(refused.value).startswith("Nothing was stored. ")
        canonical([[fault.field, fault.problem, fault.got] for fault in refused.value.faults])


def test_a_subclass_is_not_written_as_its_class() -> None:
    @dataclass(frozen=True)
    class Special(Deposit):
        extra: str = "lost"

    with pytest.raises(BadArguments, match="a Deposit"):
        codec_of(Deposit).encode(Special("1", "a", Decimal(1)))


def test_of_many_the_wrong_one_is_named() -> None:
    with pytest.raises(BadArguments, match="id: must be text; sent 5"):
        codec_of(Deposit).seal_many([Deposit("1", "a", Decimal(1)), Deposit(5, "a", Decimal(1))])  # type: ignore[arg-type]


# --- kinds that newer code wrote ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind, raw",
    [
        (Deposit | PayOut, b'{"type":"Refund","id":"1"}'),
        (list[Deposit | PayOut], b'[{"type":"Refund","id":"1"}]'),
        (dict[str, Deposit | PayOut | None], b'{"a":{"type":"Refund"}}'),
    ],
)
def test_an_unknown_kind_is_told_from_a_bad_value(kind: Any, raw: bytes) -> None:
    codec = codec_of(kind)
    for read in (codec.decode, lambda raw: codec.from_json(parse(raw))):
        with pytest.raises(UnknownKind) as unknown:
            read(raw)
        assert unknown.value.kind == "Refund"
        assert isinstance(unknown.value, CallerError)
        assert unknown.value.code == "bad_arguments"


def test_an_unknown_kind_among_many_is_named() -> None:
    codec = codec_of(Deposit | PayOut)
    known = codec.encode(Deposit("1", "a", Decimal(1)))
    with pytest.raises(UnknownKind, match=r"\[1\]\.type"):
        codec.decode_many(b"[" + known + b',{"type":"Refund"}]')
    with pytest.raises(UnknownKind):
        codec_of(Deposit, tagged=True).decode_many(b'[{"type":"Refund"}]')


def test_a_known_kind_that_does_not_fit_is_no_unknown_kind() -> None:
    with pytest.raises(BadArguments) as refused:
        codec_of(Deposit | PayOut).decode(b'{"type":"Deposit","id":1}')
    assert not isinstance(refused.value, UnknownKind)
    assert str(refused.value).startswith("Nothing was read. ")


@pytest.mark.parametrize("raw", [b"", b"[", b"nul", b'{"a":1}', b"\x80\x04\x95", b"5"])
def test_bytes_that_no_codec_wrote_are_refused(raw: bytes) -> None:
    codec = codec_of(Deposit | PayOut)
    for read in (codec.decode, codec.decode_many):
        with pytest.raises(BadArguments):
            read(raw)


@given(st.binary(max_size=40))
def test_any_bytes_are_a_value_or_a_refusal(raw: bytes) -> None:
    codec = codec_of(Any)
    try:
        codec.decode(raw)
    except BadArguments:
        return
    assert codec.decode_many(b"[" + raw + b"]") == [codec.decode(raw)]


def test_a_codec_is_made_once() -> None:
    assert codec_of(Deposit | PayOut) is codec_of(PayOut | Deposit)
    assert codec_of(Deposit) is not codec_of(Deposit, tagged=True)
    assert repr(codec_of(list[int])) == "Codec(list[int])"
