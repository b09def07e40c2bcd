"""A module whose facts, replies and owed bodies are as long as its events say, and its printer."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from onefold import Answer, Decision, Module, Owed, Step, port
from onefold.kernel.blob import BLOB, BLOB_PART, BLOB_REF
from onefold.kernel.tables import OWED, TURN
from onefold.node.blob_sweep import BlobSweep
from onefold.store.contract import Query, Row, Table
from onefold.testing import Stage


@dataclass(frozen=True)
class Written:
    text: str


@dataclass(frozen=True)
class Printed:
    pages: str


@dataclass(frozen=True)
class Write:
    """Lengths in bytes of the JSON that is kept: of the fact's text, the reply, and the owed body (0: none)."""

    id: str
    doc: str
    text: str = ""
    reply: int = 2
    owed: int = 0
    key: str = ""


@dataclass(frozen=True)
class Document:
    texts: tuple[str, ...] = ()
    printed: tuple[str, ...] = ()


def decide(state: Document, event: Write, now: datetime) -> Decision[Written | Printed, str]:
    owed = [Owed("print", event.key or event.id, "p" * (event.owed - 2))] if event.owed else []
    return Decision(facts=[Written(event.text)], owed=owed, reply="r" * (event.reply - 2))


def on_answer(state: Document, answer: Answer[str], now: datetime) -> Decision[Written | Printed, None]:
    return Decision(facts=[Printed(answer.body)])


def evolve(state: Document, fact: Written | Printed) -> Document:
    match fact:
        case Written(text):
            return replace(state, texts=(*state.texts, text))
        case Printed(pages):
            return replace(state, printed=(*state.printed, pages))


def view(state: Document) -> Document:
    return state


documents = Module(
    "document",
    initial=Document(),
    key=lambda event: event.doc,
    decide=decide,
    evolve=evolve,
    view=view,
    on_answer=on_answer,
)

FACT_BESIDES = len('[{"text":"","type":"Written"}]')


class Printer:
    """The other side: what it was sent, under which key, and how often it fails first."""

    def __init__(self, failing: int = 0) -> None:
        self.failing = failing
        self.sent: list[tuple[str, str]] = []

    def port(self) -> port.Port[str, str]:
        @port.dedupes("print")
        async def print_(step: Step, body: str) -> str:
            self.sent.append((step.key, body))
            if self.failing:
                self.failing -= 1
                raise TimeoutError("the printer is out of paper")
            return f"{len(body)} letters"

        return print_


async def rows(stage: Stage, table: Table, space: str = "main") -> list[Row]:
    (found,) = await (await stage.host.space(space)).look(Query(table))
    return list(found)


async def everything(stage: Stage, space: str = "main") -> list[list[Row]]:
    """All that a fold may write, for telling that nothing was."""
    return [await rows(stage, table, space) for table in (TURN, OWED, BLOB, BLOB_PART, BLOB_REF)]


async def dies_or_ends(stage: Stage, attempt: asyncio.Future[Any]) -> bool:
    """Until the attempt ended or met a kill; then the process is gone. Whether it had been answered."""
    for spin in range(20_000):
        if attempt.done() or stage.killed:
            break
        await asyncio.sleep(0 if spin < 2_000 else 0.001)
    await stage.let_die()
    done = attempt.done() and not attempt.cancelled() and attempt.exception() is None
    attempt.cancel()
    await asyncio.gather(attempt, return_exceptions=True)
    return done


def sweep_of(stage: Stage, space: str = "main") -> BlobSweep:
    """A sweep of one space that begins at its first blob, to be made round by round."""
    core = stage.host._core
    places = {place.name: place.look for place in core.places}
    elsewhere: Sequence[Any] = [look for name, look in places.items() if name != space] if space == "main" else []
    looks: dict[str, Any] = places
    return BlobSweep(core.blobs[space], looks[space], elsewhere)


def later(stage: Stage, ms: int) -> None:
    """Let time pass without anything of it happening."""
    stage.clock.step_to(stage.clock.now() + ms)


async def settled(stage: Stage) -> None:
    """Until nothing is decided, committed or sent; alarms may be due."""
    for _ in range(2_000):
        if stage.host._core.sender.idle and stage.host._core.node.idle:
            return
        await stage.turns(1)
