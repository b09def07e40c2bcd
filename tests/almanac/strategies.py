"""Rules, zones and instants by chance, each cron field both as text and as the numbers it means.

For: properties. The numbers are made beside the text, so the parser is held to them and not to itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from hypothesis import strategies as st

from onefold.almanac import Calendar, Cron, Once, cron_rule, zone, zone_names
from onefold.almanac.calendar import PERIODS
from onefold.almanac.fields import LENGTHS
from onefold.terms.instant import FIRST, LAST, Instant

# A date left out, half an hour, negative summer time, midnight, two hours, three without summer, Ramadan, one night in 1986.
ODD = (
    "Pacific/Apia Australia/Lord_Howe Europe/Dublin America/Sao_Paulo Antarctica/Troll Antarctica/Casey Africa/Casablanca "
    "Asia/Kathmandu Asia/Gaza America/Nuuk America/St_Johns Pacific/Kwajalein America/Santiago Europe/Vienna UTC "
    "America/New_York Asia/Pyongyang America/Caracas Africa/Cairo Asia/Tehran Pacific/Auckland Asia/Manila"
).split()
NAMES = st.sampled_from(ODD) | st.sampled_from(sorted(zone_names()))
ANY_INSTANT = st.integers(FIRST, LAST).map(Instant)
WEEKDAY_WORDS = "sun mon tue wed thu fri sat".split()
MONTH_WORDS = "jan feb mar apr may jun jul aug sep oct nov dec".split()


@cache
def changes_of(name: str) -> list[int]:
    """The seconds of every change from 1973 to 2037, when offsets are whole minutes."""
    found, at = [], 94_694_400
    while (at := zone(name).segment(at)[1]) < 2_145_916_800:
        found.append(at)
    return found


@st.composite
def near_a_change(draw: st.DrawFn, name: str) -> Instant:
    """An instant within two days of a change of the zone; any instant of those years where it has none."""
    changes = changes_of(name)
    if not changes:
        return Instant(draw(st.integers(94_694_400_000, 2_145_916_800_000)))
    return Instant(draw(st.sampled_from(changes)) * 1000 + draw(st.integers(-172_800_000, 172_800_000)))


@dataclass(frozen=True)
class Part:
    """One field: its text, the numbers it means, and whether its text begins with *."""

    text: str
    numbers: frozenset[int]

    @property
    def star(self) -> bool:
        return self.text.startswith("*")


@st.composite
def part(draw: st.DrawFn, low: int, high: int, words: list[str]) -> Part:
    """`low` to `high` is what * means."""
    kind = draw(st.sampled_from(["star", "star", "one", "range", "range/step", "list", "star/step"]))
    whole = range(low, high + 1)
    in_words: bool = draw(st.booleans())
    said = dict(zip(whole, words, strict=True)) if words and in_words else {}
    if kind == "star":
        return Part("*", frozenset(whole))
    if kind == "star/step":
        step = draw(st.integers(1, high))
        return Part(f"*/{step}", frozenset(whole[::step]))
    first = draw(st.integers(low, high))
    if kind == "one":
        return Part(str(said.get(first, first)), frozenset([first]))
    if kind == "list":
        some = draw(st.lists(st.sampled_from(whole), min_size=1, max_size=4))
        return Part(",".join(str(said.get(n, n)) for n in some), frozenset(some))
    last = draw(st.integers(first, high))
    text = f"{said.get(first, first)}-{said.get(last, last)}"
    if kind == "range":
        return Part(text, frozenset(range(first, last + 1)))
    step = draw(st.integers(1, high))
    return Part(f"{text}/{step}", frozenset(range(first, last + 1, step)))


@dataclass(frozen=True)
class Text:
    """A cron text and what it means."""

    minute: Part
    hour: Part
    day: Part
    month: Part
    weekday: Part

    def __str__(self) -> str:
        return " ".join(each.text for each in (self.minute, self.hour, self.day, self.month, self.weekday))

    @property
    def elapsed(self) -> bool:
        return len(self.hour.numbers) == 24

    def takes_day(self, day: int, month: int, weekday: int) -> bool:
        """`weekday`: Sunday is 0."""
        if month not in self.month.numbers:
            return False
        on_day, on_weekday = day in self.day.numbers, weekday in self.weekday.numbers
        return on_day and on_weekday if self.day.star or self.weekday.star else on_day or on_weekday

    @property
    def comes(self) -> bool:
        either = not (self.day.star or self.weekday.star)
        return either or any(day <= LENGTHS[month] for month in self.month.numbers for day in self.day.numbers)


def cron_texts() -> st.SearchStrategy[Text]:
    """Texts that come some day."""
    texts = st.builds(
        Text,
        part(0, 59, []),
        part(0, 23, []),
        part(1, 31, []),
        part(1, 12, MONTH_WORDS),
        part(0, 6, WEEKDAY_WORDS),
    )
    return texts.filter(lambda text: text.comes)


def crons(names: st.SearchStrategy[str] = NAMES) -> st.SearchStrategy[Cron]:
    return st.builds(lambda text, name: cron_rule(str(text), zone(name)), cron_texts(), names)


@st.composite
def calendars(draw: st.DrawFn, names: st.SearchStrategy[str] = NAMES) -> Calendar:
    every = draw(st.sampled_from(PERIODS))
    on = 0
    if every == "week":
        on = draw(st.integers(0, 6))
    elif every == "month":
        on = draw(st.integers(1, 31))
    elif every == "year":
        month = draw(st.integers(1, 12))
        on = month * 100 + draw(st.integers(1, LENGTHS[month]))
    # Where the clocks of most zones change, more often than elsewhere.
    minute = draw(st.integers(0, 1439) | st.integers(0, 240))
    return Calendar(every, on, minute, zone(draw(names)))


def onces(names: st.SearchStrategy[str] = NAMES) -> st.SearchStrategy[Once]:
    return st.builds(lambda wall, name: Once(wall, zone(name)), st.integers(0, 2_145_916_800), names)


RULES = st.one_of(calendars(), crons(), onces())
