"""Sends share a task for as long as none of them waits; one that waits holds up nobody."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pytest

from onefold import Decision, Module, Owed, Step, port
from onefold.kernel.port import Port
from onefold.testing import Stage, staged


@dataclass(frozen=True)
class Ask:
    id: str
    through: tuple[str, ...]


@dataclass(frozen=True)
class Asked:
    id: str


@dataclass(frozen=True)
class Said:
    text: str


def decide(state: int, event: Ask, now: datetime) -> Decision[Asked, int]:
    owed = [Owed(name, key=f"{event.id}-{at}", body=Said(f"{event.id}-{at}")) for at, name in enumerate(event.through)]
    return Decision(facts=[Asked(event.id)], owed=owed, reply=state + 1)


def evolve(state: int, fact: Asked) -> int:
    return state + 1


def view(state: int) -> int:
    return state


asker = Module("asker", initial=0, key=lambda event: "one", decide=decide, evolve=evolve, view=view)
Act = Callable[[str], Coroutine[Any, Any, None]]


def through(name: str, act: Act) -> Port[Said, None]:
    @port.dedupes(name)
    async def send(step: Step, body: Said) -> None:
        await act(body.text)

    return send


async def turns(stage: Stage, until: Callable[[], bool]) -> None:
    """Turns of the loop, until it holds; a few hundred are enough for anything that waits for nothing."""
    for _ in range(500):
        if until():
            return
        await asyncio.sleep(0)
    pytest.fail("nothing moves any more")


async def ask(stage: Stage, id: str, *ports: str) -> None:
    await stage.host.deliver(asker, Ask(id, ports), caller=stage.caller())


async def test_sends_that_wait_hold_up_no_other() -> None:
    gate, began, done = asyncio.Event(), list[str](), list[str]()

    async def waits(text: str) -> None:
        began.append(text)
        await gate.wait()
        done.append(text)

    async def goes(text: str) -> None:
        done.append(text)

    async with staged(asker, through("slow", waits), through("quick", goes)) as stage:
        await ask(stage, "a", "slow", "quick", "slow", "quick", "slow")
        await turns(stage, lambda: len(began) == 3 and done == ["a-1", "a-3"])
        await ask(stage, "b", "quick", "slow")  # what is known to wait gets a task of its own
        await turns(stage, lambda: "b-0" in done and "b-1" in began)
        gate.set()
        await stage.settle()
        assert sorted(done) == ["a-0", "a-1", "a-2", "a-3", "a-4", "b-0", "b-1"]


async def test_a_port_that_cancels_the_task_it_is_in_takes_no_other_row_with_it() -> None:
    cancelled, done = list[str](), list[str]()

    async def cancels(text: str) -> None:
        if not cancelled:
            cancelled.append(text)
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
        done.append(text)

    async def goes(text: str) -> None:
        done.append(text)

    async with staged(asker, through("rash", cancels), through("quick", goes)) as stage:
        await ask(stage, "a", "rash", "quick", "quick")
        await turns(stage, lambda: {"a-1", "a-2"} <= set(done))
        await stage.advance("10 seconds")
        assert {"a-0", "a-1", "a-2"} == set(done)


async def test_what_is_queued_when_the_app_closes_is_sent_after_the_next_start() -> None:
    done = list[str]()

    async def goes(text: str) -> None:
        done.append(text)

    async with staged(asker, through("quick", goes)) as stage:
        delivering = asyncio.ensure_future(ask(stage, "a", "quick", "quick"))
        await turns(stage, lambda: bool(stage.host._core.sender._queue) or len(done) == 2)
        await stage.restart()
        await delivering
        await stage.advance("10 seconds")
        assert set(done) == {"a-0", "a-1"}


async def test_a_try_that_fell_is_told_with_port_key_attempt_line_and_next_instant(
    caplog: pytest.LogCaptureFixture,
) -> None:
    @port.dedupes("down")
    async def down(step: Step, body: Said) -> None:
        raise ConnectionError("refused")

    async with staged(asker, down) as stage:
        await ask(stage, "1", "down")
        await turns(stage, lambda: bool(caplog.messages))
    [told] = [line for line in caplog.messages if "down" in line]
    assert "port down fell on 1-0 of asker one: " in told
    assert "ConnectionError: refused (test_sender.py:" in told
    assert "attempt 1 of 20, tried again at 2" in told
