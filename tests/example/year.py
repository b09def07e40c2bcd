"""A year of two studios: what goes wrong on the way, drawn from a seed, and what must be true at its end.

For: outages, deaths, a bank that misbehaves, pauses, a second engine whose clock is off, members who join and pay;
and an oracle of the calendar that shares no line with the one under test.
Never: knows why a thing happened; it reads the bank's ledger, the books and the rows, as an auditor would.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from onefold.reflex.tables import INTAKE, REFLEX_RUN, TASK
from onefold.store.contract import World
from onefold.terms.instant import moment
from tests.example.billing import Studio, moody, one_life, passes, rests

START, END = datetime(2026, 1, 1, 12, tzinfo=UTC), datetime(2027, 1, 12, tzinfo=UTC)
ZONES = {"studio_42": ZoneInfo("Europe/Vienna"), "studio_7": ZoneInfo("America/Denver")}
PREFIX = {"studio_42": "billing", "studio_7": "denver"}
CHARGED_ON = {"studio_42": (31, 2, 30), "studio_7": (1, 1, 30)}  # day, hour, minute of each month
REMINDED_AT = (2, 30)
DECLINED = "4000000000000002"
MEMBERS = (
    ("s1", "studio_42", "Ada", "ada@example.com", "4242424242424242", 1900, "2020-01"),
    ("s2", "studio_42", "Ben", "ben@example.com", DECLINED, 1900, "2020-01"),
    ("s3", "studio_42", "Cleo", "cleo@example.com", "4242424242424242", 2900, "2026-06"),
    ("d1", "studio_7", "Dan", "dan@example.com", "4242424242424242", 3500, "2020-01"),
    ("d2", "studio_7", "Eve", "eve@example.com", DECLINED, 3500, "2026-09"),
)
PAUSED = ("charge-due", "dunning-notice", "digest", "send-receipt")


# --- the calendar, a second time ----------------------------------------------------------------------


def instant(zone: ZoneInfo, day: date, hour: int, minute: int) -> datetime:
    """A local time: its first pass, or the first instant after it where the clocks jump over it."""
    wall = datetime(day.year, day.month, day.day, hour, minute, tzinfo=zone)
    found = wall.astimezone(UTC)
    if found.astimezone(zone).replace(tzinfo=None) == wall.replace(tzinfo=None):
        return found
    found -= timedelta(hours=2)
    while found.astimezone(zone).replace(tzinfo=None) < wall.replace(tzinfo=None):
        found += timedelta(minutes=1)
    return found


def days(first: date, last: date) -> Iterator[date]:
    while first <= last:
        yield first
        first += timedelta(days=1)


def charging(tenant: str) -> dict[str, datetime]:
    """Month to instant, for those that fall within the year."""
    on, hour, minute = CHARGED_ON[tenant]
    found = {}
    for first in [date(2025, 12, 1), *(date(2026, month, 1) for month in range(1, 13)), date(2027, 1, 1)]:
        following = (first + timedelta(days=32)).replace(day=1)
        day = min(first.replace(day=1) + timedelta(days=on - 1), following - timedelta(days=1))
        found[f"{first:%Y-%m}"] = instant(ZONES[tenant], day, hour, minute)
    return {key: at for key, at in found.items() if START < at <= END}


def reminding(tenant: str) -> dict[str, datetime]:
    found = {day.isoformat(): instant(ZONES[tenant], day, *REMINDED_AT) for day in days(date(2025, 12, 31), END.date())}
    return {key: at for key, at in found.items() if START < at <= END}


# --- what happens ---------------------------------------------------------------------------------------


@dataclass
class Pause:
    reflex: str
    since: datetime
    until: datetime

    def covers(self, at: datetime) -> bool:
        return self.since < at <= self.until


class Year:
    """One year over a store, drawn from a seed."""

    def __init__(self, seed: int, world: World, folder: Path, **given: Any) -> None:
        self.rng = random.Random(seed)
        self.studio = Studio(world, folder, moody(self.rng, 0.2), **given)
        self.now = START
        self.pauses: list[Pause] = []
        self.paid: dict[str, datetime] = {}  # at the desk, when
        self.happened: Counter[str] = Counter()
        for *member, since in MEMBERS:
            self.studio.books.subscribe(tuple(member), since=since)

    async def lives(self) -> None:
        """From its first day to its last, and a day more in which only what is under way may end."""
        await self.studio.begins(self.now)
        while self.now < END:
            await self._until(min(END, self.now + timedelta(hours=self.rng.randint(1, 12 * 24))))
            if self.now < END:
                happens = self.rng.choice((self._outage, self._pause, self._paid_at_the_desk, self._another_engine))
                self.happened[happens.__name__] += 1
                await happens()
        await self._until(END + timedelta(days=1))
        self.happened["deaths"] = self.studio.fuse.deaths

    async def _until(self, end: datetime) -> None:
        """A process that dies is started again there, and for a quarter of an hour only the bank can kill it."""
        calm = self.now
        while self.now < end:
            self.studio.fuse.left = None if self.now < calm else self.rng.choice((None, self.rng.randint(1, 80)))
            self.now = await passes(self.studio, self.now, min(end, calm) if self.now < calm else end)
            if self.studio.fuse.dead:
                await self.studio.begins(self.now)
                calm = self.now + timedelta(minutes=15)

    async def _rest(self) -> None:
        """All that is due is done."""
        self.studio.fuse.live_on()
        while not await one_life(rests(self.studio.engine, self.now)):
            await self.studio.begins(self.now)

    async def _outage(self) -> None:
        """Nobody is there, for up to seven weeks."""
        self.now = min(END, self.now + timedelta(hours=self.rng.randint(1, 7 * 7 * 24)))
        await self.studio.begins(self.now)
        await self._rest()

    async def _pause(self) -> None:
        """Somebody takes one automation out for some days, and puts it back."""
        reflex = f"{self.rng.choice(list(PREFIX.values()))}.{self.rng.choice(PAUSED)}"
        await self._load(reflex, enabled=False)
        since = self.now
        await self._until(min(END, self.now + timedelta(hours=self.rng.randint(1, 20 * 24))))
        await self._load(reflex, enabled=True)
        self.pauses.append(Pause(reflex, since, self.now))

    async def _load(self, reflex: str, *, enabled: bool) -> None:
        await self._rest()
        known = self.studio.definitions
        self.studio.definitions = [one | {"enabled": enabled} if one["id"] == reflex else one for one in known]
        await self.studio.begins(self.now)

    async def _paid_at_the_desk(self) -> None:
        await self._rest()
        failed = self.studio.books.rows("SELECT invoice_id FROM invoices WHERE status = 'failed'")
        if failed:
            invoice = self.rng.choice(failed)["invoice_id"]
            self.studio.books.pay(invoice)
            self.paid[invoice] = self.now

    async def _another_engine(self) -> None:
        """A second process over the same rows for some days, whose clock is up to half an hour behind."""
        await self._rest()
        other, off = await self.studio.another(), timedelta(minutes=self.rng.randint(0, 30))
        await other.reload()
        for _ in range(12):
            due = await one_life(self.studio.engine.next_due(self.now))
            if due is None or due > END:
                break
            self.now = due
            for _ in range(4):
                both = asyncio.gather(self.studio.engine.advance(self.now), other.advance(self.now - off))
                await one_life(both)
            if self.studio.fuse.dead:
                break
        await self.studio.begins(self.now)
        await self._rest()


# --- what must be true ------------------------------------------------------------------------------------


@dataclass
class Audit:
    """The bank's ledger, the books and the rows of a year that is over."""

    year: Year
    runs: list[dict[str, Any]]
    tasks: list[dict[str, Any]]
    facts: list[dict[str, Any]]

    @classmethod
    async def of(cls, year: Year) -> Audit:
        tables = [await year.studio.rows(table) for table in (REFLEX_RUN, TASK, INTAKE)]
        return cls(year, *tables)

    def letters(self, kind: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.year.studio.books.rows(
            "SELECT * FROM letters WHERE kind = :kind ORDER BY at", kind=kind
        )
        return found

    def heard(self, reflex: str, at: datetime) -> bool:
        return not any(pause.reflex == reflex and pause.covers(at) for pause in self.year.pauses)

    def a_clock_was_paused(self) -> bool:
        """Whether a pause held back an occurrence."""
        return any(
            not self.heard(f"{prefix}.{name}", at)
            for tenant, prefix in PREFIX.items()
            for name, calendar in (("charge-due", charging(tenant)), ("dunning-notice", reminding(tenant)))
            for at in calendar.values()
        )

    def each_occurrence_is_one_run_unless_it_was_paused(self) -> None:
        for tenant, prefix in PREFIX.items():
            for name, calendar in (("charge-due", charging(tenant)), ("dunning-notice", reminding(tenant))):
                reflex = f"{prefix}.{name}"
                lived = Counter(
                    {
                        (run["cause"].partition(":")[2], moment(run["occurred_at"]))
                        for run in self.runs
                        if run["reflex"] == reflex and moment(run["occurred_at"]) <= END
                    }
                )
                assert lived == Counter((key, at) for key, at in calendar.items() if self.heard(reflex, at)), reflex

    def each_charge_was_made_once(self) -> None:
        wanted = Counter(
            f"{member}/{month}"
            for member, tenant, *_, since in MEMBERS
            for month, at in charging(tenant).items()
            if str(since) <= month and self.heard(f"{PREFIX[tenant]}.charge-due", at)
        )
        attempts = self.year.studio.books.rows("SELECT * FROM charge_attempts")
        assert Counter(attempt["invoice_id"] for attempt in attempts) == wanted
        assert {attempt["attempt_id"] for attempt in attempts} == set(self.year.studio.bank.ledger.charges)

    def each_attempt_was_booked(self) -> None:
        rows = self.year.studio.books.rows(
            "SELECT i.invoice_id, i.status, a.status AS came FROM invoices i JOIN charge_attempts a USING (invoice_id)"
        )
        for row in rows:
            booked = "paid" if row["came"] == "succeeded" or row["invoice_id"] in self.year.paid else "failed"
            assert row["status"] == booked, row

    def each_digest_was_sent_once(self) -> None:
        wanted: Counter[tuple[str, str]] = Counter()
        for fact in self.facts:
            tenant = fact["principal"][1:]
            settled = fact["kind"] == "run" and fact["subject"] == f"{PREFIX[tenant]}.charge-due"
            if settled and self.heard(f"{PREFIX[tenant]}.digest", moment(fact["at"])):
                wanted[tenant, json.loads(fact["body"])["occurrence"]] += 1
        assert set(wanted.values()) <= {1}
        assert Counter((letter["tenant"], letter["about"]) for letter in self.letters("digest")) == wanted

    def each_receipt_was_sent_once(self) -> None:
        wanted: Counter[str] = Counter()
        for fact in self.facts:
            tenant = fact["principal"][1:]
            if fact["subject"] == "invoices" and self.heard(f"{PREFIX[tenant]}.send-receipt", moment(fact["at"])):
                row = json.loads(fact["body"])["row"]
                wanted.update([row["invoice_id"]] if row["status"] == "paid" else [])
        assert set(wanted.values()) <= {1}
        assert Counter(letter["about"] for letter in self.letters("receipt")) == wanted

    def nobody_is_reminded_early_often_or_after_paying(self) -> None:
        last: dict[str, datetime] = {}
        for letter in self.letters("dunning"):
            invoice, at = letter["about"], datetime.fromisoformat(letter["at"])
            assert at - last.get(invoice, START - timedelta(days=9)) >= timedelta(days=7)
            assert at <= self.year.paid.get(invoice, at)
            last[invoice] = at
        for row in self.year.studio.books.rows("SELECT * FROM invoices WHERE status = 'failed'"):
            since = datetime.fromisoformat(row["failed_at"])
            paused = any(pause.reflex.endswith("dunning-notice") for pause in self.year.pauses)
            assert row["invoice_id"] in last or paused or since > END - timedelta(days=5)

    def no_studio_ever_hears_the_other(self) -> None:
        whose = {f"{prefix}.": f"={tenant}" for tenant, prefix in PREFIX.items()}
        runs = {run["n"]: run for run in self.runs}
        facts = {fact["n"]: fact for fact in self.facts}
        for run in self.runs:
            (owner,) = [owner for prefix, owner in whose.items() if run["reflex"].startswith(prefix)]
            assert run["principal"] == owner
            assert run["fact"] is None or facts[run["fact"]]["principal"] == owner
        assert all(task["principal"] == runs[task["run"]]["principal"] for task in self.tasks)
        known = {member[3]: member[1] for member in MEMBERS}
        known |= {"owner@example.com": "studio_42", "denver@example.com": "studio_7"}
        for kind in ("receipt", "dunning", "digest"):
            assert all(known[letter["to_whom"]] == letter["tenant"] for letter in self.letters(kind))

    def nothing_is_left_undone(self) -> None:
        assert [run for run in self.runs if run["open"] and moment(run["occurred_at"]) <= END] == []
        assert {task["state"] for task in self.tasks} == {"done"}
        assert {fact["state"] for fact in self.facts} == {"delivered"}


HELD = (
    Audit.each_occurrence_is_one_run_unless_it_was_paused,
    Audit.each_charge_was_made_once,
    Audit.each_attempt_was_booked,
    Audit.each_digest_was_sent_once,
    Audit.each_receipt_was_sent_once,
    Audit.nobody_is_reminded_early_often_or_after_paying,
    Audit.no_studio_ever_hears_the_other,
    Audit.nothing_is_left_undone,
)
