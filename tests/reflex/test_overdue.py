"""What did not happen is a question with an answer."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from onefold.reflex.tables import REFLEX_RUN, STATE
from onefold.store.contract import Append, Cas, Cell
from tests.reflex.ledger import START, STORES, Ledger, ledger_on, run_row, state_row

HOUR = 3_600_000


async def prepare(ledger: Ledger) -> None:
    await ledger.arm("r")
    ledger.now = START + HOUR


@pytest.fixture(params=STORES)
async def ledger(request: pytest.FixtureRequest, place: Path) -> AsyncIterator[Ledger]:
    async with ledger_on(request.param, place) as ledger:
        await prepare(ledger)
        yield ledger


async def pending(ledger: Ledger, n: int, **cells: Cell) -> None:
    row = run_row(n=n, **{"cause": f"occurrence:{n}", "state": "pending", "due_at": START, **cells})
    await ledger.write(Append(REFLEX_RUN, [row]))


async def test_a_run_that_waits_past_its_time_is_overdue(ledger: Ledger) -> None:
    await pending(ledger, 1)
    (late,) = await ledger.overdue()
    assert (late.reflex, late.what, late.late_seconds) == ("r", "reflex_run_1, occurrence:1", 3600)


async def test_a_run_that_was_put_off_is_overdue_since_the_instant_it_was_for(ledger: Ledger) -> None:
    """Its due time is moved again and again; what it missed stays where it was."""
    await pending(ledger, 1, due_at=START + 2 * HOUR, note="put off 3 times: the database is away")
    (late,) = await ledger.overdue()
    assert late.late_seconds == 3600
    assert "the database is away" in late.what


async def test_an_occurrence_that_the_watermark_should_have_passed_is_overdue(ledger: Ledger) -> None:
    await ledger.write(Append(STATE, [state_row("nightly", next_at=START + 1_000)]))
    (late,) = await ledger.overdue()
    assert (late.reflex, late.what, late.late_seconds) == ("nightly", "an occurrence", 3599)


async def test_the_longest_wait_stands_first(ledger: Ledger) -> None:
    await pending(ledger, 1, occurred_at=START + 500)
    await pending(ledger, 2, reflex="q", occurred_at=START + 100)
    await ledger.write(Append(STATE, [state_row("nightly", next_at=START + 300)]))
    assert [late.reflex for late in await ledger.overdue()] == ["q", "nightly", "r"]


async def test_a_fact_kept_for_later_makes_nothing_late_before_its_day(ledger: Ledger) -> None:
    """Its run is born on that day, from something that happened long before."""
    await pending(ledger, 1, cause="fact:3", fact=3, occurred_at=START - 90 * HOUR, at=ledger.now - 2_000)
    assert [late.late_seconds for late in await ledger.overdue()] == [2]


async def test_what_is_settled_paused_gone_or_still_to_come_is_not_overdue(ledger: Ledger) -> None:
    await ledger.fan("a")
    await pending(ledger, 90, state="skipped", due_at=None)
    await pending(ledger, 91, occurred_at=ledger.now + 1, due_at=ledger.now + 1)
    await ledger.write(
        Append(
            STATE,
            [
                state_row("paused", next_at=START, enabled=0),
                state_row("gone", next_at=START, gen=0),
                state_row("later", next_at=ledger.now + 1),
                state_row("once", next_at=None),
            ],
        )
    )
    assert await ledger.overdue() == []


async def test_overdue_is_asked_of_ones_own(ledger: Ledger) -> None:
    await pending(ledger, 1, principal="=studio")
    await ledger.write(Append(STATE, [state_row("nightly", principal="=studio", next_at=START)]))
    assert [len(await ledger.overdue(whose)) for whose in ("studio", None, "other")] == [2, 0, 0]


async def test_silence_ends_when_the_run_goes_on(ledger: Ledger) -> None:
    await pending(ledger, 1)
    await ledger.write(Cas(REFLEX_RUN, [((1,), {}, {"state": "fanned", "due_at": None})]))
    assert await ledger.overdue() == []
