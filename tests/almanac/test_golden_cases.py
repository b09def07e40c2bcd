"""The golden cases: a rule, a zone, the instant asked after; the instants, keys and edges that must follow."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from onefold.almanac import Calendar, Cron, Occurrence, Once, Zone, clock_rule, cron_rule, tz_version, zone
from onefold.terms.codec import parse
from onefold.terms.errors import BadArguments
from onefold.terms.instant import Instant, text, up

HERE = Path(__file__).parent / "cases"


@dataclass(frozen=True)
class Case:
    rule: dict[str, Any]
    tz: str
    after: Instant
    expect: list[str]
    keys: list[str] | None
    edges: list[str] | None
    note: str
    tzdata: str | None

    @property
    def zone(self) -> Zone:
        """Of the pinned release or, where the case names one, of that release, from the files beside the cases."""
        if self.tzdata is None:
            return zone(self.tz)
        return Zone(self.tz, (HERE / f"tzdata/{self.tzdata}/{self.tz}.tzif").read_bytes())

    def made(self) -> Calendar | Once | Cron:
        if "cron" in self.rule:
            return cron_rule(self.rule["cron"], self.zone)
        return replace(clock_rule({**self.rule, "tz": self.tz}), zone=self.zone)


def cases() -> Iterator[Any]:
    document: Any = parse((HERE / "time.json").read_bytes(), "the cases")
    for number, case in enumerate(document["cases"]):
        rule = " ".join(str(value) for name, value in case["rule"].items() if name != "fold")
        found = Case(
            case["rule"],
            case["tz"],
            up(datetime.fromisoformat(case["after"])),
            case["expect_utc"],
            case.get("keys"),
            case.get("edges"),
            case["note"],
            case.get("tzdata"),
        )
        yield pytest.param(found, id=f"{number:02} {rule} in {case['tz']} {case.get('tzdata', '')}".strip())


CASES = list(cases())
ALL = pytest.mark.parametrize("case", CASES)


def walked(case: Case, count: int) -> list[Occurrence]:
    """Calendar rules by key. Cron texts by instant, as a timer asks; the key is then the last one that shares it."""
    rule, found = case.made(), list[Occurrence]()
    coming = rule.next(case.after)
    while coming is not None and len(found) < count:
        if isinstance(rule, Cron):
            latest = rule.latest(coming.at)
            assert latest is not None
            found.append(latest)
            coming = rule.next(coming.at)
        else:
            found.append(coming)
            coming = rule.next(coming.key)
    return found


@ALL
def test_what_follows_is_what_the_case_says(case: Case) -> None:
    if not case.expect and "cron" in case.rule:
        with pytest.raises(BadArguments, match="never comes"):  # refused when it is read
            case.made()
        return
    if not case.expect:
        assert case.made().next(case.after) is None
        return
    found = walked(case, len(case.expect))
    assert [text(one.at) for one in found] == case.expect, case.note
    if case.keys is not None:
        assert [one.key for one in found] == case.keys, case.note
    if case.edges is not None:
        assert [one.edge for one in found] == case.edges, case.note


@ALL
def test_the_two_clocks_of_cron_are_told_apart(case: Case) -> None:
    if case.expect and "fold" in case.rule:
        rule = case.made()
        assert isinstance(rule, Cron)
        assert rule.elapsed == (case.rule["fold"] == "elapsed")
    else:
        assert "fold" not in case.rule or "cron" in case.rule


@ALL
def test_a_key_alone_finds_its_place_again(case: Case) -> None:
    for one in walked(case, len(case.expect)) if case.expect else []:
        rule = case.made()
        assert rule.plan(one.key) == one
        latest = rule.latest(one.at)
        assert latest is not None
        assert latest.at == one.at


def test_the_cases_that_name_a_release_name_the_pinned_one() -> None:
    """When the zone data moves on, its files stay beside the cases, and these are written again for the new one."""
    named = {case.values[0].tzdata for case in CASES} - {None}
    assert tz_version() in named
    assert {path.name for path in (HERE / "tzdata").iterdir()} == named
