"""Five fields, read strictly: what is taken means one thing, what is refused says which part, where, and what to write."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onefold.almanac.fields import DAY_MINUTES, FIRST_DAY, LAST_DAY, Field, Fields, parse
from onefold.almanac.occurrence import wall_text
from onefold.terms.errors import BadArguments
from tests.almanac.resolvers import EPOCH, SECOND
from tests.almanac.strategies import Text, cron_texts


@pytest.mark.parametrize(
    "text,same",
    [
        ("0 9 * * mon-fri", "0 9 * * 1-5"),
        ("0 9 * * MON,Wed,fri", "0 9 * * 1,3,5"),
        ("0 0 1 jan,JUL *", "0 0 1 1,7 *"),
        ("0 0 * * 7", "0 0 * * 0"),
        ("0 0 * * 5-7", "0 0 * * 0,5,6"),
        ("0 0 * * fri-sun", "0 0 * * 0,5,6"),
        ("0 0 * * sun-tue", "0 0 * * 0-2"),
        ("0 0 * * 0-7", "0 0 * * 0-6"),
        ("*/15 * * * *", "0,15,30,45 * * * *"),
        ("10-40/15 * * * *", "10,25,40 * * * *"),
        ("05 09 * * *", "5 9 * * *"),
        ("  0\t9  * * *  ", "0 9 * * *"),
        ("0 0 1,1,2-3,3 * *", "0 0 1-3 * *"),
        ("* 0-23 * * *", "* * * * *"),
        ("0 */1 * * *", "0 * * * *"),
    ],
)
def test_two_ways_of_writing_one_thing(text: str, same: str) -> None:
    assert parse(text) == parse(same)


@pytest.mark.parametrize(
    "text,said",
    [
        ("60 * * * *", "minute (field 1, character 1): 60 is not 0 to 59"),
        ("0 24 * * *", "hour (field 2, character 3): 24 is not 0 to 23"),
        ("0 9,10,31 * * *", "hour (field 2, character 8): 31 is not 0 to 23"),
        ("0 0 0 * *", "day of month (field 3, character 5): 0 is not 1 to 31"),
        ("0 0 1 13 *", "month (field 4, character 7): 13 is not 1 to 12 or jan to dec"),
        ("0 0 * * 8", "day of week (field 5, character 9): 8 is not 0 to 7 or sun to sat"),
        ("0 0 * * tues", "tues is not 0 to 7 or sun to sat; did you mean tue?"),
        ("0 0 * january *", "january is not 1 to 12 or jan to dec"),
        ("0 9 * mon *", "month (field 4, character 7): mon is not"),
        ("*/90 * * * *", "a step of 90 does not fit; it is 1 to 59 and counts anew each hour"),
        ("*/0 * * * *", "a step of 0 does not fit"),
        ("0 */24 * * *", "a step of 24 does not fit; it is 1 to 23 and counts anew each day"),
        ("5/15 * * * *", "5/15 has no end; write 5-59/15"),
        ("0 22-4 * * *", "22-4 runs backwards; write 22-23,0-4"),
        ("0 0 * * sat-mon", "sat-mon runs backwards; write sat-6,0-mon"),
        ("0 0 * nov-feb *", "nov-feb runs backwards; write nov-12,1-feb"),
        ("0 0 ? * *", "day of month (field 3, character 5): there is no ? in five-field cron; write *"),
        ("0 0 L * *", "L is not five-field cron, which has no last day"),
        ("0 0 15W * *", "15W is not five-field cron"),
        ("0 0 * * 5L", "5L is not five-field cron"),
        ("0 0 * * mon#2", "mon#2 is not five-field cron, which has no # for the nth weekday"),
        ("1,,2 * * * *", "minute (field 1, character 3): a part is empty; there is a comma too many"),
        ("0 0 1- * *", "1- is not a number, a range, a list, or one of them with a step"),
        ("-1 * * * *", "-1 is not a number, a range"),
        ("1.5 * * * *", "1.5 is not a number, a range"),
        ("٣ * * * *", "is not a number, a range"),
        ("000 * * * *", "000 is not 0 to 59"),
        ("**/2 * * * *", "**/2 is not a number, a range"),
        ("* * * *", "has 4 fields, not five: minute, hour, day of month, month, day of week"),
        ("*", "has 1 field, not five"),
        (
            "0 0 9 * * *",
            "has 6 fields, not five: minute, hour, day of month, month, day of week; there is no field for",
        ),
        ("0 9 * * *\n", "day of week (field 5, character 9)"),
        ("", "is empty; write five fields, such as 0 9 * * mon-fri"),
        ("   ", "is empty"),
        ("@daily", "@daily is not five fields; write 0 0 * * *"),
        ("@reboot", "has 1 field, not five"),
        ("0 0 30 2 *", "never comes: there is no day 30 in feb"),
        ("0 0 31 2,4,jun *", "never comes: there is no day 31 in feb, apr, jun"),
        ("0 0 30-31 2 */2", "never comes: there is no day 30 in feb"),
        ("0 " * 300, "has 600 characters; the limit is 500"),
        (None, "is not text"),
    ],
)
def test_what_cannot_be_read_is_refused_in_plain_words(text: str, said: str) -> None:
    with pytest.raises(BadArguments) as refused:
        parse(text, what="clock.cron")
    (fault,) = refused.value.faults
    assert fault.field == "clock.cron"
    assert said in fault.problem


@pytest.mark.parametrize("text", ["0 0 29 2 *", "0 0 31 */2 *", "0 0 30 2 mon", "0 0 29 2 */6", "0 0 */30 2 *"])
def test_what_comes_however_seldom_is_taken(text: str) -> None:
    assert parse(text).following(0) is not None


@given(st.text(alphabet="0123456789*/-,?#LWmonjasuftwed \t", max_size=30) | st.text(max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        fields = parse(text)
    except BadArguments as refused:
        (fault,) = refused.faults
        assert fault.problem
    else:
        assert fields.following(0) is not None


@given(text=cron_texts(), minute=st.integers(0, 2**26))
def test_the_match_found_is_the_nearest(text: Text, minute: int) -> None:
    """Held to the numbers that the text was made from: it matches, and no minute nearer does. Whole days between are
    asked for by their day alone."""
    fields = parse(str(text))
    after, before = fields.following(minute), fields.preceding(minute)
    assert after is not None
    assert before is None or matches(text, before)
    assert matches(text, after)
    assert not any(matches(text, near) for near in range(minute, min(after, minute + 3000)))
    day = minute // DAY_MINUTES
    assert not any(takes(text, near) for near in range(day + 1, min(after // DAY_MINUTES, day + 800)))
    if before is not None:
        assert not any(matches(text, near) for near in range(max(before + 1, minute - 3000), minute + 1))
        assert not any(takes(text, near) for near in range(max(before // DAY_MINUTES + 1, day - 800), day))
        assert fields.following(before) == before
    assert fields.preceding(after) == after


def takes(text: Text, day: int) -> bool:
    date = EPOCH + day * 86_400 * SECOND
    return text.takes_day(date.day, date.month, (date.weekday() + 1) % 7)


def matches(text: Text, minute: int) -> bool:
    day, of_day = divmod(minute, DAY_MINUTES)
    hour, rest = divmod(of_day, 60)
    return hour in text.hour.numbers and rest in text.minute.numbers and takes(text, day)


def first_days(text: str) -> list[str]:
    """The first four days from 2026 on that match a text with one minute a day."""
    fields, at = parse(text), 29_454_480
    found: list[str] = []
    while len(found) < 4:
        following = fields.following(at)
        assert following is not None
        found.append(wall_text(following * 60)[:10])
        at = following + 1
    return found


def test_either_day_field_may_match_unless_one_begins_with_a_star() -> None:
    assert first_days("0 0 13 * fri") == ["2026-01-02", "2026-01-09", "2026-01-13", "2026-01-16"]
    assert first_days("0 0 */2 * mon") == ["2026-01-05", "2026-01-19", "2026-02-09", "2026-02-23"]
    assert first_days("0 0 1-7 * */6") == ["2026-01-03", "2026-01-04", "2026-02-01", "2026-02-07"]


def test_past_the_ends_of_the_calendar_is_nothing() -> None:
    fields = parse("30 12 * * *")
    assert fields.following(LAST_DAY * DAY_MINUTES + 751) is None
    assert fields.following(2**60) is None
    assert fields.following(-(2**60)) == FIRST_DAY * DAY_MINUTES + 750
    assert fields.preceding(FIRST_DAY * DAY_MINUTES + 749) is None
    assert fields.preceding(-(2**60)) is None
    assert fields.preceding(2**60) == LAST_DAY * DAY_MINUTES + 750


def test_the_fields_are_plain_values() -> None:
    assert isinstance(parse("* * * * *"), Fields)
    assert Field("hour", 0, 23, range(24), "day").number("7") == 7
