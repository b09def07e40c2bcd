"""Whatever falls in a commit, or in whoever listens to it, each caller of it is told, and the rows are the truth."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pytest

from onefold import Decision, Module
from onefold.node.lane import Lane
from onefold.store.contract import Refused
from onefold.terms.errors import Broken, StoreUnavailable
from onefold.testing import Stage, staged
from tests.guarantees.shop import Accepted, Deposit, PayOut, Provider, bank


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    async with staged(bank, Provider().dedupes()) as opened:
        yield opened


async def deliver(stage: Stage, *events: Any) -> list[Any]:
    attempts = (stage.host.deliver(bank, event, caller=stage.caller()) for event in events)
    return await asyncio.wait_for(asyncio.gather(*attempts, return_exceptions=True), 60)


async def test_a_fault_of_the_lane_itself_is_told_to_everybody_and_kept_by_nobody(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    await deliver(stage, Deposit("d1", "a", 10))
    keep, calls = Lane._keep, [0]

    def falls(self: Lane, *given: Any, **more: Any) -> None:
        keep(self, *given, **more)
        calls[0] += 1
        if calls[0] == 2:
            raise ZeroDivisionError("by nought")

    with monkeypatch.context() as patched:
        patched.setattr(Lane, "_keep", falls)
        told = await deliver(stage, *(Deposit(f"e{n}", "a", 1) for n in range(3)), Deposit("e", "b", 1))
    assert [type(one) for one in told] == [Broken] * 4
    assert "by nought" in str(told[0])
    assert (await stage.host.read(bank, "a", caller=stage.caller())).balance == 10
    assert await deliver(stage, Deposit("e0", "a", 1), Deposit("e", "b", 1)) == [Accepted(11), Accepted(1)]
    assert len(await stage.host.history(bank, "a", caller=stage.caller())) == 2


class Joined:
    """A space as far as a lane joins its commits: who waits to be asked."""

    def __init__(self, space: Any) -> None:
        self._space = space
        self.waiting: list[Lane] = []

    def join(self, lane: Lane) -> None:
        self.waiting.append(lane)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._space, name)


async def test_who_comes_while_a_question_fails_is_asked_for_once(stage: Stage) -> None:
    """Asked for twice, the second question took the turns of the first along, and nobody was ever told."""
    await deliver(stage, Deposit("d1", "a", 10))
    lane = stage.host._core.node._kinds["bank"].home.lane
    assert lane is not None
    space = lane.space
    joined = Joined(space)
    lane.space = joined  # type: ignore[assignment]
    try:
        first = asyncio.create_task(deliver(stage, Deposit("e1", "a", 1)))
        while not joined.waiting:  # noqa: ASYNC110 - the fold takes some turns of the loop to come here
            await asyncio.sleep(0)
        joined.waiting.pop().ask()
        second = asyncio.create_task(deliver(stage, Deposit("e2", "a", 1)))
        while not joined.waiting:  # noqa: ASYNC110 - as above
            await asyncio.sleep(0)
        lane.landed(Refused(StoreUnavailable("main", "by chance")))
        assert [type(one) for one in [*await first, *await second]] == [StoreUnavailable] * 2
        third = asyncio.create_task(deliver(stage, Deposit("e3", "a", 1)))
        for _ in range(20):
            await asyncio.sleep(0)
        assert joined.waiting == [lane]
    finally:
        lane.space = space
    space.join(lane)
    assert await third == [Accepted(11)]


async def test_a_listener_that_raises_keeps_nobody_from_being_answered_and_nothing_from_being_sent(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL, "onefold.node")

    def falls(resident: Any, folded: Any) -> None:
        raise ZeroDivisionError

    stage.host._core.heard.insert(0, falls)
    told = await deliver(stage, Deposit("d1", "a", 10), PayOut("p1", "a", 4), Deposit("d1", "b", 1))
    assert told == [Accepted(10), Accepted(6), Accepted(1)]
    await stage.advance("5s")
    assert (await stage.host.read(bank, "a", caller=stage.caller())).last == "ref 1"


@dataclass(frozen=True)
class Said:
    text: str

    @property
    def name(self) -> str:
        raise RuntimeError("it has none")


def decide(text: str, event: Deposit, now: datetime) -> Decision[Said, str]:
    return Decision(facts=[Said(event.note)], reply=event.note)


def evolve(text: str, fact: Said) -> str:
    return fact.text


def view(text: str) -> str:
    return text


def _watch(stage: Stage) -> AsyncGenerator[Any, None]:
    return stage.host.watch()  # type: ignore[return-value]


async def test_a_fact_with_code_of_its_own_is_shown_without_running_it() -> None:
    notes = Module("notes", initial="", key=lambda event: event.account, decide=decide, evolve=evolve, view=view)
    async with staged(notes) as stage, aclosing(_watch(stage)) as lines:
        first = asyncio.ensure_future(anext(lines))
        await asyncio.sleep(0)
        event = Deposit("1", "a", 0, note="hello")
        assert await asyncio.wait_for(stage.host.deliver(notes, event, caller=stage.caller()), 60) == "hello"
        assert (await asyncio.wait_for(first, 60)).text == "notes a Said"
