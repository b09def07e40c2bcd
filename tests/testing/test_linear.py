"""What could have happened one after another is said to, and nothing else is: held to brute force and to known cases."""

from __future__ import annotations

import os
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onefold.testing.linear import Call, Contradiction, Recorder, judged, once

EXAMPLES = 4_000 if os.environ.get("ONEFOLD_DEEP") else 200


def register(state: int, what: Any) -> tuple[int, Any]:
    """A number that is read, written, or swapped for another when it is as expected."""
    match what:
        case ("read",):
            return state, state
        case ("write", value):
            return value, None
        case ("cas", expected, value):
            return (value, True) if state == expected else (state, False)
        case _:
            raise AssertionError(what)


def brute(calls: list[Call]) -> bool:
    """Every choice of the unknown calls, in every order."""
    known = [call for call in calls if call.ended is not None]
    unknown = [call for call in calls if call.ended is None]
    for chosen in range(1 << len(unknown)):
        taken = known + [call for i, call in enumerate(unknown) if chosen >> i & 1]
        if any(fits(order) for order in permutations(taken)):
            return True
    return False


def fits(order: tuple[Call, ...]) -> bool:
    state = 0
    for place, call in enumerate(order):
        if any(later.ended is not None and later.ended < call.made for later in order[place + 1 :]):
            return False
        state, answer = register(state, call.what)
        if call.ended is not None and answer != call.answer:
            return False
    return True


@st.composite
def histories(draw: st.DrawFn) -> list[Call]:
    """Up to five calls that overlap anyhow, answered as they may be or not."""
    size = draw(st.integers(0, 5))
    instants = draw(st.permutations(range(2 * size)))
    calls: list[Call] = []
    for i in range(size):
        made, ended = sorted(instants[2 * i : 2 * i + 2])
        value = st.integers(0, 3)
        what = draw(
            st.one_of(
                st.just(("read",)),
                st.tuples(st.just("write"), value),
                st.tuples(st.just("cas"), value, value),
            )
        )
        answer = draw(value) if what[0] == "read" else draw(st.booleans()) if what[0] == "cas" else None
        calls.append(Call(what, made, draw(st.sampled_from((ended, ended, ended, None))), answer))
    return calls


@given(histories())
@settings(max_examples=EXAMPLES)
def test_it_says_what_brute_force_says(calls: list[Call]) -> None:
    verdict = judged(calls, 0, register)
    assert verdict.linear == brute(calls), str(verdict)
    if verdict:
        assert fits(verdict.order)
        assert {id(call) for call in calls if call.ended is not None} <= {id(call) for call in verdict.order}


def write(value: int, made: int, ended: int | None) -> Call:
    return Call(("write", value), made, ended)


def read(value: int, made: int, ended: int) -> Call:
    return Call(("read",), made, ended, value)


LINEAR = {
    "nothing": [],
    "one after another": [write(1, 1, 2), read(1, 3, 4)],
    "a read beside a write sees either": [write(1, 1, 4), read(0, 2, 3)],
    "two reads beside a write, old then new": [write(1, 1, 8), read(0, 2, 3), read(1, 4, 5)],
    "an unknown write that never happened": [write(1, 1, None), read(0, 2, 3), read(0, 4, 5)],
    "an unknown write that happened much later": [write(1, 1, None), read(0, 2, 3), write(2, 4, 5), read(1, 6, 7)],
    "of two swaps one wins": [
        Call(("cas", 0, 1), 1, 4, False),
        Call(("cas", 0, 2), 2, 3, True),
        read(2, 5, 6),
    ],
}
NOT_LINEAR = {
    "a write that is gone": [write(1, 1, 2), read(0, 3, 4)],
    "a read that goes back": [write(1, 1, 8), read(1, 2, 3), read(0, 4, 5)],
    "an unknown write that comes and goes": [write(1, 1, None), read(1, 2, 3), read(0, 4, 5)],
    "an unknown write before it was made": [read(1, 1, 2), write(1, 3, None)],
    "two swaps of one value": [Call(("cas", 0, 1), 1, 3, True), Call(("cas", 0, 2), 2, 4, True)],
    "a value nobody wrote": [write(1, 1, 2), read(7, 3, 4)],
    "a swap that fails for no reason": [Call(("cas", 0, 1), 1, 2, False)],
}


@pytest.mark.parametrize("calls", LINEAR.values(), ids=LINEAR)
def test_what_could_have_happened_is_linear(calls: list[Call]) -> None:
    assert judged(calls, 0, register)


@pytest.mark.parametrize("calls", NOT_LINEAR.values(), ids=NOT_LINEAR)
def test_what_could_not_have_happened_is_not(calls: list[Call]) -> None:
    verdict = judged(calls, 0, register)
    assert not verdict
    assert "no order" in str(verdict)


def test_a_refusal_says_which_call_fits_nowhere_and_what_it_would_have_been() -> None:
    verdict = judged([write(1, 1, 2), read(0, 3, 4)], 0, register)
    assert [call.what for call in verdict.order] == [("write", 1)]
    assert [(call.answer, would) for call, would in verdict.stuck] == [(0, 1)]


def test_long_histories_of_few_callers_are_judged_soon() -> None:
    """More orders than can be counted, most of them the same few states."""
    calls = [write(n, 10 * n + lane, 10 * n + 9 - lane) for n in range(60) for lane in range(3)]
    calls += [write(1_000 + n, 5 + 100 * n, None) for n in range(5)]
    assert judged([*calls, read(59, 2_000, 2_001)], 0, register)
    assert not judged([*calls, read(58, 2_000, 2_001)], 0, register)


# --- histories ------------------------------------------------------------------------------------


def test_a_recorder_keeps_what_was_answered_and_what_may_have_happened() -> None:
    kept = Recorder()
    first, second, third = (kept.made(("write", n), id=f"w{n}") for n in range(3))
    second.ok(None)
    third.refused()
    assert kept.history == (Call(("write", 0), 1, None, None, "w0"), Call(("write", 1), 2, 4, None, "w1"))
    first.ok(None)
    assert kept.history[0].ended == 5


def test_tries_under_one_id_are_one_call() -> None:
    tries = [
        Call("x", 1, None, None, "a"),
        Call("y", 2, 3, 7, "b"),
        Call("x", 4, 9, 5, "a"),
        Call("x", 5, 6, 5, "a"),
        Call("z", 7, 8, 1),
        Call("z", 10, 11, 2),
    ]
    assert once(tries) == (Call("x", 1, 6, 5, "a"), Call("y", 2, 3, 7, "b"), tries[4], tries[5])


@pytest.mark.parametrize("other", [Call("x", 3, 4, 6, "a"), Call("y", 3, 4, 5, "a")])
def test_one_id_with_two_answers_or_two_contents_contradicts_itself(other: Call) -> None:
    with pytest.raises(Contradiction):
        once([Call("x", 1, 2, 5, "a"), other])
