"""The tests that take minutes on Postgres: `make test` runs them on the other stores, `make test-deep` there as well.

For: LONG_DAYS, by name. Their clock moves for hours, and at each half minute of it the host asks the store, which
answers from elsewhere.
Never: names a test that would show something on Postgres which no other test there shows.
"""

from __future__ import annotations

LONG_DAYS = frozenset(
    {
        "test_one_parked_item_is_one_alert_over_any_number_of_lives",
        "test_a_notice_that_does_not_get_through_is_seen_before_it_parks",
        "test_a_row_whose_port_is_missing_waits_is_told_of_once_and_leaves_when_the_port_is_there",
        "test_it_rings_at_its_instant_without_traffic",
        "test_a_wake_that_fails_backs_off_and_is_parked_with_its_error",
        "test_a_send_that_raised_through_a_port_that_can_do_neither_waits_for_a_person",
        "test_a_send_that_never_works_is_parked_with_its_last_words",
        "test_an_alert_is_one_mail_that_says_what_and_why",
        "test_a_wake_that_was_given_up_is_seen_also_while_something_is_owed",
        "test_an_alarm_that_changes_nothing_does_not_spin",
        "test_a_dropped_alarm_rings_no_more",
        "test_an_item_is_shown_with_all_that_is_known_of_it",
        "test_what_is_parked_stays_parked_over_a_crash_and_is_retried_on_request",
        "test_a_parked_alarm_can_be_retried_once_its_module_is_mended",
        "test_a_decision_after_the_timeout_changes_nothing",
        "test_an_expired_and_a_cancelled_link_say_which",
        "test_a_changed_program_is_parked_by_name_and_goes_on_when_mended",
        "test_a_drop_comes_back_to_the_actor_as_an_answer",
        "test_a_try_is_counted_whatever_the_port_raises",
        "test_ten_thousand_sleepers_ring_once_each",
        "test_a_history_of_thousands_is_pruned_whole",
    }
)
