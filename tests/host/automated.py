"""What tests of reflexes inside an app share: a shop that publishes, an effect that remembers, a few definitions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from onefold.kernel.module import Module
from onefold.kernel.words import Decision
from onefold.reflex import Reflexes, Task, Write

Json = Any


@dataclass(frozen=True)
class Sell:
    id: str
    shop: str
    cents: int


@dataclass(frozen=True)
class Sold:
    cents: int


def decide(total: int, event: Sell, now: datetime) -> Decision[Sold, int]:
    return Decision(facts=[Sold(event.cents)], reply=total + event.cents)


def evolve(total: int, fact: Sold) -> int:
    return total + fact.cents


def view(total: int) -> int:
    return total


till: Module[int, Sell, Sold, int, int] = Module(
    "till",
    initial=0,
    key=lambda event: event.shop,
    decide=decide,
    evolve=evolve,
    view=view,
    publishes=[Sold],
)


@dataclass
class Effect:
    """Remembers what it was asked, and does what a test says."""

    name: str = "thank"
    writes: Sequence[str] | None = ()
    seen: list[tuple[str, str | None, int, Json]] = field(default_factory=list)
    does: Callable[[Task, Json], Json] = lambda task, input: {"thanked": input}

    async def run(self, task: Task, input: Json, /) -> Json:
        self.seen.append((task.key, task.principal, task.attempt, input))
        return self.does(task, input)

    def show(self, input: Json, /) -> str | None:
        return f"thank for {input}"


def reflex(id: str = "shop.thank", **parts: Json) -> dict[str, Json]:
    """A definition: for each sale, thank; unless `parts` say otherwise."""
    return {
        "id": id,
        "intent": "Thank for each sale.",
        "on": {"fact": {"entity": "till.Sold"}},
        "effect": {"name": "thank", "input": {"cents": {"$": "fact.row.cents"}}},
        "policy": {"retry": {"max": 1, "backoff": "fixed", "baseMs": 1000}},
        **parts,
    }


DAILY = {"clock": {"every": "day", "at": "09:00", "tz": "Europe/Vienna"}}
BY_HAND: dict[str, Json] = {
    "on": {"manual": {}},
    "effect": {"name": "thank", "input": {"said": {"$": "fact.payload"}}},
}
CLOCKED: dict[str, Json] = {"on": DAILY, "effect": {"name": "thank", "input": {"day": {"$": "occurrence.key"}}}}


def emitting(task: Task, input: Json) -> Json:
    """An effect that says what it did, so that another reflex may hear of it."""
    task.emit(Write("thanks", "insert", {"of": input}))
    return input


def automated(*definitions: dict[str, Json], effects: Sequence[Any] = ()) -> Reflexes:
    return Reflexes(list(definitions), effects=effects)
