"""testing.leavings - what is still in somebody's hands: when a test ends, and when an app does not come to rest.

For: one sentence for each thing that was left; what would put it right, where the test can.
Never: puts it right itself; tells of what only waits for its time.
Was wrong once: only what modules owe. A cell in custody and a letter in its box were left behind, and the test passed.
"""

from __future__ import annotations

from onefold.fleet.mailbox import due, waiting
from onefold.fleet.ring import Ring, holding
from onefold.host.core import MAIN
from onefold.host.parked import ParkedItem
from onefold.testing.stage import Stage

LETTERS = 100  # so many of those that are due are named


def unsettled(stage: Stage) -> list[str]:
    """Actors still in a turn, and what is due to be sent and is not on its way."""
    node, now, left = stage.host._core.node, stage.clock.now(), []
    for at, resident in node._residents.items():
        if not resident.idle:
            left.append(f"{at.kind} {at.key} in a turn")
        due = [row for row in resident.owed.values() if row.next_at is not None and row.next_at <= now]
        left += [f"{row.name} of {at.kind} {at.key} unsent through {row.port}" for row in due if not row.in_flight]
    return left


def in_rings(before: frozenset[Ring[object]]) -> list[str]:
    """Letters in rings that had none when the test began."""
    found = [ring for ring in holding() if ring not in before]
    left = [f"{ring.letters} letters of a ring, {ring.unsettled} of them taken and not settled" for ring in found]
    return [f"{each}: `await mail.settle()`, `mail.forward(to)`, or `ring.drop()`" for each in left]


async def in_boxes(stage: Stage) -> list[str]:
    """Letters to cells that are due and that nobody carries."""
    if not stage.host.catalog.cells:
        return []
    (rows,) = await (await stage.host.space(MAIN)).look(due(stage.clock.now(), LETTERS))
    letters = [waiting(row) for row in rows]
    return [f"the letter {each.event[2:]} to {each.to.kind} {each.to.key} due in its box" for each in letters]


async def parked(stage: Stage) -> list[str]:
    """Parked letters, and what is owed through a port that the test forgot to give to its app."""
    items = await stage.host.parked_list(caller=stage.caller())
    portless = {f"something of {item.program} unsent: {item.cause}" for item in items if item.kind == "port"}
    return sorted(portless) + [_letter(item) for item in items if item.kind == "letter"]


def _letter(item: ParkedItem) -> str:
    return f"a letter to {item.program} parked: {item.cause} (`app.parked.retry({item.id!r})`, or drop it)"


async def late(stage: Stage) -> list[str]:
    """What reflexes should have done by now and did not: a selection that fails, an effect that is not here."""
    host = stage.host
    if not host._reflexing.begun:
        return []
    late = await host.reflex_overdue(caller=stage.caller())
    idle = await host.reflex_idle(caller=stage.caller())
    return [f"{one.what} of the reflex {one.reflex} late" for one in late] + [
        f"{task.id} of the reflex {task.reflex} unclaimed: no effect of this app takes it" for task in idle
    ]
