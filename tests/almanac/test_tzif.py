"""The bytes of a zone: every form of last line the standard allows, and bytes that are no zone."""

from __future__ import annotations

import struct
from itertools import pairwise

import pytest

from onefold.almanac import Zone, zone_names
from onefold.almanac.tzif import DAWN, DAY_S, read
from onefold.terms.errors import Broken
from tests.almanac.resolvers import raw

HOUR = 3600


def made(last_line: str, changes: list[tuple[int, int]] | None = None, first: int = 0) -> bytes:
    """A file of version 2: an empty block for old readers, then changes (second, offset) after a first offset."""
    listed = changes or []
    offsets = [first, *(offset for _, offset in listed)]
    old = struct.pack(">4sc15x6L", b"TZif", b"2", 0, 0, 0, 0, 1, 1) + struct.pack(">lBB", 0, 0, 0) + b"\0"
    new = struct.pack(">4sc15x6L", b"TZif", b"2", 0, 0, 0, len(listed), len(offsets), 4)
    new += b"".join(struct.pack(">q", second) for second, _ in listed) + bytes(range(1, len(offsets)))
    new += b"".join(struct.pack(">lBB", offset, 0, 0) for offset in offsets) + b"AAA\0"
    return old + new + b"\n" + last_line.encode() + b"\n"


def year_of(zone: Zone, year: int) -> list[tuple[int, int]]:
    """The changes of a year: (second of the year, new offset). Only for years after 1970."""
    days = sum(365 + (y % 4 == 0 and (y % 100 != 0 or y % 400 == 0)) for y in range(1970, year))
    at, found = days * DAY_S, []
    while (at := zone.segment(at)[1]) < (days + 366) * DAY_S:
        found.append((at - days * DAY_S, zone.segment(at)[2]))
    return found


def test_days_counted_with_and_without_the_leap_day() -> None:
    without, with_it = Zone("J", made("AAA0BBB,J60/0,J300/1")), Zone("n", made("AAA0BBB,59/0,299/1"))
    assert year_of(without, 2027) == [(59 * DAY_S, HOUR), (299 * DAY_S, 0)]
    assert year_of(without, 2028) == [(60 * DAY_S, HOUR), (300 * DAY_S, 0)]
    assert year_of(with_it, 2027) == year_of(with_it, 2028) == [(59 * DAY_S, HOUR), (299 * DAY_S, 0)]
    assert year_of(Zone("J", made("AAA0BBB,J59/0,J60/0")), 2028) == [(58 * DAY_S, HOUR), (60 * DAY_S - HOUR, 0)]


def test_the_time_is_two_oclock_where_none_is_said_and_the_fifth_week_is_the_last() -> None:
    zone = Zone("M", made("AAA-1BBB,M2.5.0,M10.5.4/-2:30"))
    assert year_of(zone, 2026) == [(52 * DAY_S + HOUR, 2 * HOUR), (301 * DAY_S - 4 * HOUR - 1800, HOUR)]


def test_summer_may_be_less_than_an_hour_or_negative_or_far_away() -> None:
    assert {offset for _, offset in year_of(Zone("half", made("<+10>-10<+1030>-10:30,M1.1.0,M6.1.0")), 2026)} == {
        36_000, 37_800,
    }  # fmt: skip
    assert {offset for _, offset in year_of(Zone("less", made("IST-1GMT0,M10.5.0,M3.5.0/1")), 2026)} == {0, HOUR}


def test_summer_all_year_is_one_offset() -> None:
    """Written as a summer that ends when the next begins: no change is left."""
    zone = Zone("all year", made("AAA5BBB,0/0,J365/25", [(0, -4 * HOUR)], -5 * HOUR))
    assert zone.segment(-1)[2] == -5 * HOUR
    for year in (1971, 2027, 2028, 2500, 9000):
        assert year_of(zone, year) == []
        assert zone.segment((year - 1970) * 365 * DAY_S)[2] == -4 * HOUR


def test_a_rule_without_listed_changes_holds_from_the_first_year() -> None:
    zone = Zone("always", made("AAA0BBB,M4.1.0,M10.1.0"))
    for year in (1971, 2026, 2400, 9998):
        assert [offset for _, offset in year_of(zone, year)] == [HOUR, 0]


def test_a_change_of_name_only_is_no_change() -> None:
    segments, follows = read(made("AAA0", [(100, 0), (200, HOUR), (300, HOUR), (300, 0)]), "names")
    assert segments == [(DAWN, 0), (200, HOUR), (300, 0)]
    assert not follows


def test_no_file_of_the_pinned_release_has_another_form() -> None:
    for name in zone_names():
        segments, _ = read(raw(name), name)
        assert segments[0][0] == DAWN
        assert all(a[0] < b[0] and a[1] != b[1] for a, b in pairwise(segments))


@pytest.mark.parametrize(
    "bad",
    [
        b"",
        b"TZif2",
        b"\0" * 200,
        raw("Europe/Vienna")[:-40],
        raw("Europe/Vienna")[:-1],
        raw("Europe/Vienna").replace(b"TZif2", b"TZif\0", 1),
        raw("Europe/Vienna").replace(b"CET-1CEST,M3.5.0,M10.5.0/3", b"CET-1CEST                 "),
        made("AAA0BBB"),
        made("AAA0BBB,M3.6.0,M10.5.0"),
        made("AAA0BBB,M13.1.0,M10.5.0"),
        made("<AAA0"),
        made("AAA0", [(1, 3600)])[:-20],
    ],
)
def test_bytes_that_are_no_zone_are_named(bad: bytes) -> None:
    with pytest.raises(Broken, match="the time zone data of Bad/Zone cannot be read"):
        read(bad, "Bad/Zone")
