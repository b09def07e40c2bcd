"""The tests that take minutes on Postgres: `make test` runs them on the other stores, `make test-deep` there as well.

For: LONG_DAYS, by name or whole file. Their clock moves for hours, and at each half minute of it the host asks the store, which
answers from elsewhere.
Never: names a test that would show something on Postgres which no other test there shows.
"""

from __future__ import annotations

LONG_DAYS = frozenset(
    {
        "test_one_broken_actor_stops_nobody_else.py",
        "test_who_must_look_is_told_once.py",
        "test_whoever_waits_is_told.py",
        "test_a_decision_beside_the_notice_it_answers_is_acted_on_after_a_kill",
        "test_it_rings_at_its_instant_without_traffic",
        "test_a_wake_that_fails_backs_off_and_is_parked_with_its_error",
        "test_a_send_that_raised_through_a_port_that_can_do_neither_waits_for_a_person",
        "test_a_send_that_never_works_is_parked_with_its_last_words",
        "test_an_alarm_that_changes_nothing_does_not_spin",
        "test_a_dropped_alarm_rings_no_more",
        "test_what_is_parked_stays_parked_over_a_crash_and_is_retried_on_request",
        "test_a_parked_alarm_can_be_retried_once_its_module_is_mended",
        "test_a_decision_after_the_timeout_changes_nothing",
        "test_an_expired_and_a_cancelled_link_say_which",
        "test_a_changed_program_is_parked_by_name_and_goes_on_when_mended",
        "test_a_drop_comes_back_to_the_actor_as_an_answer",
        "test_ten_thousand_sleepers_ring_once_each",
        "test_a_history_of_thousands_is_pruned_whole",
    }
)
