"""Zones: every one, every change from 1874 to 2100, held to two other resolvers; and never the host's copy."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import tzdata  # type: ignore[import-untyped]  # it is data and has no types

from onefold.almanac import Zone, tz_version, zone, zone_names
from onefold.almanac.tzif import CYCLE_S, DAY_S
from onefold.terms.errors import BadArguments
from tests.almanac.resolvers import by_whenever, by_zoneinfo, changes, pinned, raw, shown

SINCE, UNTIL = -3_000_000_000, 4_102_444_800  # 1874 to 2100
SLICES = 8
ROOT = Path(__file__).resolve().parents[2]


def distinct(part: int) -> list[str]:
    """One name for each different file, a slice of them: links hold the same bytes."""
    first: dict[bytes, str] = {}
    for name in sorted(zone_names()):
        first.setdefault(raw(name), name)
    return sorted(first.values())[part::SLICES]


def probes(at: int, before: int, after: int) -> set[int]:
    """Walls around a change: its two edges, one second each side of them, inside, half an hour and a day away."""
    low, high = sorted((at + before, at + after))
    return {low - 1, low, low + 1, (low + high) // 2, high - 1, high, high + 1, high + 1800, low - DAY_S}


@pytest.mark.parametrize("part", range(SLICES))
def test_every_local_time_around_a_change_is_what_two_other_resolvers_say(part: int, pinned_whenever: None) -> None:
    wrong = []
    for name in distinct(part):
        ours = zone(name)
        for at, before, after in changes(name, SINCE, UNTIL):
            for wall in probes(at, before, after):
                said = (*ours.first(wall), ours.second(wall))
                if not said == by_whenever(name, wall) == by_zoneinfo(name, wall):
                    wrong.append((name, wall, said, by_whenever(name, wall), by_zoneinfo(name, wall)))
    assert wrong == []


@pytest.mark.parametrize("part", range(SLICES))
def test_every_change_is_known_and_no_other(part: int, pinned_whenever: None) -> None:
    for name in distinct(part):
        ours, at, found = zone(name), SINCE, []
        while (end := ours.segment(at)[1]) <= UNTIL:
            found.append((end, ours.segment(at)[2], ours.segment(end)[2]))
            at = end
        assert found == changes(name, SINCE, UNTIL), name


@pytest.mark.parametrize(
    "name", ["Europe/Vienna", "America/Santiago", "Asia/Gaza", "America/Nuuk", "Africa/Casablanca"]
)
def test_the_rule_of_the_last_line_holds_in_every_century(name: str) -> None:
    ours, theirs = zone(name), pinned(name)
    for year in range(2034, 9990, 3):
        middle = (year - 1970) * 31_556_952
        for second in (middle, middle + 150 * DAY_S):
            start, end, offset = ours.segment(second)
            assert start <= second < end
            assert second + offset == shown(theirs, second), (year, name)
            assert shown(theirs, start - 1) + 1 != shown(theirs, start)


@pytest.mark.parametrize(
    "name", ["Europe/Vienna", "America/Santiago", "Europe/Dublin", "Pacific/Chatham", "Antarctica/Troll"]
)
def test_what_repeats_after_four_centuries_has_no_seam(name: str) -> None:
    """Around each change near the end of what is written out, as around the same change one cycle earlier."""
    ours = zone(name)
    for at in ours._starts[-3:]:
        for second in range(at - 2 * DAY_S, at + 2 * DAY_S, 900):
            earlier, (start, end, offset) = second - CYCLE_S, ours.segment(second - CYCLE_S)
            assert ours.segment(second) == (start + CYCLE_S, end + CYCLE_S, offset)
            assert ours.reached(second) == ours.reached(earlier) + CYCLE_S
            first, edge = ours.first(earlier)
            assert ours.first(second) == (first + CYCLE_S, edge)
            again = ours.second(earlier)
            assert ours.second(second) == (None if again is None else again + CYCLE_S)


def test_what_was_reached_never_falls_and_is_the_latest_wall_shown() -> None:
    """Around the autumn change in Vienna: through the second pass it stays at the end of the first."""
    vienna = zone("Europe/Vienna")
    change = 1_792_890_000  # 2026-10-25T01:00:00Z
    end_of_first = change + 7200 - 1
    seen = [vienna.reached(second) for second in range(change - 7200, change + 7200, 60)]
    assert seen == sorted(seen)
    assert vienna.reached(change - 1) == end_of_first
    assert {vienna.reached(change + passed) for passed in (0, 1, 1800, 3599)} == {end_of_first}
    assert vienna.reached(change + 3600) == end_of_first + 1


def test_every_name_loads_and_links_agree() -> None:
    assert {"UTC", "Europe/Vienna", "US/Pacific", "Asia/Calcutta"} <= zone_names()
    for name in zone_names():
        assert zone(name).segment(0)[2] == shown(pinned(name), 0), name
    assert zone("Europe/Vienna") is zone("Europe/Vienna")


def test_the_version_is_that_of_the_pinned_release() -> None:
    pins = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    assert f"tzdata=={tzdata.__version__}" in pins
    year, number = tzdata.__version__.split(".")[:2]
    assert tz_version() == f"{year}{'abcdefghijklmnopqrstuvwxyz'[int(number) - 1]}"


@pytest.mark.parametrize(
    "name,near",
    [
        ("Europe/Viena", "Europe/Vienna"),
        ("europe/vienna", "Europe/Vienna"),
        ("Vienna", "Europe/Vienna"),
        ("New York", "America/New_York"),
        ("../../etc/passwd", None),
        ("Somewhere in the woods", None),
        ("", None),
        (None, None),
    ],
)
def test_an_unknown_zone_is_refused_with_the_nearest_name(name: str, near: str | None) -> None:
    with pytest.raises(BadArguments) as refused:
        zone(name, what="clock.tz")
    (fault,) = refused.value.faults
    assert fault.field == "clock.tz"
    assert (f"did you mean {near!r}?" in fault.problem) if near else ("Europe/Vienna" in fault.problem)


OTHERS = """\
import datetime, whenever, zoneinfo
print(datetime.datetime(2026, 7, 1, tzinfo=zoneinfo.ZoneInfo("Europe/Vienna")).utcoffset())
print(whenever.ZonedDateTime(2026, 7, 1, tz="Europe/Vienna").offset.total("hours"))
"""
OURS = """\
import sys
opened = []
sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == "open" else None)
from onefold.almanac import Every, zone
print(Every("0 12 * * *", tz="Europe/Vienna").next(1_790_000_000_000), zone("Europe/Vienna").segment(0)[2])
print([path for path in opened if "zone" in path and "tzdata" not in path and "almanac" not in path])
"""


def said(script: str, env: dict[str, str]) -> list[str]:
    ran = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, check=True)
    return ran.stdout.splitlines()


def test_the_hosts_zone_files_are_never_read(tmp_path: Path) -> None:
    """A host whose Vienna is Tokyo, named by the environment variable that others obey, changes nothing."""
    (tmp_path / "Europe").mkdir()
    (tmp_path / "Europe/Vienna").write_bytes(raw("Asia/Tokyo"))
    env = {**os.environ, "PYTHONTZPATH": str(tmp_path), "TZ": "Asia/Tokyo", "PYTHONPATH": str(ROOT / "src")}
    assert said(OTHERS, env) == ["9:00:00", "9.0"], "the trap is not set"
    rings, opened = said(OURS, env)
    assert rings == "1790071200000 3600"
    assert opened == "[]"


def test_a_zone_is_a_value_of_its_bytes() -> None:
    same = Zone("Here/There", raw("Europe/Vienna"))
    assert same.first(1_792_891_800) == zone("Europe/Vienna").first(1_792_891_800)
    assert repr(same) == "Zone('Here/There')"
