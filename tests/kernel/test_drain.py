"""What becomes of an owed row, decided without sending anything."""

from __future__ import annotations

from dataclasses import replace

import pytest

from onefold.kernel.drain import (
    AT_MOST_MS,
    LIMIT,
    UNCERTAIN,
    after_failure,
    again,
    asks_first,
    attempt,
    before_send,
    fell,
    given_up,
    looked_at,
    moved,
    uncertain,
)
from onefold.kernel.fold import Outstanding
from onefold.kernel.port import Promise


def row(*, tries: int = 0, state: str = "ready", found: bool = False) -> Outstanding:
    return Outstanding(1, "e/x", "transfer", b"{}", tries, 100, state, 100, found=found)


@pytest.mark.parametrize(
    "promise,owed,expected",
    [
        ("dedupes", row(), "send"),
        ("dedupes", row(found=True), "commit attempt"),
        ("dedupes", row(found=True, state="sending", tries=1), "commit attempt"),
        ("dedupes", row(found=True, state="sending", tries=LIMIT), "give up"),
        ("lookup", row(), "commit attempt"),
        ("lookup", row(found=True, state="sending", tries=1), "commit attempt"),
        ("lookup", row(found=True, state="sending", tries=LIMIT), "give up"),
        ("neither", row(), "commit attempt"),
        ("neither", row(found=True, state="sending", tries=1), "park"),
    ],
)
def test_what_must_happen_before_the_first_byte(promise: Promise, owed: Outstanding, expected: str) -> None:
    assert before_send(promise, owed) == expected


def test_whether_a_send_that_raised_acted_is_as_unknown_as_after_a_death() -> None:
    begun = attempt(row())
    for promise in ("dedupes", "lookup"):
        assert fell(promise, begun, 0, "no answer", acted=True) == after_failure(begun, 0, "no answer")
    doubtful = fell("neither", begun, 0, "no answer", acted=True)
    assert (doubtful.next_at, doubtful.state, doubtful.error) == (None, "uncertain", "no answer")
    before = fell("neither", begun, 0, "its body cannot be read", acted=False)
    assert before == after_failure(begun, 0, "its body cannot be read")


def test_a_port_that_can_be_asked_is_asked_from_the_second_try_on() -> None:
    begun = attempt(row())
    failed = after_failure(begun, 0, "no answer")
    assert [asks_first("lookup", owed) for owed in (row(), begun, failed, again(failed, 5))] == [
        False,
        True,
        True,
        True,
    ]
    assert not any(asks_first(promise, failed) for promise in ("dedupes", "neither"))


def test_failures_back_off_to_a_bound_and_end_in_a_park() -> None:
    owed, now = row(), 0
    for count in range(1, LIMIT):
        owed = after_failure(owed, now, f"error {count}")
        assert (owed.tries, owed.state, owed.error) == (count, "ready", f"error {count}")
        assert owed.next_at is not None
        assert 1_000 <= owed.next_at - now <= AT_MOST_MS
        now = owed.next_at
    parked = after_failure(owed, now, "the last")
    assert (parked.next_at, parked.state, parked.error) == (None, "parked", "the last")


def test_no_decision_changes_the_bytes_or_the_key() -> None:
    owed = row()
    for changed in (
        after_failure(owed, 0, "x"),
        attempt(owed),
        uncertain(owed),
        given_up(owed),
        again(owed, 5),
        moved(owed),
    ):
        assert (changed.n, changed.key, changed.port, changed.body, changed.at) == (1, "e/x", "transfer", b"{}", 100)


def test_an_attempt_that_was_committed_is_not_counted_again_when_it_fails() -> None:
    begun = attempt(row())
    assert (begun.tries, begun.state) == (1, "sending")
    assert after_failure(begun, 0, "x").tries == 1


def test_what_is_uncertain_says_why_and_a_person_may_try_again() -> None:
    parked = uncertain(attempt(row()))
    assert (parked.next_at, parked.error) == (None, UNCERTAIN)
    tried = again(parked, 7)
    assert (tried.next_at, tried.tries, tried.state) == (7, 0, "ready")


def test_what_is_on_its_way_is_looked_at_after_as_long_again_and_never_spins() -> None:
    owed = row()
    assert looked_at(owed, 99) == 100
    assert looked_at(owed, 5_000) == 6_000
    sent = replace(owed, in_flight=True, since=10_000)
    looks, now = [], 10_001
    for _ in range(6):
        now = looked_at(sent, now)
        looks.append(now - 10_000)
    assert looks == [1_001, 2_002, 4_004, 8_008, 13_008, 18_008]
