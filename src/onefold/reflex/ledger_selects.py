"""reflex.ledger_selects - selections over the ledger itself, for reflexes that watch reflexes.

For: `reflex.tasks` of a run, what a digest is made of; `reflex.overdue`, what should have happened and did not.
Never: a row of another principal; a question that costs more with a longer ledger.
Was wrong once: SQL over these tables. It was written for one store, and read another tenant's errors.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final

from onefold.reflex.overdue import overdue, questions
from onefold.reflex.seams import Query as Asked
from onefold.reflex.seams import Row
from onefold.reflex.selects import Selected
from onefold.reflex.tables import TASK
from onefold.reflex.words import RUN, number_of, task_id
from onefold.store.contract import Condition, Query, Space
from onefold.terms.codec import parse
from onefold.terms.errors import BadArguments, Fault
from onefold.terms.ids import principal_text
from onefold.terms.instant import down, text

PAGE: Final = 500
STATES: Final = ("queued", "ready", "claimed", "done", "failed", "parked")


def ledger_selects(space: Callable[[], Awaitable[Space]]) -> tuple[Selected[Row], ...]:
    """The selections, over the space that holds the ledger."""

    async def tasks(asked: Asked) -> AsyncIterator[Row]:
        """{"run", "state"?} to {"task", "unit", "state", "attempt", "output", "error"}, in the order of their making."""
        where = [("principal", "=", principal_text(asked.principal)), *_state(asked.params.get("state"))]
        run, after = _run(asked.params["run"]), -1
        while True:
            page = (*where, ("n", ">", after))
            (rows,) = await (await space()).look(
                Query(TASK, on=("run",), keys=[(run,)], where=page, order=("n",), limit=PAGE)
            )
            for row in rows:
                yield _task(dict(zip(TASK.at, row, strict=True)))
            if len(rows) < PAGE:
                return
            after = rows[-1][TASK.at["n"]]

    async def late(asked: Asked) -> AsyncIterator[Row]:
        """{"reflex", "what", "due", "late_seconds"}, the longest first."""
        now = down(asked.now)
        for one in overdue(await (await space()).look(*questions(now)), now, [asked.principal]):
            yield {"reflex": one.reflex, "what": one.what, "due": text(down(one.due)), "late_seconds": one.late_seconds}

    return (
        Selected("reflex.tasks", tasks, takes=frozenset({"run"}), may=frozenset({"state"})),
        Selected("reflex.overdue", late, takes=frozenset()),
    )


def _run(id: Any) -> int:
    n = number_of(id, RUN) if isinstance(id, str) else None
    if n is None:
        raise BadArguments(
            [Fault("with.run", "is no id of a run; a settled run's fact has it as runId")], nothing_was="selected"
        )
    return n


def _state(state: Any) -> list[Condition]:
    if state is None:
        return []
    if state not in STATES:
        raise BadArguments([Fault("with.state", f"must be one of {', '.join(STATES)}")], nothing_was="selected")
    return [("state", "=", state)]


def _task(cell: dict[str, Any]) -> Row:
    return {
        "task": task_id(cell["n"]),
        "unit": cell["unit"],
        "state": cell["state"],
        "attempt": cell["attempt"],
        "output": None if cell["output"] is None else parse(cell["output"], "an output"),
        "error": cell["error"],
    }
