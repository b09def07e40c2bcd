"""almanac.zones - the pinned time zones: local time to instant, and back.

For: `zone(name)`, and the two rulings. A local time that the clocks jump over takes the first valid
     instant after the gap; one they show twice takes the first pass, or the second when it is asked for.
Never: reads the host's zone files or an environment variable; the data is that of the pinned `tzdata`.
Was wrong once: an erased local time was moved on by the width of the gap. A daily 02:30 then rang at
03:30, and its key was lost when somebody asked between 03:00 and 03:30.

Seconds here are whole. An instant's are counted from 1970 in UTC; a wall's are counted the same way,
as if the clock on the wall showed UTC.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from functools import cache
from pkgutil import get_data
from typing import Final, Literal

import tzdata  # type: ignore[import-untyped]  # it is data and has no types

from onefold.almanac.tzif import CYCLE_S, DAWN, read
from onefold.terms.errors import BadArguments, Broken, Fault
from onefold.terms.ids import nearest

DUSK: Final = 2**60
"""The end of a zone's last segment, if it has one: after every instant there is."""

Edge = Literal["ok", "gap", "fold", "fold2"]
"""What the clocks did: showed the local time once, jumped over it, showed it twice and this is the first, the second."""


class Zone:
    """One zone: stretches of constant offset, found by bisection. Immutable; about 20 KB with daylight time, else 2."""

    __slots__ = ("_bound", "_least", "_offsets", "_peaks", "_starts", "name")

    def __init__(self, name: str, raw: bytes) -> None:
        """`raw` is a TZif file. Raises: Broken when it is not."""
        segments, follows = read(raw, name)
        self.name: Final = name
        self._starts: Final = array("q", [start for start, _ in segments])
        self._offsets: Final = array("l", [offset for _, offset in segments])
        self._least: Final = min(self._offsets)
        # By the end of segment i, no clock here has yet shown peaks[i]. It never falls, so walls are found by
        # bisection although the clocks go back.
        peaks, highest = array("q"), DAWN
        for end, offset in zip(self._starts[1:], self._offsets, strict=False):
            highest = max(highest, end + offset)
            peaks.append(highest)
        self._peaks: Final = peaks
        # From this second on the segments repeat: look one cycle, or several, earlier. The last one stays for months,
        # so a wall falls on the same side of it as its instant does.
        self._bound: Final = self._starts[-1] if follows else DUSK

    def __repr__(self) -> str:
        return f"Zone({self.name!r})"

    def segment(self, second: int) -> tuple[int, int, int]:
        """The stretch of constant offset around an instant: its first second, the first after it, its offset."""
        shift = self._shift(second)
        i = bisect_right(self._starts, second - shift) - 1
        end = self._starts[i + 1] + shift if i + 1 < len(self._starts) else DUSK
        start = self._starts[i]
        return start if start == DAWN else start + shift, end, self._offsets[i]

    def reached(self, second: int) -> int:
        """The latest wall any clock here has shown by an instant: in a second pass, the end of the first."""
        shift = self._shift(second)
        i = bisect_right(self._starts, second - shift) - 1
        wall = second + self._offsets[i]
        return max(wall, self._peaks[i - 1] + shift - 1) if i else wall

    def first(self, wall: int) -> tuple[int, Edge]:
        """The first second at which a clock here shows `wall` or, where it is jumped over, anything later."""
        shift = self._shift(wall)
        wall -= shift
        i = bisect_right(self._peaks, wall)
        at = wall - self._offsets[i]
        if at < self._starts[i]:
            return self._starts[i] + shift, "gap"
        return at + shift, "ok" if self._again(i, wall) is None else "fold"

    def second(self, wall: int) -> int | None:
        """The second at which a clock here shows `wall` again; None where it does not."""
        shift = self._shift(wall)
        wall -= shift
        again = self._again(bisect_right(self._peaks, wall), wall)
        return None if again is None else again + shift

    def _again(self, i: int, wall: int) -> int | None:
        """The pass after the one in segment `i`."""
        starts, latest = self._starts, wall - self._least
        for j in range(i + 1, len(starts)):
            if starts[j] > latest:
                return None
            at = wall - self._offsets[j]
            if starts[j] <= at and (j + 1 == len(starts) or at < starts[j + 1]):
                return at
        return None

    def _shift(self, second: int) -> int:
        return 0 if second < self._bound else ((second - self._bound) // CYCLE_S + 1) * CYCLE_S


def tz_version() -> str:
    """The release of the zone data in use, as its makers write it: "2026f"."""
    return str(tzdata.IANA_VERSION)


@cache
def zone_names() -> frozenset[str]:
    """Every name the pinned data knows, links included."""
    return frozenset(_data("zones").decode("ascii").split())


def zone(name: str, *, what: str = "tz") -> Zone:
    """The zone of an IANA name, spelt exactly. Raises: BadArguments, naming the nearest one, with `what` as its field."""
    given: object = name
    if not isinstance(given, str) or given not in zone_names():
        raise BadArguments([Fault(what, _unknown(given), given)])
    return _loaded(name)


@cache
def _loaded(name: str) -> Zone:
    return Zone(name, _data(f"zoneinfo/{name}"))


def _data(path: str) -> bytes:
    try:
        raw = get_data("tzdata", path)
    except OSError:
        raw = None
    if raw is None:
        raise Broken(f"the tzdata package is installed without its file {path}")
    return raw


def _unknown(name: object) -> str:
    if not isinstance(name, str) or not name:
        return 'is not a time zone; give an IANA name, such as "Europe/Vienna"'
    # Most people leave out the first half, or write spaces.
    wanted = name.replace(" ", "_")
    cities = {full.rpartition("/")[2]: full for full in sorted(zone_names(), reverse=True)}
    near = nearest(wanted, zone_names()) or cities.get(nearest(wanted, cities) or "")
    hint = f"; did you mean {near!r}?" if near else '; give an IANA name, such as "Europe/Vienna"'
    return f"is not a time zone known to the data of {tz_version()}{hint}"
