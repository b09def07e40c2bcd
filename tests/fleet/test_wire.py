"""A fault crosses between nodes as the same class with the same sentence and fields; what is not signed is let in by nobody."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from onefold.fleet import wire
from onefold.fleet.wire import (
    AT_ONCE,
    FRESH_S,
    Answer,
    ElsewhereFailed,
    Sent,
    answered,
    boxed,
    fault_of,
    is_signed,
    line_of,
    refused,
    sents_of,
    signature,
    told_of,
)
from onefold.terms import damage, errors, turns
from onefold.terms.codec import canonical
from onefold.terms.errors import BadArguments, DecideFailed, Fault, Finding, OnefoldError, StepFailed
from onefold.terms.ids import ActorId
from onefold.terms.turns import TurnFailed

SECRET, OTHER = b"one secret of the fleet", b"another secret"
NOW = 1_700_000_000
SAMPLES: dict[str, Any] = {
    "faults": [Fault("input.n", "must be a number", "x"), Fault("", "is wrong")],
    "findings": [Finding("port mail", "has no address")],
    "nearest": "close",
    "known": ("alpha", "beta"),
    "size": 11,
    "limit": 10,
    "expected": 7,
    "found": 5,
    "first": 3,
    "line": 4,
    "ran": 1,
    "of": 3,
    "seconds": 2.5,
    "attempts": 2,
    "held_epoch": 1,
    "record_epoch": 2,
    "nothing_was": "stored",
}


def classes() -> list[type[OnefoldError]]:
    """Every fault of the three rooms of them that is raised itself."""
    found = [
        each
        for room in (errors, turns, damage)
        for each in vars(room).values()
        if inspect.isclass(each) and issubclass(each, OnefoldError) and each.__module__ == room.__name__
    ]
    abstract = {errors.OnefoldError, errors.CallerError, errors.HostError, errors.Failed, TurnFailed}
    return [each for each in found if each not in abstract]


def made(kind: type[OnefoldError], *, bare: bool = False) -> OnefoldError:
    """One of this kind; bare: with nothing but what it must have."""
    arguments = {}
    for name, parameter in inspect.signature(kind).parameters.items():
        if bare and parameter.default is not inspect.Parameter.empty:
            continue
        sample = SAMPLES.get(name, f"the {name}, “quoted” and long")
        wanted = str(parameter.annotation)
        arguments[name] = {"int": 12, "str": f"{sample}"}.get(wanted, sample)
    return kind(**arguments)


@pytest.mark.parametrize("bare", [False, True])
@pytest.mark.parametrize("kind", classes(), ids=lambda kind: kind.__name__)
def test_a_fault_arrives_as_the_one_that_was_raised(kind: type[OnefoldError], bare: bool) -> None:
    fault = made(kind, bare=bare)
    told = line_of(refused(3, fault))
    assert told.n == 3
    again = told.told
    assert type(again) is kind
    assert str(again) == str(fault)
    assert again.fields == fault.fields
    assert (again.status, again.exit, again.retry) == (fault.status, fault.exit, fault.retry)


def test_a_fault_arrives_with_what_came_where_that_is_no_text() -> None:
    fault = BadArguments([Fault("n", "must be a number", [1, 2]), Fault("m", "is late", {"a": None})])
    again = fault_of(told_of(fault))
    assert str(again) == str(fault)
    failed = fault_of(told_of(StepFailed("pay", 3, "Declined", "no", {"why": ["a", 1], "at": None})))
    assert isinstance(failed, StepFailed)
    assert failed.data == {"why": ["a", 1], "at": None}


def test_a_fault_arrives_whatever_it_carries() -> None:
    deep: Any = "x"
    for _ in range(400):
        deep = [deep]
    for got in (deep, float("nan"), 10**5_000, "half \udcff of one", object(), {"a": "\udc80"}, {1: 2}, b"\xff"):
        again = fault_of(told_of(BadArguments([Fault("n", "is wrong", got)])))
        assert isinstance(again, BadArguments)
        assert again.faults[0].problem == "is wrong"
    again = fault_of(told_of(DecideFailed("bank", "k", "ValueError", "half \udcff of one")))
    assert isinstance(again, DecideFailed)
    assert "half ? of one" in str(again)


def test_the_first_of_many_faults_arrive_and_how_many_more_there_are() -> None:
    fault = BadArguments([Fault(f"f{n}", "is wrong") for n in range(500)])
    assert str(fault_of(told_of(fault))) == str(fault)


def test_a_fault_that_this_code_does_not_know_is_told_as_such_and_is_safe_to_try_again() -> None:
    class OfANewerVersion(errors.CallerError):
        def __init__(self) -> None:
            super().__init__("Something new is wrong.")

    again = fault_of(told_of(OfANewerVersion()))
    assert isinstance(again, ElsewhereFailed)
    assert again.retry == "same"
    assert "Something new is wrong." in str(again)


@pytest.mark.parametrize(
    "raw",
    [
        b'{"code":"key_conflict"}',
        b'{"code":"key_conflict","fields":{"other":1}}',
        b'{"code":"key_conflict","fields":[]}',
        b'{"code":"key_conflict","fields":3}',
        b'{"code":"bad_arguments","fields":{"faults":3}}',
        b'{"code":"bad_arguments","fields":{"faults":[{}],"nothing_was":"x"}}',
        b'{"code":"too_large","fields":{"what":[],"size":{},"limit":null}}',
        b'{"code":"parse_failed","fields":{"kind":"nonesuch","ran":1,"of":1}}',
        b'{"code":7}',
        b"{}",
    ],
)
def test_what_is_no_fault_of_ours_is_still_one_error(raw: bytes) -> None:
    assert isinstance(fault_of(raw), OnefoldError)


@pytest.mark.parametrize("raw", [b"[]", b"3", b"null", b"", b"{"])
def test_what_is_no_fault_at_all_is_nobodys(raw: bytes) -> None:
    with pytest.raises(BadArguments):
        fault_of(raw)


def test_an_answer_is_one_line_with_its_place() -> None:
    for reply in (b"null", b'"a\\nb"', b'{"a":[1,2]}', b"0", b"false"):
        for replayed in (False, True):
            raw = answered(7, Answer(reply, replayed))
            assert raw.count(b"\n") == 1
            line = line_of(raw)
            assert (line.n, line.told) == (7, Answer(reply, replayed))


# --- turns ------------------------------------------------------------------------------------------


def test_a_turn_arrives_as_it_was_sent_and_is_the_same_as_a_letter() -> None:
    for principal in (None, "studio", "-", "a/b"):
        sent = Sent(ActorId("Room", principal, "a/b"), "d/k", b"\x01\xff", {"type": "x", "n": [1, None]})
        assert sents_of(canonical([sent.to_json()])) == [sent]
        assert boxed(sent.at, sent.event, sent.body) == sent


def test_a_program_is_told_from_an_event_of_a_module_that_has_a_field_of_that_name() -> None:
    at = ActorId("Room", None, "a")
    assert Sent(at, "d/k", b"", {"program": "x"}).is_program
    assert not Sent(at, "d/k", b"", {"type": "Said", "program": "x"}).is_program
    assert not Sent(at, "d/k", b"", "program").is_program


GOOD = Sent(ActorId("Room", None, "a"), "d/k", b"\x01", {"type": "x"}).to_json()


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[",
        b"{}",
        b"[]",
        b"3",
        b"[3]",
        b"[null]",
        b"[{}]",
        b"\xff\xfe",
        canonical([GOOD] * (AT_ONCE + 1)),
        canonical([{**GOOD, "digest": "zz"}]),
        canonical([{**GOOD, "digest": "0"}]),
        canonical([{**GOOD, "key": ""}]),
        canonical([{**GOOD, "key": "x" * 2_000}]),
        canonical([{**GOOD, "event": ""}]),
        canonical([{**GOOD, "event": 3}]),
        canonical([{**GOOD, "kind": None}]),
        canonical([{key: value for key, value in GOOD.items() if key != "word"}]),
        b"[" * 100_000,
    ],
)
def test_what_is_no_turn_is_refused_in_words(body: bytes) -> None:
    with pytest.raises(BadArguments):
        sents_of(body)


# --- who may ask -------------------------------------------------------------------------------------


def test_only_who_has_the_secret_lately_and_for_this_very_thing_is_let_in() -> None:
    signed = signature(SECRET, NOW, wire.PATH, b"[]")
    assert is_signed([SECRET], signed, NOW, wire.PATH, b"[]")
    assert is_signed([OTHER, SECRET], signed, NOW + FRESH_S, wire.PATH, b"[]")
    assert is_signed([SECRET], signed, NOW - FRESH_S, wire.PATH, b"[]")
    assert not is_signed([OTHER], signed, NOW, wire.PATH, b"[]")
    assert not is_signed([], signed, NOW, wire.PATH, b"[]")
    assert not is_signed([SECRET], signed, NOW + FRESH_S + 1, wire.PATH, b"[]")
    assert not is_signed([SECRET], signed, NOW - FRESH_S - 1, wire.PATH, b"[]")
    assert not is_signed([SECRET], signed, NOW, wire.NUDGE, b"[]")
    assert not is_signed([SECRET], signed, NOW, wire.PATH, b"[] ")
    mac = signed.partition(",")[2]
    assert not is_signed([SECRET], f"{NOW + 1},{mac}", NOW, wire.PATH, b"[]")


@pytest.mark.parametrize(
    "header",
    [None, "", ",", "x", "1", f"{NOW}", f"{NOW},", "²,a", "-1,a", f"{'9' * 400},a", f"{NOW},é", f"{NOW},\udcff"],
)
def test_a_header_of_whatever_kind_is_no_signature(header: str | None) -> None:
    assert not is_signed([SECRET], header, NOW, wire.PATH, b"")
