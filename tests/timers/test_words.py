"""What a schedule hears is refused before a fold where it is wrong; ids are what they say."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onefold.terms.errors import BadArguments
from onefold.timers import Ack, At, Create, End, Every, Supersede, Tick, TickId, schedule_id
from onefold.timers.making import timers
from onefold.timers.words import OWNER_CHARS, owner_part
from tests.timers.home import HOURLY, SCHEDULE, START, Owner, create, tick_id

ids = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=20)


@given(ids, ids, ids, ids)
def test_two_schedules_share_an_id_only_if_owner_and_key_are_the_same(a: str, b: str, c: str, d: str) -> None:
    assert (schedule_id(a, b) == schedule_id(c, d)) == ((a, b) == (c, d))


@given(ids, ids)
def test_an_owners_schedules_stand_together(owner: str, key: str) -> None:
    assert schedule_id(owner, key).startswith(owner_part(owner))
    assert len(owner_part(owner)) == OWNER_CHARS


@pytest.mark.parametrize("owner,key", [("", "k"), ("o", ""), ("o", "a\0b"), ("o", "x" * 600)])
def test_a_schedule_has_an_owner_and_a_key(owner: str, key: str) -> None:
    with pytest.raises(BadArguments):
        schedule_id(owner, key)
    with pytest.raises(BadArguments):
        Create("c1", owner, key, HOURLY)


def test_a_tick_id_is_its_schedule_generation_and_exact_instant() -> None:
    one = tick_id(START)
    others = [tick_id(START, 1), tick_id(START + timedelta(milliseconds=1)), tick_id(START, 0, schedule_id("o", "k"))]
    assert str(one) == f"{SCHEDULE}/0/2026-01-01T00:00:00Z"
    assert len({str(id) for id in [one, *others]}) == 4


def test_a_tick_id_reads_the_same_in_every_zone() -> None:
    vienna = START.astimezone(timezone(timedelta(hours=1)))
    assert tick_id(vienna) == tick_id(START)
    assert str(tick_id(vienna)) == str(tick_id(START))


@pytest.mark.parametrize(
    "make",
    [
        lambda: TickId("standup", 0, START),
        lambda: TickId(SCHEDULE, -1, START),
        lambda: TickId(SCHEDULE, True, START),
        lambda: TickId(SCHEDULE, 0, datetime(2026, 1, 1)),  # noqa: DTZ001 - naive on purpose
        lambda: TickId(SCHEDULE, 0, "2026-01-01T00:00:00Z"),  # type: ignore[arg-type]
        lambda: Supersede("s1", "standup", HOURLY),
        lambda: End("e1", ""),
        lambda: Create("c1", "o", "k", HOURLY, ends_at=datetime(2026, 1, 1)),  # noqa: DTZ001 - naive on purpose
        lambda: At(datetime(2026, 1, 1)),  # noqa: DTZ001 - naive on purpose
        lambda: Every("0 9 * *", tz="UTC"),
        lambda: Every("0 9 * * *", tz="Europe/Wien"),
    ],
)
def test_what_names_nothing_is_refused_where_it_is_made(make: object) -> None:
    with pytest.raises(BadArguments):
        make()  # type: ignore[operator]


EVENTS = [
    create(),
    create(At(START + timedelta(hours=3)), ends_at=START + timedelta(days=9), payload=None),
    Supersede("s1", SCHEDULE, Every("*/5 8-18 * * mon-fri", tz="Europe/Vienna"), [1, {"a": "ü"}]),
    End("e1", SCHEDULE),
    Ack("a1", tick_id(START)),
]


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_every_event_comes_back_from_its_json(event: object) -> None:
    codec = timers("reminders", to=Owner().port).codecs.event
    assert codec.decode(codec.encode(event)) == event
    assert codec.to_json(event)["type"] == type(event).__name__


def test_a_tick_says_all_its_owner_must_know() -> None:
    codec = Owner().port.body
    tick = Tick(tick_id(START), "agent-7", "standup", START, {"say": "hi"})
    assert codec.to_json(tick) == {
        "id": {"schedule": SCHEDULE, "generation": 0, "due_at": "2026-01-01T00:00:00Z"},
        "owner": "agent-7",
        "key": "standup",
        "due_at": "2026-01-01T00:00:00Z",
        "payload": {"say": "hi"},
    }
    assert codec.decode(codec.encode(tick)) == tick


def test_an_end_is_kept_in_whole_milliseconds_and_never_earlier() -> None:
    said = datetime(2026, 1, 1, 0, 0, 0, 1, tzinfo=UTC)
    assert create(ends_at=said).ends_at == START + timedelta(milliseconds=1)
