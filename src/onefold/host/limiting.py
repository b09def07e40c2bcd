"""host.limiting - the ports between runs and the limits of their actuators.

For: `run.limit`, by which a run asks for its place and gives it back, and `run.admit`, by which it is told to begin.
Never: decides who is next; waits within a turn.
Was wrong once: places in this process's memory. Two nodes let twice as many in, and a restart let in everybody.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from onefold.actuators.carried import Place
from onefold.actuators.declare import Actuator
from onefold.actuators.ending import LIMIT
from onefold.actuators.words import Admit, Begins, Cancel
from onefold.host.catalog import Catalog
from onefold.host.core import Core
from onefold.host.deciding import decided
from onefold.kernel.port import Port, Standing, Step
from onefold.terms.codec import canonical, digest
from onefold.terms.ids import ActorId, delivered_id
from onefold.terms.typed import codec_of

if TYPE_CHECKING:
    from onefold.actuators.limiting import LimitModule
    from onefold.actuators.limits import Limits

YES, NOTHING = codec_of(bool), codec_of(type(None))


def limits_module(catalog: Catalog) -> list[LimitModule]:
    """The module of all limits; none where there is no actuator.

    Was wrong once: none where no actuator has a limit. The last one was taken out of the code, and who waited for it waited
    for ever.
    """
    if not catalog.actuators:
        return []
    from onefold.actuators.limiting import limiting

    return [limiting(_Limits(catalog))]


class _Limits(Mapping[str, "Limits"]):
    """The limits of the actuators that have some, as they are now: a deployed file may bring others."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def __getitem__(self, name: str) -> Limits:
        limits = self._catalog.actuators[name].limits
        if limits is None:
            raise KeyError(name)
        return limits

    def __iter__(self) -> Iterator[str]:
        return (name for name, one in self._catalog.actuators.items() if one.limits is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def limit_ports(core: Core) -> dict[str, Port[Any, Any]]:
    """The ports, by name; none where there is no actuator. Both dedupe on the key that leaves."""
    if not core.catalog.actuators:
        return {}
    from onefold.actuators.limiting import ADMIT, KIND, Admission, Asked, Left, key_of

    async def limit(step: Step, place: Place) -> None:
        at = ActorId(KIND, None, key_of(place.program, place.group))
        event: Asked | Left
        if place.leaves:
            event = Left(place.id, place.program, place.group)
        else:
            event = Asked(place.id, place.program, place.group, place.run, place.principal, place.priority, place.since)
        decide = core.node.kind(KIND).module.decide
        told = digest(canonical([place.id, place.leaves]))
        await core.fold(at, delivered_id(step.key), told, event, partial(decided, decide, event))

    async def admit(step: Step, body: Admission) -> bool:
        at = ActorId(body.program, body.principal, body.run)
        told = digest(canonical([body.run, body.by]))
        event: Admit | Cancel = Admit(step.key, body.run)
        if body.by is not None:
            event = Cancel(step.key, body.run, f"{body.by} came meanwhile and stands for it")
        decide = core.catalog.actuator(body.program).module.decide
        reply = await core.fold(at, delivered_id(step.key), told, event, partial(decided, decide, event))
        return not isinstance(reply, Begins) or reply.yes

    return {
        LIMIT: Standing(LIMIT, limit, codec_of(Place), NOTHING),
        ADMIT: Standing(ADMIT, admit, codec_of(Admission), YES),
    }


def group_of(actuator: Actuator[Any, Any], input: Any) -> str | None:
    """Which limit a run with this input waits for; None: its actuator has none."""
    if actuator.limits is None:
        return None
    return actuator.sharing(input, actuator.limits.per) or ""
