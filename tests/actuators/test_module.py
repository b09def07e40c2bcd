"""The pure decisions of a run: one pass at a time, nothing lost, nothing spins."""

from __future__ import annotations

import copy
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

from onefold.actuators.carried import Diverged, Raised, Rested, Returned, RunPass, Stuck, Uncertain
from onefold.actuators.journal import rows
from onefold.actuators.module import module_of
from onefold.actuators.parts import Asking, Trouble, Wait
from onefold.actuators.receipt import receipt_of
from onefold.actuators.state import INITIAL, State
from onefold.actuators.words import Cancel, Decided, Reopen, Sent, Start, Stepped, Trying, Waiting
from onefold.kernel.words import Answer, Decision, Dropped
from onefold.terms.instant import moment
from tests.actuators.home import T0

MODULE = module_of("program")
START = Start("run_1", "program", Raw(b'{"a":1}'), "k")


class Told:
    """A run told one thing after another, with what the kernel would check."""

    def __init__(self) -> None:
        self.state: State = INITIAL
        self.now = T0
        self.facts: list[Any] = []
        self.outstanding: list[str] = []
        self.owed: set[str] = set()
        self.waited: set[str] = set()

    def take(self, decision: Decision[Any, Any]) -> Any:
        before = copy.deepcopy(self.state)
        for fact in decision.facts:
            self.state = MODULE.evolve(self.state, fact)
            self.facts.append(fact)
        assert before is not self.state
        for item in decision.owed:
            assert item.key not in self.owed, "an owed key was used twice"
            self.owed.add(item.key)
            if item.port == "pass":
                assert not self.outstanding, "two passes of one run at once"
                assert item.body == RunPass("run_1", self.state.passes)
                self.outstanding.append(item.key)
        assert self.state.passing == bool(self.outstanding) or self.state.status not in ("running", "waiting")
        return decision.reply

    def event(self, event: Any) -> Any:
        return self.take(MODULE.decide(self.state, event, moment(self.now)))

    def answer(self, body: Any) -> Any:
        key = self.outstanding.pop()
        assert MODULE.on_answer is not None
        return self.take(MODULE.on_answer(self.state, Answer(key, "pass", body), moment(self.now)))

    def ring(self) -> bool:
        assert MODULE.wake is not None
        assert MODULE.on_alarm is not None
        due = MODULE.wake(self.state)
        if due is None:
            return False
        self.now = max(self.now, int(due.timestamp() * 1000))
        decision = MODULE.on_alarm(self.state, moment(self.now))
        assert decision.facts, "an alarm that changes nothing spins"
        self.take(decision)
        after = MODULE.wake(self.state)
        assert after is None or after > moment(self.now), "what is due was left"
        return True


def begun() -> Told:
    told = Told()
    told.event(START)
    return told


def wait(call: str, kind: Any = "sleep", **more: Any) -> Wait:
    asking = Asking("Pay?", ("m",)) if kind == "approval" else None
    return Wait(call, kind, more.pop("name", kind), "d", asking=asking, **more)


# --- one pass at a time -------------------------------------------------------------------------------


def test_starting_owes_the_first_pass_and_starting_again_changes_nothing() -> None:
    told = begun()
    assert told.outstanding == ["pass/1"]
    again = Start("run_1", "program", Raw(b'{"a":1}'), "k", nonce="other")
    assert told.event(again).nonce == ""
    assert len(told.facts) == 1


def test_the_call_that_made_the_run_gets_its_nonce_back() -> None:
    told = Told()
    assert told.event(Start("run_1", "program", nonce="mine")).nonce == "mine"


def test_an_entry_under_a_pass_owes_no_other_and_one_it_had_not_seen_does() -> None:
    told = begun()
    told.event(Stepped("0#0", "pay", "d", 1, Raw(b"1")))
    assert told.outstanding == ["pass/1"]
    told.answer(Rested(0, (wait("0#1", after=1000),)))
    assert told.outstanding == ["pass/2"]
    told.answer(Rested(1))
    assert told.outstanding == []
    assert told.state.status == "waiting"
    assert told.ring()
    assert told.outstanding == ["pass/3"]


def test_an_answer_to_a_pass_of_before_changes_nothing() -> None:
    told = begun()
    assert MODULE.on_answer is not None
    late = MODULE.on_answer(told.state, Answer("pass/0", "pass", Returned(0)), moment(T0))
    assert not late.facts
    other = MODULE.on_answer(told.state, Answer("notify/0/0#0", "notify", None), moment(T0))
    assert not other.facts


