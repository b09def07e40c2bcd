"""A simulated year of the billing example under random crashes: charged once, told once, and no studio hears another.

ONEFOLD_YEARS says how many seeds; each failure names its own.
"""

from __future__ import annotations

import asyncio
import os
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from onefold.store.contract import World
from onefold.store.memory import MemoryWorld
from onefold.store.sqlite import SqliteWorld
from onefold.terms.instant import down
from tests.example.year import HELD, Audit, Year, charging, instant, reminding

YEARS = int(os.environ.get("ONEFOLD_YEARS", "1"))
FIRST = int(os.environ.get("ONEFOLD_TEST_SEED", "1"))
CASES = [("memory", FIRST + number) for number in range(YEARS)] + [("sqlite", FIRST + 10_000)]


async def lived(store: str, seed: int, folder: Path, **given: Any) -> Audit:
    years: list[Year] = []

    def clock() -> int:
        return down(years[0].now) if years else 0

    world: World = MemoryWorld(clock=clock)
    if store == "sqlite":
        world = SqliteWorld(folder / "store", clock=clock, durability="lossy-on-power-cut")
    try:
        years.append(Year(seed, world, folder, **given))
        await years[0].lives()
        return await Audit.of(years[0])
    finally:
        world.abandon()


@pytest.mark.parametrize("store, seed", CASES)
def test_a_year_charges_each_month_once_whatever_goes_wrong(store: str, seed: int, tmp_path: Path) -> None:
    audit = asyncio.run(lived(store, seed, tmp_path))
    assert audit.year.happened["deaths"] > 3, audit.year.happened
    for held in HELD:
        held(audit)
    if audit.a_clock_was_paused():  # had it gone on, the year would look as one without a pause
        audit.year.pauses.clear()
        with pytest.raises(AssertionError):
            audit.each_occurrence_is_one_run_unless_it_was_paused()


class KeyOfItsOwn:
    """A bank's client that gives each attempt a key of its own: the slip that keys are there for."""

    def __init__(self, bank: Any) -> None:
        self.ledger = bank.ledger
        self._bank, self._calls = bank, 0

    async def charge(self, key: str, card: str, amount: int) -> Any:
        self._calls += 1
        return await self._bank.charge(f"{key}#{self._calls}", card, amount)


def test_the_audit_finds_a_bank_that_is_not_given_the_key(tmp_path: Path) -> None:
    audit = asyncio.run(lived("memory", FIRST, tmp_path, client=KeyOfItsOwn))
    with pytest.raises(AssertionError):
        audit.each_charge_was_made_once()


def test_the_oracle_knows_months_of_every_length_and_both_changes_of_both_clocks() -> None:
    """What the years are held to is reckoned here without the calendar under test."""
    vienna, denver = charging("studio_42"), charging("studio_7")
    assert [at.astimezone(ZoneInfo("Europe/Vienna")).day for key, at in vienna.items() if key.startswith("2026")] == [
        31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31
    ]  # fmt: skip
    assert denver["2026-11"] == datetime(2026, 11, 1, 7, 30, tzinfo=UTC), "01:30 comes twice; its first pass"
    assert reminding("studio_42")["2026-03-29"] == datetime(2026, 3, 29, 1, tzinfo=UTC), "02:30 never came"
    assert reminding("studio_7")["2026-03-08"] == datetime(2026, 3, 8, 9, tzinfo=UTC)
    assert reminding("studio_42")["2026-10-25"] == datetime(2026, 10, 25, 0, 30, tzinfo=UTC)
    assert len(reminding("studio_42")) == 375
    assert instant(ZoneInfo("UTC"), date(2028, 2, 29), 0, 0) == datetime(2028, 2, 29, tzinfo=UTC)
