"""One flow through every stage, for tests that cut it anywhere: billing, its digest, a chain, a serial queue.

For: `REFLEXES`, `send`, and `check`, which says of any ledger at rest whether every promise was kept.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from typing import Any

from onefold.reflex.engine import Engine
from onefold.reflex.seams import Task
from onefold.reflex.words import OnRun, OnSignal, OnWrite, Selection, Signal, Write
from onefold.terms import codec
from tests.reflex.ground import Act, At, reflex

MEMBERS = [{"id": "ada"}, {"id": "ben"}, {"id": "cem"}]
DUE = Selection({"from": "due"}, "each", "id")
NONE = Selection({"from": "none"}, "each", "id")
REFLEXES = [
    reflex("charge", {"every": "day", "at": "03:00", "tz": "Europe/Vienna"}, effect="charge", select=DUE),
    reflex("digest", OnRun("charge"), effect="digest", when={"$": "fact.stats.total"}),
    reflex("receipt", OnWrite("charges"), effect="receipt", order="serial"),
    reflex("idle", OnSignal("ping"), effect="idle", select=NONE),
    reflex("echo", OnSignal("ping"), effect="echo"),
]


def stub(at: At) -> dict[str, list[Any]]:
    """Effects for it, and what each was called with, in order: the keys of tasks."""
    calls: dict[str, list[Any]] = {name: [] for name in ("charge", "digest", "receipt", "idle", "echo")}

    def noted(name: str, *emits: Any) -> Any:
        def does(task: Task, input: Any) -> Any:
            calls[name].append(task.key)
            for fact in emits:
                task.emit(fact)
            return {"by": name}

        return does

    charged = Write("charges", "insert", {"paid": True})
    at.acts = {name: Act(name, does=noted(name)) for name in calls}
    at.acts["charge"].does = noted("charge", charged)
    at.rows.tables |= {"due": list(MEMBERS), "none": []}
    return calls


async def send(engine: Engine, now: datetime) -> None:
    """What somebody outside sends, and sends again until it was answered."""
    await engine.ingest(Signal("ping", {"n": 1}, dedupe_key="ping-1"), now=now)
    await engine.ingest(Signal("ping", {"n": 2}, dedupe_key="ping-2", not_before=now + timedelta(hours=1)), now=now)


async def check(at: At, nights: int = 1) -> None:
    """A ledger at rest that kept every promise."""
    runs, tasks, facts = await at.runs(), await at.tasks(), await at.facts()
    assert [fact["note"] for fact in facts if fact["state"] != "delivered"] == []
    assert {run["state"] for run in runs} <= {"settled"}
    born = Counter(run["reflex"] for run in runs)
    members = len(MEMBERS)
    assert born == {
        "charge": nights, "digest": nights, "receipt": nights * members, "idle": 2, "echo": 2,
    }  # fmt: skip
    assert max(Counter((run["reflex"], run["cause"]) for run in runs).values()) == 1
    for run in runs:
        own = [task for task in tasks if task["run"] == run["n"]]
        units = members if run["reflex"] == "charge" else 0 if run["reflex"] == "idle" else 1
        assert (run["total"], run["done"], run["failed"], len(own)) == (units, units, 0, units)
        assert len({task["unit"] for task in own}) == units
        assert (run["open"], run["due_at"], run["drained"]) == (None, None, 1)
    assert {task["state"] for task in tasks} == {"done"}
    assert [task for task in tasks if task["baton"] or task["queue"] or task["ready_at"]] == []
    told = Counter(fact["cause"] for fact in facts if fact["kind"] == "run")
    assert told == {f"run:{run['n']}": 1 for run in runs}
    emitted = Counter(fact["cause"] for fact in facts if fact["kind"] == "write")
    assert emitted == {f"task:{task['n']}": 1 for task in tasks if task["effect"] == "charge"}
    for fact in facts:
        if fact["kind"] == "run":
            run = next(one for one in runs if fact["cause"] == f"run:{one['n']}")
            stats = {"total": run["total"], "done": run["total"], "failed": 0}
            assert codec.parse(fact["body"])["stats"] == stats