@pytest.mark.parametrize(
    "ended, status, code",
    [
        (Returned(0, Raw(b"5")), "done", None),
        (Raised(0, Trouble("ValueError", "no", "pay", 3, "0#0")), "failed", "step_failed"),
        (Raised(0, Trouble("ValueError", "no")), "failed", "run_failed"),
        (Diverged(0, "a", "b"), "parked", "diverged"),
        (Stuck(0, ("0", "0.0")), "parked", "stuck"),
        (Uncertain(0, "pay", "it timed out"), "parked", "uncertain"),
        (Dropped("no use"), "parked", "dropped"),
    ],
)
def test_how_a_pass_ended_is_how_the_run_stands(ended: Any, status: str, code: str | None) -> None:
    told = begun()
    told.event(Waiting((wait("0#9", after=1000),)))
    told.answer(ended)
    receipt = receipt_of(MODULE.view(told.state))
    assert receipt.status == status
    assert (receipt.error.code if receipt.error else None) == code
    assert not told.outstanding
    assert not told.ring()
    assert bytes(receipt.output or b"") == (b"5" if status == "done" else b"")


def test_a_result_that_comes_after_the_end_changes_nothing() -> None:
    told = begun()
    told.answer(Returned(0))
    for event in (
        Stepped("0#0", "pay", "d", 1, Raw(b"1")),
        Waiting((wait("0#1", after=1000),)),
        Trying("0#0", 1),
    ):
        assert told.event(event) is None
    assert told.state.status == "done"
    assert len(told.facts) == 2


# --- waits --------------------------------------------------------------------------------------------


def test_a_wait_is_counted_from_its_commit_and_is_opened_once() -> None:
    told = begun()
    told.now += 700
    told.event(Waiting((wait("0#0", after=1000), wait("0#1", until=T0 + 5000))))
    told.event(Waiting((wait("0#0", after=1000),)))
    assert [(w.call, w.until) for w in told.state.open.values()] == [("0#0", T0 + 1700), ("0#1", T0 + 5000)]
    assert MODULE.wake is not None
    assert MODULE.wake(told.state) == moment(T0 + 1700)


def test_what_is_due_when_it_is_opened_ends_in_the_same_commit() -> None:
    told = begun()
    told.answer(Rested(0, (wait("0#0", until=T0),)))
    assert [row.kind for row in rows(told.state)] == ["due"]
    assert told.outstanding == ["pass/2"]


def test_an_alarm_ends_all_that_is_due_soonest_first() -> None:
    told = begun()
    told.answer(Rested(0, (wait("0#0", after=3000), wait("0#1", after=1000), wait("0#2", after=9000))))
    told.now = T0 + 3000
    assert told.ring()
    assert [row.path for row in rows(told.state)] == ["0#1", "0#0"]
    assert told.outstanding == ["pass/2"]


def test_a_retry_waits_as_long_as_its_policy_said() -> None:
    told = begun()
    told.event(Stepped("0#0", "pay", "d", 1, trouble=Trouble("ValueError", "no"), again_after=500))
    told.answer(Rested(1))
    (shown,) = MODULE.view(told.state).waits
    assert (shown.kind, shown.until, shown.message) == ("retry", T0 + 500, "ValueError: no")
    assert told.ring()
    assert [row.kind for row in rows(told.state)] == ["retry", "again"]


def test_a_released_wait_wakes_nobody() -> None:
    told = begun()
    told.answer(Rested(0, (wait("0#0", after=1000), wait("0#1", "approval"))))
    told.event(Sent("e", "run_1", "Other"))
    told.event(Waiting((), ("0#0", "0#1", "0#7")))
    assert not told.state.open
    assert not told.state.agenda
    assert not told.ring()
    assert told.event(Decided("e2", "run_1", "approval", True, "anna")).outcome == "cancelled"


# --- random lives -------------------------------------------------------------------------------------

calls = st.sampled_from(["0#0", "0#1", "0.0#0", "0.1#0"])
waits = st.builds(
    wait,
    calls,
    st.sampled_from(["sleep", "event", "approval"]),
    after=st.one_of(st.none(), st.integers(0, 5000)),
    name=st.sampled_from(["m", "n"]),
)
troubles = st.just(Trouble("ValueError", "no", "pay", 1, "0#0"))
names = st.sampled_from(["m", "n"])
acts = st.one_of(
    st.tuples(st.just("step"), calls, st.one_of(st.none(), st.just(0), st.integers(1, 5000))),
    st.tuples(st.just("wait"), st.lists(waits, max_size=3, unique_by=lambda w: w.call), st.lists(calls, max_size=1)),
    st.tuples(st.just("rest"), st.lists(waits, max_size=3, unique_by=lambda w: w.call), st.integers(0, 2)),
    st.tuples(st.just("unread"), calls),
    st.tuples(st.just("send"), names),
    st.tuples(st.just("decide"), names, st.booleans()),
    st.tuples(st.just("ring")),
    st.tuples(st.just("later"), st.integers(1, 3000)),
    st.tuples(
        st.just("end"),
        st.sampled_from([Returned(0), Raised(0, Trouble("E", "x", "pay", 1, "0#0")), Diverged(0, "a", "b")]),
    ),
    st.tuples(st.just("cancel")),
    st.tuples(st.just("reopen")),
)


