"""Schedules over HTTP: events of their module, and what a read shows."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
from httpx2 import AsyncClient

from onefold.serve import asgi_app
from tests.serve.conftest import LOCAL, client_of
from tests.timers.conftest import Homes
from tests.timers.home import SCHEDULE, Home, at, tick_id

EVERY = {"type": "Every", "cron": "0 * * * *", "tz": "UTC"}
CREATE = {
    "type": "Create",
    "id": "c1",
    "owner": "agent-7",
    "key": "standup",
    "trigger": EVERY,
    "payload": {"say": "hi"},
}
FIRST = {"schedule": SCHEDULE, "generation": 0, "due_at": "2026-01-01T01:00:00Z"}


@pytest.fixture
async def served(homes: Homes) -> AsyncIterator[tuple[Home, AsyncClient]]:
    home = await homes()
    async with client_of(asgi_app(home.stage.host), LOCAL) as client:
        yield home, client


async def test_a_schedule_from_create_to_ack(served: tuple[Home, AsyncClient]) -> None:
    home, client = served

    async def say(event: dict[str, Any]) -> Any:
        answer = await client.post("/modules/reminders/events", json=event)
        assert answer.status_code == 200, answer.text
        return answer.json()["reply"]

    standing = {"type": "Scheduled", "schedule": SCHEDULE, "generation": 0, "next_due": "2026-01-01T01:00:00Z"}
    assert await say(CREATE) == standing
    assert await say({**CREATE, "id": "c2"}) == standing
    assert await say({**CREATE, "id": "c3", "payload": 1}) == {
        "type": "Conflict",
        "schedule": SCHEDULE,
        "field": "payload",
    }
    await home.later("61m")
    shown = (await client.get(f"/modules/reminders/{SCHEDULE}")).json()
    assert shown["view"]["held"] == FIRST
    assert (shown["view"]["trigger"], shown["view"]["next_due"]) == (EVERY, None)
    assert "alarm" not in shown
    assert await say({"type": "Ack", "id": "a1", "tick": FIRST}) == {"type": "Acked"}
    assert await say({"type": "Ack", "id": "a2", "tick": {**FIRST, "generation": 9}}) == {"type": "Unknown"}
    assert await say({"type": "End", "id": "e1", "schedule": SCHEDULE}) == {"type": "Ended"}


async def test_a_list_has_each_schedule_with_its_alarm(served: tuple[Home, AsyncClient]) -> None:
    _, client = served
    await client.post("/modules/reminders/events", json=CREATE)
    (item,) = (await client.get("/modules/reminders", params={"prefix": SCHEDULE[:12]})).json()["items"]
    assert item["key"] == SCHEDULE
    assert item["alarm"].startswith("2026-01-01T01:00:00.")
    assert (await client.get("/modules/reminders/nothing")).json() == {"key": "nothing", "view": None}


async def test_facts_are_told_with_their_names(served: tuple[Home, AsyncClient]) -> None:
    _, client = served
    await client.post("/modules/reminders/events", json=CREATE)
    facts = [one["fact"] for one in (await client.get(f"/modules/reminders/{SCHEDULE}/facts")).json()["items"]]
    assert [fact["type"] for fact in facts] == ["Scheduled", "Planned"]
    assert facts[1] == {
        "type": "Planned",
        "due_at": "2026-01-01T01:00:00Z",
        "at": "2026-01-01T00:00:00Z",
        "local": facts[1]["local"],
        "tz": facts[1]["tz"],
    }


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "an unknown zone": ({"trigger": {**EVERY, "tz": "Europe/Wien"}}, "tz"),
    "a cron text of four fields": ({"trigger": {**EVERY, "cron": "0 * * *"}}, "cron"),
    "a naive instant": ({"trigger": {"type": "At", "instant": "2026-01-01T09:00:00"}}, "instant"),
    "an empty owner": ({"owner": ""}, "owner"),
    "no key": ({"key": None}, "key"),
    "a naive end": ({"ends_at": "2026-01-01T09:00:00"}, "ends_at"),
    "a word too many": ({"generation": 3}, "generation"),
}


@pytest.mark.parametrize("kind", WRONG)
async def test_what_is_wrong_is_named_and_nothing_exists(served: tuple[Home, AsyncClient], kind: str) -> None:
    _, client = served
    change, field = WRONG[kind]
    answer = await client.post("/modules/reminders/events", json={**CREATE, **change})
    assert answer.status_code == 422, answer.text
    assert any(field in error["field"] for error in answer.json()["errors"]), answer.text
    assert (await client.get("/modules/reminders")).json()["items"] == []


async def test_the_document_says_which_modules_are_schedules(served: tuple[Home, AsyncClient]) -> None:
    _, client = served
    assert (await client.get("/openapi.json")).json()["x-onefold-modules"] == {"reminders": "timers"}


def test_a_ticks_text_is_its_owed_key() -> None:
    assert str(tick_id(at(hours=1) + timedelta(milliseconds=5))) == f"{SCHEDULE}/0/2026-01-01T01:00:00.005Z"
