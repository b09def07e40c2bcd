"""testing.broken.reflex_twins - every broken twin of the stages behind a fan-out, and the scenario that finds it.

For: `BROKEN_STAGES`; `caught_by` is the test of tests/reflex that must fall over the twin.
Never: names one scenario for all of them.
Was wrong once: a twin that lost a row on every path. Each test caught it, and none was shown to be needed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from onefold.testing.broken.reflex_faults import (
    AnnouncesEachTime,
    AnnouncesLater,
    BackoffLetsGo,
    BatonAtTheClaim,
    ClaimsForEver,
    CountComesDownWithTheRewind,
    CountsWhatItReadBefore,
    DepthFromTheRun,
    ExplainsToAnybody,
    FailureKeepsTheBaton,
    FreesKeys,
    FreesOccurrences,
    GuiltByNeighbourhood,
    KeepsEmitsOfFailures,
    KeepsSpentAttempts,
    NeverParks,
    Nobodys,
    NoFence,
    OneLease,
    OverdueByDueTime,
    ParksWithoutCounting,
    ReclaimsQuietly,
    RetriesWithoutRewinding,
    RetryTakesTheBaton,
    SweepsByAge,
    SweepsTasksAlone,
    SweepsUnderAChain,
    TakesAnyEffect,
)
from onefold.testing.broken.reflexes import Stages


@dataclass(frozen=True, slots=True)
class BrokenStages:
    """A twin. Its class says what is wrong; `caught_by` names the scenario that must fall over it."""

    make: Callable[[], Stages]
    caught_by: str


BROKEN_STAGES: tuple[BrokenStages, ...] = (
    BrokenStages(ClaimsForEver, "test_a_lapsed_lease_is_the_whole_recovery"),
    BrokenStages(OneLease, "test_a_lease_covers_the_longest_timeout_of_its_tasks"),
    BrokenStages(NeverParks, "test_a_task_that_kills_whoever_runs_it_is_parked_after_its_claims_with_its_last_words"),
    BrokenStages(GuiltByNeighbourhood, "test_a_suspect_runs_alone_so_that_the_innocent_do_not_count_with_it"),
    BrokenStages(ReclaimsQuietly, "test_a_claim_counts_the_attempt_and_gives_one_token"),
    BrokenStages(TakesAnyEffect, "test_a_claim_takes_only_effects_that_are_known_here"),
    BrokenStages(BatonAtTheClaim, "test_serial_order_is_honoured_inside_the_claim"),
    BrokenStages(KeepsEmitsOfFailures, "test_a_failing_attempt_emits_nothing"),
    BrokenStages(DepthFromTheRun, "test_the_depth_of_a_chain_outlives_the_run_it_came_through"),
    BrokenStages(Nobodys, "test_emits_are_committed_with_success_and_stamped_by_the_engine"),
    BrokenStages(NoFence, "test_a_late_answer_is_discarded_once_the_task_is_somebody_elses"),
    BrokenStages(CountsWhatItReadBefore, "test_last_landings_at_once_settle_the_run_once"),
    BrokenStages(AnnouncesEachTime, "test_a_retry_rewinds_its_settled_run_and_announces_nothing_again"),
    BrokenStages(BackoffLetsGo, "test_a_backoff_keeps_the_baton"),
    BrokenStages(FailureKeepsTheBaton, "test_a_task_that_fails_for_good_passes_the_baton_on"),
    BrokenStages(ParksWithoutCounting, "test_a_parked_task_is_left_through_a_retry_alone"),
    BrokenStages(RetriesWithoutRewinding, "test_a_retry_rewinds_its_settled_run_and_announces_nothing_again"),
    BrokenStages(CountComesDownWithTheRewind, "test_a_retry_takes_its_failure_off_the_count_whatever_the_run_is_doing"),
    BrokenStages(KeepsSpentAttempts, "test_a_retried_task_has_all_its_attempts_before_it"),
    BrokenStages(RetryTakesTheBaton, "test_a_retried_serial_task_waits_for_the_baton_and_goes_first"),
    BrokenStages(SweepsTasksAlone, "test_a_sweep_never_takes_what_is_not_settled"),
    BrokenStages(SweepsByAge, "test_a_sweep_never_takes_what_is_not_settled"),
    BrokenStages(SweepsUnderAChain, "test_a_run_stays_while_something_it_led_to_is_not_settled"),
    BrokenStages(FreesKeys, "test_a_swept_fact_keeps_its_dedupe_key"),
    BrokenStages(FreesOccurrences, "test_a_swept_occurrence_is_remembered"),
    BrokenStages(ExplainsToAnybody, "test_nobody_is_led_into_somebody_elses_rows"),
    BrokenStages(OverdueByDueTime, "test_a_run_that_was_put_off_is_overdue_since_the_instant_it_was_for"),
    BrokenStages(AnnouncesLater, "test_a_crash_at_any_statement_leaves_a_settled_run_announced"),
)
