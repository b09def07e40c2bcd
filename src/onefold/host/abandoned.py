"""host.abandoned - tasks that a node had claimed whose life is over, let go by one that lives.

For: a fleet, in which nobody need wait for the lease of a claim once the claimer's own lease has ended.
Never: takes a task from a node that lives, however slow it is: the rows of the nodes decide, within the commit.
Was wrong once: claims that lapsed by themselves. A node that was killed in a chain of tasks held it up for a minute.
"""

from __future__ import annotations

from typing import Any

from onefold.fleet.ownership import NODE, over_in
from onefold.fleet.standing import Standing
from onefold.host.guards import of_all
from onefold.reflex.acting import committed
from onefold.reflex.parking import claimed, let_go, of_the_dead
from onefold.store.contract import Last, Query, Space
from onefold.terms.instant import Instant

NODES = Query(NODE)


async def freed(space: Space, standing: Standing, now: Instant) -> int:
    """How many there were. Raises: HostError, OwnedElsewhere for a node that owns nothing: another does it."""
    count = 0
    while True:
        nodes, tasks = await space.look(NODES, claimed(now))
        if not of_the_dead(tasks, over_in(nodes)):
            return count
        guard = of_all(standing, space.name)

        def body() -> Any:
            nodes, tasks = yield NODES, claimed(now)
            dead = of_the_dead(tasks, over_in(nodes))
            return Last(let_go(dead, now), len(dead))

        count += await committed(space, guard.around(body))
