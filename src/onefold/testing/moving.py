"""testing.moving - what does not come to rest, and who holds a cell.

For: the sentence of a test whose app goes on and on, or whose turn waits for a custody of its own.
Never: waits; ends what it names.
Was wrong once: "a step or port of the test never ends", without its name. It was a letter behind an open custody.
"""

from __future__ import annotations

from onefold.host.borrow import Custody
from onefold.host.host import Host
from onefold.terms.ids import ActorId


def restless(host: Host) -> str:
    """That the app goes on, and what of it does."""
    named = moving(host)
    return f"the app did not come to rest: {'; '.join(named) if named else 'a step or port of the test never ends'}"


def moving(host: Host) -> list[str]:
    """What does not come to rest."""
    left = []
    for at, resident in host._core.node._residents.items():
        if resident.pending:
            left.append(f"{at.kind} {at.key} in a turn")
        left += [f"{row.name} of {at.kind} {at.key} on its way" for row in resident.owed.values() if row.in_flight]
    if host.catalog.cells:
        left += [f"{at.kind} {at.key} in a program" for at, who in host.cells.held() if not isinstance(who, Custody)]
    left += [f"a letter to {at.kind} {at.key} on its way" for at in host._core.postman.working]
    return left + in_custody(host)


def in_custody(host: Host) -> list[str]:
    """Cells that somebody opened and has not let go of."""
    if not host.catalog.cells:
        return []
    held = [at for at, who in host.cells.held() if isinstance(who, Custody)]
    return [f"{at.kind} {at.key} in custody: leave its block, or `await room.hibernate()`" for at in held]


def held_up(host: Host, shape: str, id: str, principal: str | None) -> str | None:
    """Whose custody a turn of this cell waits for."""
    at = ActorId(shape, principal, id)
    holder = next((who for held, who in host.cells.held() if held == at), None)
    if not isinstance(holder, Custody):
        return None
    return (
        f"a turn of {shape} {id} waits for the end of its custody. What ends it: leaving the block of "
        f"`app.open({shape}, {id!r})`, or turns by what it gave, or `hibernate()`"
    )
