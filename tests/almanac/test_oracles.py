"""Cron texts beside cronsim and croniter, where their policy is ours; and where it is not, the difference by name.

Left out of the comparison, each with its reason:
- cronsim takes a text whose minute or hour begins with * for an hourly one; here only the hour decides, and only if
  every hour matches. It goes back in time when asked inside a second pass, and where the clocks go back over
  midnight at a minute past it (St. John's). It rings an hourly text at a midnight that a quarter of an hour jumped
  over (Kathmandu, 1986). It reads 5-5/2 as 5/2.
- croniter rings fixed times in both passes, lets either day field match even when one is */n, and reads 5-5 as *.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import cast

from croniter import croniter  # type: ignore[import-untyped]  # it has no types
from cronsim import CronSim
from hypothesis import assume, given
from hypothesis import strategies as st

from onefold.almanac import Cron, cron_rule, zone
from onefold.terms.instant import Instant, moment, text, up
from tests.almanac.resolvers import pinned
from tests.almanac.strategies import ODD, Text, cron_texts, near_a_change

AT_A_TIME = 5
Oracle = Callable[[str, datetime], Iterator[datetime]]


def cronsim(cron: str, after: datetime) -> Iterator[datetime]:
    return CronSim(cron, after)


def croniter_(cron: str, after: datetime) -> Iterator[datetime]:
    return cast(Iterator[datetime], croniter(cron, after, ret_type=datetime))


def plain(cron: Text) -> bool:
    """Without a range of one, which both misread."""
    parts = (cron.minute, cron.hour, cron.day, cron.month, cron.weekday)
    return not any("-" in part.text and len(part.numbers) == 1 for part in parts)


def rings(rule: Cron, after: Instant) -> list[Instant]:
    found: list[Instant] = []
    while len(found) < AT_A_TIME and (coming := rule.next(found[-1] if found else after)) is not None:
        found.append(coming.at)
    return found


def asked(oracle: Oracle, cron: str, name: str, after: Instant) -> list[Instant]:
    given_ = oracle(cron, moment(after).astimezone(UTC if name == "UTC" else pinned(name)))
    return [up(next(given_)) for _ in range(AT_A_TIME)]


TEXTS = cron_texts().filter(plain)
ZONES = st.sampled_from([name for name in ODD if name not in ("America/St_Johns", "Asia/Kathmandu")])


@given(cron=TEXTS, after=near_a_change("UTC"))
def test_without_a_zone_cronsim_says_the_same(cron: Text, after: Instant) -> None:
    ours = rings(cron_rule(str(cron), zone("UTC")), after)
    assert ours == asked(cronsim, str(cron), "UTC", after)


@given(cron=TEXTS, after=near_a_change("UTC"))
def test_without_a_zone_croniter_says_the_same(cron: Text, after: Instant) -> None:
    assume(not any(day.star and day.text != "*" for day in (cron.day, cron.weekday)))
    ours = rings(cron_rule(str(cron), zone("UTC")), after)
    assert ours == asked(croniter_, str(cron), "UTC", after)


@given(cron=TEXTS, name=ZONES, data=st.data())
def test_around_a_change_cronsim_says_the_same_where_its_policy_is_ours(
    cron: Text, name: str, data: st.DataObject
) -> None:
    assume(cron.hour.text == "*" or not (cron.minute.star or cron.hour.star))
    after = Instant(data.draw(near_a_change(name)) // 1000 * 1000)
    offset = zone(name).segment(after // 1000)[2]
    assume(zone(name).reached(after // 1000) == after // 1000 + offset)
    ours = rings(cron_rule(str(cron), zone(name)), after)
    assert ours == asked(cronsim, str(cron), name, after)


def told(cron: str, name: str, after: str, oracle: Oracle) -> tuple[list[str], list[str]]:
    """What we ring, and what the other rings."""
    at = up(datetime.fromisoformat(after))
    ours = rings(cron_rule(cron, zone(name)), at)
    return [text(one) for one in ours], [text(one) for one in asked(oracle, cron, name, at)]


def test_cronsim_goes_back_when_asked_inside_a_second_pass() -> None:
    ours, theirs = told("30 2 * * *", "Europe/Vienna", "2026-10-25T01:10Z", cronsim)
    assert ours[0] == "2026-10-26T01:30:00Z"
    assert theirs[0] == "2026-10-25T00:30:00Z"


def test_cronsim_drops_minute_steps_of_a_fixed_hour_in_a_gap() -> None:
    ours, theirs = told("*/30 2 * * *", "Europe/Vienna", "2026-03-28T12:00Z", cronsim)
    assert ours[:2] == ["2026-03-29T01:00:00Z", "2026-03-30T00:00:00Z"]
    assert theirs[0] == "2026-03-30T00:00:00Z"


def test_cronsim_rings_a_fixed_hour_with_a_starred_minute_in_both_passes() -> None:
    ours, theirs = told("*/30 2 * * *", "Europe/Vienna", "2026-10-24T12:00Z", cronsim)
    assert ours[:3] == ["2026-10-25T00:00:00Z", "2026-10-25T00:30:00Z", "2026-10-26T01:00:00Z"]
    assert theirs[2:4] == ["2026-10-25T01:00:00Z", "2026-10-25T01:30:00Z"]


def test_croniter_rings_fixed_times_in_both_passes() -> None:
    ours, theirs = told("30 2 * * *", "Europe/Vienna", "2026-10-24T12:00Z", croniter_)
    assert ours[:2] == ["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"]
    assert theirs[:2] == ["2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"]


def test_croniter_lets_either_day_field_match_beside_a_step() -> None:
    ours, theirs = told("0 0 */10 * mon", "UTC", "2026-01-01T00:00Z", croniter_)
    assert ours[:2] == ["2026-05-11T00:00:00Z", "2026-06-01T00:00:00Z"]
    assert theirs[:2] == ["2026-01-05T00:00:00Z", "2026-01-11T00:00:00Z"]
