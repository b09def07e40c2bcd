"""What templates, selections, effects and ways out promise: sound parts pass every scenario, each twin falls at its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from onefold.ports.egress import NotAllowed, origins_of, target_of
from onefold.reflex import Task, effect, select
from onefold.terms.errors import BadArguments, LoadRefused
from onefold.testing.broken.reflex_seams import BROKEN_PARTS, Parts

NOW = datetime(2026, 3, 1, tzinfo=UTC)
ORIGINS = origins_of(["https://api.example.com"], "egress")
Scenario = Callable[[Parts], Awaitable[None]]
due = select.sql("due", "SELECT id FROM due WHERE tenant = :principal", on="env:SHOP_DB")


@effect("act")
async def act(task: Task) -> int:
    return 1


@effect("act")
async def other(task: Task) -> int:
    return 2


class Tenants:
    """A database that gives back who it was asked for."""

    async def rows(self, sql: str, values: Mapping[str, Any], *, timeout_ms: int, named: str) -> AsyncIterator[Any]:
        yield {"tenant": values["principal"]}


async def who(parts: Parts, given: Mapping[str, Any], principal: str | None) -> list[Any]:
    selects = parts.selects([due], lambda on: Tenants())
    return [row["tenant"] async for row in selects({"name": "due", "with": given}, principal, NOW)]


async def a_slip_in_a_field_is_told(parts: Parts) -> None:
    with pytest.raises(BadArguments):
        parts.transform()({"amount": {"$": "row.amuont"}}, {"row": {"amount": 5}})
    assert parts.transform()({"amount": {"$": "row.amount"}}, {"row": {"amount": 5}}) == {"amount": 5}


async def a_slip_in_a_name_is_told_at_load(parts: Parts) -> None:
    assert len(parts.transform().findings({"$": "rwo.amount"}, "when", ("row",))) == 1
    assert parts.transform().findings({"$": "row.amount"}, "when", ("row",)) == []


async def what_a_template_gives_is_bounded(parts: Parts) -> None:
    env = {"rows": [{"text": "x" * 1_000}] * 200}
    with pytest.raises(BadArguments):
        parts.transform()({"$": "rows.map(r, rows)"}, env)
    assert parts.transform()({"$": "size(rows)"}, env) == 200


async def a_reflex_never_says_who_asks(parts: Parts) -> None:
    with pytest.raises(BadArguments):
        await who(parts, {"principal": "studio_7"}, "studio_42")


async def who_asks_is_whose_the_run_is(parts: Parts) -> None:
    assert await who(parts, {}, "studio_42") == ["studio_42"]
    assert await who(parts, {}, None) == [None]


async def a_name_stands_for_one_effect(parts: Parts) -> None:
    with pytest.raises(LoadRefused):
        parts.effects([act, other])
    assert list(parts.effects([act])) == ["act"]


async def no_address_of_a_name_is_private(parts: Parts) -> None:
    async def rebound(host: str, port: int) -> Sequence[str]:
        return ["93.184.216.34", "169.254.169.254"]

    async def sound(host: str, port: int) -> Sequence[str]:
        return ["93.184.216.34"]

    target = target_of("https://api.example.com/")
    with pytest.raises(NotAllowed):
        await parts.address(target, rebound)
    assert await parts.address(target, sound) == "93.184.216.34"


async def an_origin_is_exactly_one_of_the_list(parts: Parts) -> None:
    assert parts.allows("https://api.example.com/v1", ORIGINS)
    assert not parts.allows("https://api.example.com.evil.com/", ORIGINS)
    assert not parts.allows("https://api.example.com@evil.com/", ORIGINS)


CAUGHT: Mapping[str, Scenario] = {
    "MissingIsNull": a_slip_in_a_field_is_told,
    "ChecksWhenItRuns": a_slip_in_a_name_is_told_at_load,
    "GivesWithoutEnd": what_a_template_gives_is_bounded,
    "AsksAsWhomItIsTold": a_reflex_never_says_who_asks,
    "AsksForNobody": who_asks_is_whose_the_run_is,
    "LastEffectWins": a_name_stands_for_one_effect,
    "ChecksOneAddress": no_address_of_a_name_is_private,
    "AllowsByBeginning": an_origin_is_exactly_one_of_the_list,
}


def test_every_twin_has_its_scenario() -> None:
    assert CAUGHT.keys() == BROKEN_PARTS.keys()


@pytest.mark.parametrize("scenario", CAUGHT.values(), ids=lambda one: one.__name__)
async def test_sound_parts_keep_every_promise(scenario: Scenario) -> None:
    sound = Parts()
    await scenario(sound)
    assert type(sound) not in BROKEN_PARTS.values()


@pytest.mark.parametrize("twin", BROKEN_PARTS)
async def test_each_twin_is_caught_by_the_promise_it_breaks(twin: str) -> None:
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        await CAUGHT[twin](BROKEN_PARTS[twin]())
