"""What an attempt sees, and what becomes of its task by the way it ended."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onefold.reflex.execute import (
    EMITS_AT_MOST,
    LONGEST_BACKOFF_MS,
    WORDS_AT_MOST,
    Emits,
    Raised,
    Returned,
    Setting,
    Spent,
    backoff_ms,
    judged,
    too_long,
    words_of,
)
from onefold.reflex.words import ByHand, Policy, Reflex, Signal, Write
from onefold.terms import codec
from onefold.terms.errors import BadArguments, OutsideStep, TooLarge
from onefold.terms.instant import Instant
from tests.reflex.ledger import START, run_row, task_row

NOW = Instant(START)
FACT = b'{"at":"2026-01-01T00:00:00Z","kind":"write","entity":"e","op":"insert","row":{"id":1}}'


def reflex(**more: Any) -> Reflex:
    return Reflex("r", "Do it.", None, ByHand(), "do", {}, {}, "0" * 64, **more)


def claimed(**cells: Any) -> Any:
    return task_row(**{"n": 7, "run": 3, "token": 9, "state": "claimed", "attempt": 1, "claims": 1, **cells})


def key_of(task: Any, run: Any) -> str:
    return Setting(run, reflex(), NOW).key(task)


def test_templates_see_params_the_cause_the_unit_and_now_and_nothing_else() -> None:
    env = Setting(run_row(), reflex(params={"days": 3}), NOW).env(claimed(row=b'{"id":1}'))
    assert env == {
        "params": {"days": 3},
        "occurrence": {"key": "2026-01-01", "at": "2026-01-01T00:00:00Z"},
        "row": {"id": 1},
        "now": "2026-01-01T00:00:00Z",
    }
    of_fact = Setting(run_row(cause="fact:4", env=FACT), reflex(), NOW).env(claimed(row=b'[{"id":1}]'))
    assert of_fact["rows"] == [{"id": 1}]
    assert of_fact["facts"] == [of_fact["fact"]]
    assert Setting(run_row(), reflex(), NOW).env(claimed()).keys() == {"params", "occurrence", "now"}


def test_the_key_is_the_same_on_every_attempt_and_no_other_tasks() -> None:
    run = run_row(cause="occurrence:2026-03")
    first = key_of(claimed(unit="s1"), run)
    assert first == key_of(claimed(unit="s1", attempt=2, token=10), run) == "~/reflex/r/occurrence:2026-03/s1"
    others = [
        key_of(claimed(unit="s2"), run),
        key_of(claimed(unit="s1"), run_row(cause="occurrence:2026-04")),
        key_of(claimed(unit="s1"), run_row(cause="occurrence:2026-03", principal="=studio")),
        key_of(claimed(unit="s1"), run_row(cause="occurrence:2026-03", reflex="q")),
    ]
    assert len({first, *others}) == 5


def test_a_key_of_a_fact_is_not_met_again_in_a_new_store() -> None:
    """Numbers begin again when a store is made anew; a provider that remembers keys does not."""
    old, new = run_row(cause="fact:1", occurred_at=START), run_row(cause="fact:1", occurred_at=START + 1)
    assert key_of(claimed(), old) != key_of(claimed(), new)


def test_returning_is_done_a_decline_too() -> None:
    landing = judged(claimed(), Policy(), Returned({"declined": "no funds"}), NOW)
    assert (landing.state, landing.output, landing.error) == ("done", b'{"declined":"no funds"}', None)


def test_an_output_that_cannot_be_kept_does_not_undo_what_was_done() -> None:
    landing = judged(claimed(), Policy(), Returned(object()), NOW)
    assert (landing.state, landing.output) == ("done", None)
    assert landing.error is not None
    assert "no JSON" in landing.error
    long = judged(claimed(), Policy(), Returned("x" * (1 << 21)), NOW)
    assert (long.state, long.output) == ("done", None)


def test_raising_is_tried_again_until_the_retries_are_spent() -> None:
    policy = Policy(retry_max=2, backoff="exponential", base_ms=1_000)
    ends = [judged(claimed(attempt=a), policy, Raised("no"), NOW) for a in (1, 2, 3)]
    assert [(e.state, e.ready_at) for e in ends] == [
        ("ready", START + 1_000),
        ("ready", START + 2_000),
        ("failed", None),
    ]
    assert {e.error for e in ends} == {"no"}


def test_a_failure_without_retries_is_final_at_once() -> None:
    assert judged(claimed(), Policy(retry_max=0), Raised("no"), NOW).state == "failed"


def test_a_timeout_fails_the_attempt_and_says_that_nobody_knows() -> None:
    landing = judged(claimed(), Policy(), too_long(1_500), NOW)
    assert landing.state == "ready"
    assert landing.error == "It did not answer within 1.5 s. Whether it took effect is not known."


def test_a_task_that_never_answers_is_parked_with_its_last_words() -> None:
    assert judged(claimed(claims=6), Policy(), Spent(), NOW).state == "parked"
    told = judged(claimed(claims=6, error="ValueError: x"), Policy(), Spent(), NOW).error
    assert told is not None
    assert told.startswith("It was started 5 times")
    assert told.endswith("ValueError: x")


@given(st.integers(1, 10_000), st.integers(0, 1 << 40), st.sampled_from(["fixed", "exponential"]))
def test_a_backoff_is_bounded_and_never_shrinks(attempt: int, base: int, kind: Any) -> None:
    policy = Policy(base_ms=base, backoff=kind)
    here, next_one = backoff_ms(policy, attempt), backoff_ms(policy, attempt + 1)
    assert base <= here <= next_one <= max(base, LONGEST_BACKOFF_MS)
    assert kind == "exponential" or here == base


def test_emits_are_stamped_by_the_engine() -> None:
    emits = Emits(claimed(principal="=studio", depth=4), NOW)
    emits(Write("charges", "insert", {"id": 1}, dedupe_key="k"))
    emits(Signal("done", None, not_before=datetime(2026, 2, 1, tzinfo=UTC)))
    written, signalled = emits.close()
    assert [(f.principal, f.depth, f.cause) for f in (written, signalled)] == [("studio", 5, "task:7")] * 2
    assert written.dedupe == '["write","charges","k"]'
    assert signalled.due_at > NOW == written.due_at


@pytest.mark.parametrize("fact", [{"kind": "manual"}, None, "x", Write("e", "drop", {}), Write("", "insert", {})])  # type: ignore[arg-type]
def test_only_writes_and_signals_can_be_emitted(fact: Any) -> None:
    """A manual fact fires a reflex that is disarmed; an effect is not a person."""
    emits = Emits(claimed(), NOW)
    with pytest.raises(BadArguments):
        emits(fact)
    assert emits.close() == ()


def test_what_is_emitted_after_the_attempt_is_refused() -> None:
    emits = Emits(claimed(), NOW)
    emits(Signal("s", 1))
    assert len(emits.close()) == 1
    with pytest.raises(OutsideStep):
        emits(Signal("s", 2))


def test_an_attempt_emits_so_many_and_no_more() -> None:
    emits = Emits(claimed(), NOW)
    for _ in range(EMITS_AT_MOST):
        emits(Signal("s", None))
    with pytest.raises(BadArguments):
        emits(Signal("s", None))


def test_an_attempt_emits_so_many_bytes_and_no_more() -> None:
    emits = Emits(claimed(), NOW)
    for _ in range(4):
        emits(Signal("s", "x" * 1_000_000))
    with pytest.raises(TooLarge, match="one attempt emits"):
        emits(Signal("s", "x" * 1_000_000))
    assert len(emits.close()) == 4


def test_an_effect_is_given_its_key_its_attempt_and_whose_it_is() -> None:
    task = Setting(run_row(principal="=studio"), reflex(), NOW).attempt(claimed(attempt=3), Emits(claimed(), NOW))
    assert (task.attempt, task.principal, task.now) == (3, "studio", datetime(2026, 1, 1, tzinfo=UTC))
    assert task.key.startswith("studio/reflex/r/")


@given(st.text())
def test_whatever_was_raised_fits_into_a_row(message: str) -> None:
    told = words_of(ValueError(message))
    assert told.startswith("ValueError: ")
    assert len(told) <= WORDS_AT_MOST
    assert codec.text_problem(told) is None


def test_of_several_faults_the_first_is_told() -> None:
    assert words_of(ExceptionGroup("both", [KeyError("a"), ValueError("b")])) == "KeyError: 'a'"
