"""Facts and processed ids are parts of a turn, and anybody's tool sees them as views."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import apsw

import onefold
from onefold import Decision, Module


@dataclass(frozen=True)
class Add:
    id: str
    by: int


@dataclass(frozen=True)
class Added:
    by: int


def decide(total: int, event: Add, now: datetime) -> Decision[Added, int]:
    return Decision(facts=[Added(event.by), Added(1)] if event.by else [], reply=total + event.by)


def evolve(total: int, fact: Added) -> int:
    return total + fact.by


def view(total: int) -> int:
    return total


sums = Module("sums", initial=0, key=lambda event: "all", decide=decide, evolve=evolve, view=view)


async def test_facts_and_events_are_views_of_the_turn(tmp_path: Path) -> None:
    async with onefold.App(sums, store=tmp_path) as app:
        await app.deliver(sums, Add("one", 4))
        await app.deliver(sums, Add("none", 0))
    db = apsw.Connection(str(tmp_path / "main.db"), flags=apsw.SQLITE_OPEN_READONLY)
    events = db.execute("select event, cast(reply as text) from _onefold_event order by n").fetchall()
    facts = db.execute("select seq, at, item from _onefold_fact order by n, at").fetchall()
    db.close()
    assert events == [("d/one", "4"), ("d/none", "5")]
    assert [(seq, at, json.loads(str(item))) for seq, at, item in facts] == [
        (2, 0, {"type": "Added", "by": 4}),
        (2, 1, {"type": "Added", "by": 1}),
    ]
