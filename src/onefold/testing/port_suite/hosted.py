"""testing.port_suite.hosted - what becomes of a port in a real host that is killed around its sends.

For: a module that owes to the port, on the virtual clock, killed before or after the bytes left.
Never: a provider of its own; the port under test speaks to its own world.
Was wrong once: the promises judged by calls alone. A port declared as another kind passed all of them, and paid twice
in the first crash.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, get_type_hints

from onefold.kernel.module import Module
from onefold.kernel.port import Port
from onefold.kernel.words import Answer, Decision, Owed
from onefold.testing.app import AwaitedApp
from onefold.testing.opening import open as opened
from onefold.testing.port_suite.ground import PortUnderTest, expect, promise


@dataclass(frozen=True)
class Send:
    """Owe the body under test."""

    id: str


@dataclass(frozen=True)
class Heard:
    """The port answered."""

    key: str


def owing(port: Port[Any, Any], body: Any) -> Module[Any, Any, Any, Any, Any]:
    """A module that owes `body` to the port for each event, and counts the answers."""

    def decide(heard: int, event: Send, now: datetime) -> Decision[Heard, None]:
        return Decision(owed=[Owed(port.name, event.id, body)])

    def on_answer(heard: int, answer: Any, now: datetime) -> Decision[Heard, None]:
        return Decision(facts=[Heard(answer.key)])

    def evolve(heard: int, fact: Heard) -> int:
        return heard + 1

    def view(heard: int) -> int:
        return heard

    given: Any = get_type_hints(port.function)["return"]
    on_answer.__annotations__["answer"] = Answer[given]
    return Module(
        "owing", initial=0, key=lambda event: "one", decide=decide, evolve=evolve, view=view, on_answer=on_answer
    )


async def _killed(subject: PortUnderTest, point: str, after: Callable[[AwaitedApp, int, int], Any]) -> None:
    port, before = subject.make(), subject.effects()
    module = owing(port, subject.body)
    async with opened(module, port) as app:
        app.crash_at(point)
        await app.deliver(module, Send(subject.key()))
        await app.settle()
        await app.clock.advance("1 minute")
        await after(app, await app.read(module, "one"), subject.effects() - before)


async def _once(app: AwaitedApp, answers: int, effects: int) -> None:
    expect(effects, 1, "effects")
    expect(answers, 1, "answers heard")
    expect([item.cause for item in await app.parked.list()], [], "what was parked")


async def _uncertain(app: AwaitedApp, answers: int, effects: int) -> None:
    expect(effects, 1, "effects")
    expect([item.kind for item in await app.parked.list()], ["uncertain"], "what was parked")


@promise("killed after it was sent, it acts once and is answered once", "dedupes", "lookup")
async def check_after(subject: PortUnderTest) -> None:
    await _killed(subject, "after-send", _once)


@promise("killed before it was sent, it acts once and is answered once", "dedupes", "lookup")
async def check_before(subject: PortUnderTest) -> None:
    await _killed(subject, "before-send", _once)


@promise("killed after it was sent, it acts once and waits for a person", "neither")
async def check_neither(subject: PortUnderTest) -> None:
    await _killed(subject, "after-send", _uncertain)


CHECKS = (check_after, check_before, check_neither)
