"""node.author - a turn that commits together with what its author's SQL wrote.

For: the database steps of a run: the author's function, then the fold of its result, one commit.
Never: runs beside another commit of the space; keeps one of the two without the other.
Was wrong once: the author's statement as one more body of the batch. It could end the transaction
of everybody else in it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from onefold.node.node import Decide, Node
from onefold.node.resident import ReadAnew, Turn
from onefold.store.contract import AuthorSpace, Body, Refused, Tx
from onefold.terms.errors import StoreUnavailable
from onefold.terms.ids import ActorId

T = TypeVar("T")


async def author(
    node: Node,
    at: ActorId,
    event: str,
    step: Callable[[Tx], T],
    decide_of: Callable[[T], Decide],
    *,
    budget_ms: int,
) -> Any:
    """Run `step` on the actor's space and fold `decide_of(result)` as `event`, exactly once.

    Returns the reply. Raises: whatever `step` raised, with nothing kept; StepFenced past the budget;
    StoreUnavailable, OutcomeUnknown.
    """
    resident = await node.activate(at)
    lane = await node.kind(at.kind).home.open()
    space: AuthorSpace = lane.space  # type: ignore[assignment]
    future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    flying = False

    def journal(result: T) -> Body[Any]:
        nonlocal flying
        if resident.gone:
            raise ReadAnew(space.name)
        turn = Turn(resident, event, b"", decide_of(result), future, probe=False)
        body = lane.authored(turn)
        flying = True
        return body

    resident.sending += 1  # it is not evicted meanwhile
    try:
        outcome = await space.author(step, journal, budget_ms=budget_ms)
    except BaseException:
        if flying:
            lane.landed(Refused(StoreUnavailable(space.name, "the database step was rolled back")))
            future.exception()
        raise
    finally:
        resident.sending -= 1
    if flying:
        lane.landed(outcome)
    elif isinstance(outcome, Refused):
        raise outcome.error
    return await future
