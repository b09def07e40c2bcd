"""What a worker may say, and what none says: judged by value, before anything acts on it."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import Raw

from onefold.actuators.carried import Change, Progress, Raised, Rested, Returned, Stuck
from onefold.actuators.parts import Asking, Trouble, Wait
from onefold.actuators.words import Stepped, Trying, Waiting
from onefold.kernel.blob import raw_pointer
from onefold.ports.sandbox.judging import Judge, Nonsense
from onefold.terms.limits import MAX_ROW_BYTES

JUDGE = Judge({"mine"}, frozenset({"https://api.example.com"}))


def stepped(**changes: Any) -> Stepped:
    return Stepped(**{"call": "0.1#2", "name": "a", "digest": "d", "attempt": 1, "result": Raw(b"1"), **changes})


def wait(**changes: Any) -> Wait:
    return Wait(**{"call": "0#1", "kind": "event", "name": "Go", "digest": "d", **changes})


def asks(**changes: Any) -> Wait:
    asking = Asking(**{"message": "?", "notify": ("boss",), **changes})
    return wait(kind="approval", asking=asking)


HONEST: list[Any] = [
    stepped(),
    stepped(call="h0123456789abcdef0123456789abcdef.3#0"),
    stepped(trouble=Trouble("ValueError", "", place="a.py:1"), again_after=1),
    Trying("0#1", 1),
    Waiting((wait(), asks(), wait(kind="sleep", after=0)), ("0#1",), ("c#0",)),
    Waiting((wait(kind="child", name="mine/run_1"),)),
    Change(("0#1:newer",)),
    Progress(1, "half", 1, 2.5),
]
FALSE: list[Any] = [
    stepped(call="0"),
    stepped(call="1#0"),
    stepped(call="0#" + "1" * 400),
    stepped(name=""),
    stepped(name="x" * 101),
    stepped(name="a\0"),
    stepped(digest="d" * 65),
    stepped(attempt=0),
    stepped(attempt=10**9),
    stepped(again_after=0),
    stepped(again_after=10**15),
    stepped(result=Raw(b"x" * MAX_ROW_BYTES)),
    stepped(result=Raw(b'{"a":1,"a":2}')),
    stepped(result=Raw(b"[" * 100 + b"]" * 100)),
    stepped(result=raw_pointer(bytes(32))),
    stepped(trouble=Trouble("k" * 101, "")),
    stepped(trouble=Trouble("k", "m" * 5_000)),
    stepped(trouble=Trouble("k", "", data=Raw(b'"' + b"x" * 5_000 + b'"'))),
    Trying("#", 1),
    Waiting(tuple(wait(call=f"0#{n}") for n in range(1_001))),
    Waiting((), ("nothing",)),
    Waiting((wait(kind="retry"),)),
    Waiting((wait(kind="approval"),)),
    Waiting((wait(asking=Asking("?", ("boss",))),)),
    Waiting((wait(kind="child", name="other/run_1"),)),
    Waiting((wait(kind="child", name="run_1"),)),
    Waiting((wait(after=-1),)),
    Waiting((asks(notify=()),)),
    Waiting((asks(message="m" * 5_000),)),
    Waiting((asks(need=0),)),
    Waiting((asks(offer=Raw(b"{}"), rules=Raw(b"[]")),)),
    Change(()),
    Progress(0, "x"),
    Progress(1, "x", done=float("inf")),
]


@pytest.mark.parametrize("event", HONEST, ids=repr)
def test_what_a_pass_says_is_taken(event: Any) -> None:
    assert JUDGE.event(event) is event


@pytest.mark.parametrize("event", FALSE, ids=lambda event: repr(event)[:60])
def test_what_none_says_is_not(event: Any) -> None:
    with pytest.raises(Nonsense):
        JUDGE.event(event)


def test_how_a_pass_ends() -> None:
    honest: list[Any] = [Returned(2, Raw(b"1"), ("mine/run_1",)), Rested(5, (wait(),)), Stuck(0, ("0",))]
    for outcome in honest:
        assert JUDGE.outcome(outcome, 3, 5) is outcome
    false: list[Any] = [
        Rested(2),  # entries that it was handed and has not seen would be another pass at once, for ever
        Rested(6),
        Returned(6),
        Returned(1, Raw(b"1"), ("other/run_1",)),
        Returned(1, raw_pointer(bytes(32))),
        Raised(1, Trouble("", "")),
        Stuck(1, ("0",) * 20_000),
    ]
    for outcome in false:
        with pytest.raises(Nonsense):
            JUDGE.outcome(outcome, 3, 5)


NESTED = {f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(40)}


@pytest.mark.parametrize(
    "rules, problem",
    [
        (b'{"type":"object","properties":{"pattern":{"type":"string"},"n":{"type":"integer"}}}', None),
        (b'{"type":"object","properties":{"a":{"type":"string","pattern":"(a+)+"}}}', "no pattern"),
        (b'{"$ref":"#/$defs/A","$defs":{"A":{"$ref":"#/$defs/A"}}}', "hold itself"),
        (b'{"type":"number"}', "its own rules"),
        (b'{"type":"object","properties":{"n":{"type":"integer","multipleOf":0}}}', "its own rules"),
        (b'{"type":"object","properties":7}', "its own rules"),
    ],
)
def test_an_offer_is_judged_here_by_rules_that_end(rules: bytes, problem: str | None) -> None:
    told = JUDGE.refusal([asks(offer=Raw(b'{"n":4}'), rules=Raw(rules))])
    assert (problem is None) if told is None else (problem is not None and problem in told), told


def test_rules_that_grow_without_end_are_not_followed() -> None:
    import msgspec

    rules = msgspec.json.encode({"$ref": "#/$defs/d0", "$defs": {**NESTED, "d40": {"type": "null"}}})
    told = JUDGE.refusal([asks(offer=Raw(b"{}"), rules=Raw(rules))])
    assert told is not None
    assert "too large" in told


def test_notices_go_to_people_and_declared_hosts() -> None:
    for notify in ("boss", "https://api.example.com/x?token=1"):
        assert JUDGE.refusal([asks(notify=(notify,))]) is None
    for notify in (
        "mailto:a@example.com",
        "https://api.example.com.evil.example/",
        "https://api.example.com:8443/",
        "x:y",
    ):
        assert JUDGE.refusal([asks(notify=(notify,))]) is not None, notify
