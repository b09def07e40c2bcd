"""almanac.tzif - the bytes of one zone become segments: from which second on, how many seconds from UTC.

For: reading a TZif file (RFC 8536) whole, the rule in its last line spread over the years that follow.
Never: opens a file; keeps abbreviations or the daylight flag, which decide nothing here.
Was wrong once: a library that finds its own file. It prefers the host's copy and an environment
variable to the pinned one, for the whole process, and one of them offers no transitions.
"""

from __future__ import annotations

import re
import struct
from calendar import isleap, monthrange
from datetime import date
from typing import Final

from onefold.terms.errors import Broken

DAY_S: Final = 86_400
EPOCH_DAY: Final = date(1970, 1, 1).toordinal()
CYCLE_S: Final = 146_097 * DAY_S
"""The calendar repeats after 400 years, to the weekday; so does every rule a zone's last line can hold."""
CYCLE_YEARS: Final = 400
DAWN: Final = -(2**60)
"""The start of a zone's first segment: before every instant there is."""

HEADER: Final = struct.Struct(">4sc15x6L")
TYPE: Final = struct.Struct(">lBB")
NAME: Final = r"(?:[A-Za-z]{3,}|<[A-Za-z0-9+-]{3,}>)"
SPAN: Final = r"[+-]?\d{1,3}(?::\d\d(?::\d\d)?)?"
DAY: Final = r"(?:J\d{1,3}|\d{1,3}|M\d{1,2}\.[1-5]\.[0-6])"
LAST_LINE: Final = re.compile(
    rf"{NAME}(?P<std>{SPAN})"
    rf"(?:{NAME}(?P<dst>{SPAN})?,(?P<on>{DAY})(?:/(?P<on_at>{SPAN}))?,(?P<off>{DAY})(?:/(?P<off_at>{SPAN}))?)?",
    re.ASCII,
)

Segment = tuple[int, int]
"""(first second, seconds east of UTC). It lasts until the next one begins."""


def read(raw: bytes, name: str) -> tuple[list[Segment], bool]:
    """The zone's segments in order, the first beginning at DAWN, none with the offset of the one before it;
    and whether they go on for ever: then they are written out for one cycle and two years past the last listed one.

    Raises: Broken when the bytes are not a zone.
    """
    try:
        listed, last_line = _listed(raw)
        rule = LAST_LINE.fullmatch(last_line)
        if last_line and rule is None:
            raise ValueError(f"its rule {last_line!r} is of an unknown form")
        follows = bool(rule and rule["on"])
        return _merged(listed + (_following(rule, listed[-1][0]) if rule and follows else [])), follows
    except (ValueError, IndexError, struct.error) as fault:
        raise Broken(f"the time zone data of {name} cannot be read: {fault}") from None


def _listed(raw: bytes) -> tuple[list[Segment], str]:
    """The segments the file lists, and its last line. The first block is for 32-bit readers and is passed over."""
    magic, version, *_ = HEADER.unpack_from(raw)
    if magic != b"TZif" or version < b"2":
        raise ValueError("it is no TZif file of version 2 or later")
    block = HEADER.size + _length(raw, 0, 4)
    _, _, _, _, _, times, types, _ = HEADER.unpack_from(raw, block)
    at = block + HEADER.size
    starts = struct.unpack_from(f">{times}q", raw, at)
    kinds = raw[at + 8 * times : at + 9 * times]
    offsets = [TYPE.unpack_from(raw, at + 9 * times + TYPE.size * kind)[0] for kind in range(types)]
    end = at + _length(raw, block, 8)
    if raw[end : end + 1] != b"\n" or not raw.endswith(b"\n"):
        raise ValueError("it has no last line")
    listed = [(DAWN, offsets[0]), *((start, offsets[kind]) for start, kind in zip(starts, kinds, strict=True))]
    return listed, raw[end + 1 : -1].decode("ascii")


def _length(raw: bytes, header: int, word: int) -> int:
    _, _, utcs, stds, leaps, times, types, chars = HEADER.unpack_from(raw, header)
    return int(times * word + times + types * TYPE.size + chars + leaps * (word + 4) + stds + utcs)


def _merged(segments: list[Segment]) -> list[Segment]:
    """Without changes that change no clock: only a name changed, or two changes fell on one instant."""
    merged: list[Segment] = []
    for start, offset in segments:
        if merged and merged[-1][0] >= start:
            merged.pop()
        if not merged or merged[-1][1] != offset:
            merged.append((max(start, DAWN), offset))
    return merged


def _following(rule: re.Match[str], after: int) -> list[Segment]:
    """What the last line says of the years after the last listed change: summer on, summer off, each year."""
    std = -_seconds(rule["std"])
    dst = -_seconds(rule["dst"]) if rule["dst"] else std + 3600
    on_at, off_at = _seconds(rule["on_at"] or "2"), _seconds(rule["off_at"] or "2")
    first = max(1, date.fromordinal(max(1, after // DAY_S + EPOCH_DAY)).year - 1)
    changes = []
    for year in range(first, min(first + CYCLE_YEARS + 4, 9999)):
        # Where both fall on one instant, summer all year, "on" comes last and stands.
        changes.append((_day(rule["off"], year) * DAY_S + off_at - dst, 0, std))
        changes.append((_day(rule["on"], year) * DAY_S + on_at - std, 1, dst))
    return [(start, offset) for start, _, offset in sorted(changes) if start > after]


def _seconds(text: str) -> int:
    sign = -1 if text[0] == "-" else 1
    hours, minutes, seconds = [*map(int, text.lstrip("+-").split(":")), 0, 0][:3]
    return sign * (hours * 3600 + minutes * 60 + seconds)


def _day(text: str, year: int) -> int:
    """The day since 1970 that a rule's day names in a year."""
    first = date(year, 1, 1).toordinal() - EPOCH_DAY
    if text[0] == "J":  # 1 to 365; 29 February is never counted
        number = int(text[1:])
        return first + number - 1 + (isleap(year) and number >= 60)
    if text[0] != "M":  # 0 to 365; 29 February is counted
        return first + int(text)
    month, week, weekday = map(int, text[1:].split("."))
    monday_first, length = monthrange(year, month)
    day = 1 + (weekday - monday_first - 1) % 7 + 7 * (week - 1)
    return date(year, month, day if day <= length else day - 7).toordinal() - EPOCH_DAY
