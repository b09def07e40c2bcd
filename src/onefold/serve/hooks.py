"""serve.hooks - signed deliveries of other systems start runs.

For: POST /hooks/{name}: verify the raw body, find the delivery's own id, start, answer at once.
Never: waits (Slack gives 3 seconds); acts twice on one id; starts anything for a mere set-up call.
Was wrong once: the id remembered for as long as the signature is fresh. A sender that retried an
hour later paid out again. The id is the run's key, and keys are kept.
"""

from __future__ import annotations

from onefold.serve.door import Caller, Host
from onefold.serve.routes import REPLAYED, Answer, Ask, Route, answer
from onefold.serve.signed import delivered, delivery_id
from onefold.terms.errors import UnknownName


class Hooks:
    """The door of actuators with `webhook=`."""

    def __init__(self, host: Host) -> None:
        self.host = host

    def routes(self) -> list[Route]:
        return [Route("POST", "/hooks/{name}", self.deliver, None)]

    async def deliver(self, ask: Ask) -> Answer:
        """202 with the receipt, first time or again. Raises: UnknownName, BadSignature for whatever is not signed."""
        name = ask.params["name"]
        actuator = self.host.catalog.actuators.get(name)
        hook = self.host.config.hooks.get(name)
        scheme = (actuator.webhook if actuator else None) or (hook.scheme if hook else None)
        if actuator is None or scheme is None:
            raise UnknownName("hook", name)
        named = None if hook is None else (hook.secret_env,)
        door, setting = f"/hooks/{name}", f"hooks.{name}"
        told = await delivered(self.host, ask, scheme=scheme, named=named, door=door, setting=setting)
        if told.setup is not None:
            return told.setup
        principal = None if hook is None else hook.principal
        caller = Caller(principal=principal, rights=frozenset({"call"}), name=f"hook {name}")
        started = await self.host.start(name, told.payload, key=delivery_id(told, ask), caller=caller)
        return answer(started.receipt.to_json(), 202, (REPLAYED,) if started.replayed else ())
