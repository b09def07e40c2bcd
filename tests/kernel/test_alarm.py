"""The alarm's arithmetic: tightened when it must be, backed off when it failed, parked in the end."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from onefold.kernel.alarm import AT_MOST_MS, FIRST_MS, LIMIT, Alarm, after_failure, soonest, tightened

INSTANTS = st.integers(min_value=0, max_value=2**50)
MAYBE = st.none() | INSTANTS


@given(MAYBE, MAYBE)
def test_soonest_is_the_earlier_and_none_is_never(wake: int | None, owed: int | None) -> None:
    found = soonest(wake, owed)
    assert found == min([at for at in (wake, owed) if at is not None], default=None)


@given(st.lists(MAYBE, min_size=1))
def test_a_row_that_is_only_tightened_is_never_later_than_what_is_due(dues: list[int | None]) -> None:
    row = Alarm()
    writes = 0
    for due in dues:
        if tightened(row, due):
            row = Alarm(due, written=True)
            writes += 1
        assert due is None or (row.at is not None and row.at <= due)
    known = [due for due in dues if due is not None]
    assert row.at == min(known, default=None)
    assert writes <= len(known)


def test_an_idle_timeout_pushed_back_a_thousand_times_is_written_once() -> None:
    row, writes = Alarm(), 0
    for now in range(1_000):
        if tightened(row, now + 60_000):
            row, writes = Alarm(now + 60_000, written=True), writes + 1
    assert writes == 1


def test_failures_back_off_to_a_bound_and_end_in_a_park_with_the_last_error() -> None:
    row, now, waits = Alarm(5, written=True), 1_000, []
    for count in range(1, LIMIT):
        row = after_failure(row, now, f"error {count}")
        assert row.at is not None
        waits.append(row.at - now)
        assert (row.tries, row.error, row.given_up) == (count, f"error {count}", False)
    assert waits[:3] == [FIRST_MS, 2 * FIRST_MS, 4 * FIRST_MS]
    assert max(waits) == min(AT_MOST_MS, FIRST_MS << (LIMIT - 2))

    parked = after_failure(row, now, "the last")
    assert (parked.at, parked.error, parked.given_up) == (None, "the last", True)
    assert not tightened(parked, None)
    assert tightened(parked, now), "what is owed beside a parked wake rings all the same"
