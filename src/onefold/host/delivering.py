"""host.delivering - the ports that exist by themselves: from one actor to another, and to a webhook.

For: `deliver.<module>`, whose body is an event of that module, under the principal of whoever owes it; and what a
module was given to post to.
Never: waits within a turn. The event is folded after the commit that owed it, and its reply is an answer like any.
Was wrong once: the event delivered under its own id, as if it had come through the door. Somebody outside sent that
id first, and the actor that was owed to never heard what the other had decided.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from onefold.host.core import Core
from onefold.host.deciding import decided
from onefold.kernel.module import Module
from onefold.kernel.port import DELIVER, Port, Posting, Standing, Step
from onefold.terms.codec import digest
from onefold.terms.ids import ActorId, check_text, delivered_id

AnyModule = Module[Any, Any, Any, Any, Any]


def standing_ports(
    core: Core, modules: Iterable[AnyModule], posts: Callable[[Posting], Port[Any, Any]] | None
) -> dict[str, Port[Any, Any]]:
    """The ports, by name."""
    ports: dict[str, Port[Any, Any]] = {}
    for module in modules:
        port = deliver_port(core, module)
        ports[port.name] = port
        for brought in module.brings:
            if isinstance(brought, Posting) and posts is not None:
                ports[brought.name] = posts(brought)
    return ports


def deliver_port(core: Core, module: AnyModule) -> Port[Any, Any]:
    """The port to the actors of one module. It dedupes on the key that leaves: one key is one turn there."""
    codecs = module.codecs

    async def deliver(step: Step, event: Any) -> Any:
        at = ActorId(module.name, step.principal, check_text(module.key(event), "key"))
        told = digest(codecs.event.slim(event))
        decide = core.node.kind(module.name).module.decide
        return await core.fold(at, delivered_id(step.key), told, event, partial(decided, decide, event))

    return Standing(DELIVER + module.name, deliver, codecs.event, codecs.reply)