def fresh(told: Told, found: list[Wait]) -> tuple[Wait, ...]:
    """A call waits once; a pass that is run again only asks again for what is still open."""
    kept = tuple(wait for wait in found if wait.call not in told.waited or wait.call in told.state.open)
    told.waited.update(wait.call for wait in kept)
    return kept


def act(told: Told, action: tuple[Any, ...], n: int) -> None:
    kind, *parts = action
    match kind:
        case "step" if told.outstanding:
            trouble = None if parts[1] is None else Trouble("ValueError", "no")
            told.event(Stepped(parts[0], "pay", "d", 1, Raw(b"1"), trouble, parts[1] or None))
        case "wait" if told.outstanding:
            told.event(Waiting(fresh(told, parts[0]), tuple(parts[1])))
        case "unread" if told.outstanding:
            told.event(Waiting((), (), (parts[0],)))
        case "rest" if told.outstanding:
            told.answer(Rested(max(0, len(told.state.journal) - parts[1]), fresh(told, parts[0])))
        case "end" if told.outstanding:
            told.answer(parts[0])
        case "send":
            told.event(Sent(f"e{n}", "run_1", parts[0], Raw(b"%d" % n)))
        case "decide":
            told.event(Decided(f"e{n}", "run_1", parts[0], parts[1], "anna"))
        case "ring":
            told.ring()
        case "later":
            told.now += parts[0]
        case "cancel":
            told.event(Cancel(f"e{n}", "run_1"))
            told.outstanding.clear()
        case "reopen":
            told.event(Reopen(f"e{n}", "run_1"))
        case _:
            assert not told.outstanding or kind not in ("step", "wait", "unread", "rest", "end")


@settings(max_examples=300, deadline=None)
@given(st.lists(acts, max_size=25))
def test_whatever_happens_one_pass_at_a_time_and_no_event_is_lost(actions: list[tuple[Any, ...]]) -> None:
    told = begun()
    sent = 0
    for n, action in enumerate(actions):
        if action[0] == "send" and told.state.status in ("running", "waiting", "parked"):
            sent += 1
        act(told, action, n)
        if told.state.status == "waiting":
            assert not told.state.passing
    folded = INITIAL
    for fact in MODULE.codecs.fact.decode_many(MODULE.codecs.fact.seal_many(told.facts)[0]):
        folded = MODULE.evolve(folded, fact)
    assert folded == told.state
    assert list(told.state.agenda) == sorted((w.until, w.call) for w in told.state.open.values() if w.until is not None)
    if told.state.status in ("running", "waiting", "parked"):
        taken = sum(row.kind == "event" for row in rows(told.state)) - len(told.state.returned)
        assert len(told.state.kept) + taken == sent
    MODULE.codecs.view.encode(MODULE.view(told.state))


# --- receipts -----------------------------------------------------------------------------------------


def test_a_receipt_is_the_json_of_every_door() -> None:
    told = begun()
    told.answer(Rested(0, (Wait("0#0", "approval", "manager", "d", 60_000, None, Asking("Pay 150?", ("m",))),)))
    assert receipt_of(MODULE.view(told.state)).to_json() == {
        "run_id": "run_1",
        "program": "program",
        "status": "waiting",
        "key": "k",
        "started_at": "2027-01-15T08:00:00Z",
        "updated_at": "2027-01-15T08:00:00Z",
        "poll_after_seconds": 20,
        "waits": [
            {
                "kind": "approval",
                "name": "manager",
                "message": "Pay 150?",
                "since": "2027-01-15T08:00:00Z",
                "until": "2027-01-15T08:01:00Z",
            }
        ],
    }


def test_a_finished_receipt_has_its_result_and_a_failed_one_its_error() -> None:
    told = begun()
    told.now += 1500
    told.answer(Returned(0, Raw(b'{"type":"Refunded","refund_id":"re_1"}')))
    receipt = receipt_of(MODULE.view(told.state)).to_json()
    assert receipt["result"] == {"type": "Refunded", "refund_id": "re_1"}
    assert receipt["updated_at"] == "2027-01-15T08:00:01.500Z"
    assert "poll_after_seconds" not in receipt
    assert "waits" not in receipt

    told = begun()
    told.answer(Raised(0, Trouble("ConnectionError", "down", "pay", 5, "0#0")))
    error = receipt_of(MODULE.view(told.state)).to_json()["error"]
    assert error == {"code": "step_failed", "message": "ConnectionError: down", "step": "pay", "attempts": 5}


def test_an_instant_is_told_to_the_millisecond_whatever_the_year() -> None:
    told = begun()
    told.state.updated_at = 4_102_444_800_123
    at = receipt_of(MODULE.view(told.state)).updated_at
    assert at - datetime.fromtimestamp(0, at.tzinfo) == timedelta(milliseconds=4_102_444_800_123)
    assert receipt_of(MODULE.view(told.state)).to_json()["updated_at"] == "2100-01-01T00:00:00.123Z"
