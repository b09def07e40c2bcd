"""serve.keeping - what is kept for a time only, over HTTP: a sweep, and a prune of one actor.

For: /sweep, and the prune below an actor.
Never: takes away what the body does not name and the settings do not say; a GET that removes.
Was wrong once: durations in seconds. A retention of 30 was taken for days, and it was half a minute.
"""

from __future__ import annotations

from typing import Any

from onefold.serve import bodies
from onefold.serve.door import Host
from onefold.serve.routes import Answer, Ask, Route, answer
from onefold.terms.duration import duration_ms
from onefold.terms.errors import BadArguments, Fault

OPERATE = frozenset({"operate"})
KEPT = ("runs", "replies", "reflex_runs", "intake")


class Keeping:
    """The routes of an operator who takes away what need not be kept."""

    def __init__(self, host: Host) -> None:
        self.host = host

    def routes(self) -> list[Route]:
        return [
            Route("POST", "/sweep", self.sweep, OPERATE),
            Route("POST", "/modules/{module}/{key}/prune", self.prune, OPERATE),
        ]

    async def sweep(self, ask: Ask) -> Answer:
        body = bodies.object_of(await bodies.read(ask.scope, ask.receive), (*KEPT, "dry_run"))
        dry_run = body.get("dry_run", False)
        if not isinstance(dry_run, bool):
            raise BadArguments([Fault("dry_run", "must be true or false", dry_run)], nothing_was="swept")
        kept = {name: _kept(body, name) for name in KEPT}
        swept = await self.host.sweep(**kept, dry_run=dry_run, caller=ask.caller)
        return answer({**{name: getattr(swept, name) for name in KEPT}, "dry_run": dry_run})

    async def prune(self, ask: Ask) -> Answer:
        bodies.object_of(await bodies.read(ask.scope, ask.receive), ())
        pruned = await self.host.prune_named(ask.params["module"], ask.params["key"], caller=ask.caller)
        return answer({"facts": pruned.facts, "begins": pruned.begins})


def _kept(body: dict[str, Any], field: str) -> int | None:
    """A duration of the body, in milliseconds. Raises: BadArguments, naming the field."""
    text = bodies.text_in(body, field)
    if text is None:
        return None
    try:
        return duration_ms(text)
    except BadArguments as fault:
        raise BadArguments([Fault(field, fault.faults[0].problem, text)], nothing_was="swept") from None
