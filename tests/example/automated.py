"""An app of automations for tests that kill it: one fact thanks five customers, their settled run is told of once.

What was done stands in the file `done`, one line for each act, written by the process that is killed.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

from pydantic import BaseModel

import onefold
from onefold.reflex import Query, Reflexes, Task, effect, select

CUSTOMERS = 5
DONE = Path("done")


class Customer(BaseModel):
    name: str


class Counted(BaseModel):
    done: int
    failed: int


def note(line: str) -> None:
    with DONE.open("a") as file:
        file.write(f"{line}\n")
        file.flush()
        os.fsync(file.fileno())


@select("customers")
async def customers(query: Query) -> AsyncIterator[dict[str, object]]:
    for number in range(CUSTOMERS):
        yield {"name": f"c{number}"}


@effect("mail.thank", writes=[])
async def thank(task: Task, customer: Customer) -> str:
    note(f"thank {task.key}")
    return f"thanked {customer.name}"


@effect("mail.digest", writes=[])
async def digest(task: Task, counted: Counted) -> None:
    note(f"digest {task.key} {counted.done} {counted.failed}")


app = onefold.App(
    Reflexes(
        [
            {
                "id": "shop.thank",
                "intent": "Thank every customer for a sale.",
                "on": {"fact": {"signal": "sale"}},
                "select": {"query": {"name": "customers"}, "mode": "each", "unitKey": "name"},
                "effect": {"name": "mail.thank", "input": {"name": {"$": "row.name"}}},
                "policy": {"retry": {"max": 5, "backoff": "fixed", "baseMs": 1000}},
            },
            {
                "id": "shop.digest",
                "intent": "Tell once that all were thanked.",
                "on": {"fact": {"run": "shop.thank"}},
                "effect": {
                    "name": "mail.digest",
                    "input": {"done": {"$": "fact.stats.done"}, "failed": {"$": "fact.stats.failed"}},
                },
            },
        ],
        effects=[thank, digest],
        selects=[customers],
    )
)
