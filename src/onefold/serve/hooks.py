"""serve.hooks - signed deliveries of other systems start runs.

For: POST /hooks/{name}: verify the raw body, find the delivery's own id, start, answer at once.
Never: waits (Slack gives 3 seconds); acts twice on one id; starts anything for a mere set-up call.
Was wrong once: the id remembered for as long as the signature is fresh. A sender that retried an
hour later paid out again. The id is the run's key, and keys are kept.
"""

from __future__ import annotations

import hashlib
from typing import Any, Final
from urllib.parse import parse_qsl

from onefold.serve import bodies
from onefold.serve.door import Caller, Host, Json
from onefold.serve.problems import BadRequest
from onefold.serve.routes import REPLAYED, Answer, Ask, Route, answer
from onefold.serve.webhooks import Signed, verify
from onefold.terms.errors import BadSignature, Fault, LoadRefused, UnknownName

_FORM: Final = "application/x-www-form-urlencoded"


class Hooks:
    """The door of actuators with `webhook=`."""

    def __init__(self, host: Host) -> None:
        self.host = host

    def routes(self) -> list[Route]:
        return [Route("POST", "/hooks/{name}", self.deliver, None)]

    async def deliver(self, ask: Ask) -> Answer:
        """202 with the receipt, first time or again. Raises: BadSignature for whatever is not signed."""
        name = ask.params["name"]
        actuator = self.host.catalog.actuators.get(name)
        hook = self.host.config.hooks.get(name)
        scheme = (actuator.webhook if actuator else None) or (hook.scheme if hook else None)
        if actuator is None or scheme is None:
            raise UnknownName("hook", name)
        raw = await bodies.read(ask.scope, ask.receive)
        door = f"/hooks/{name}"
        if hook is None:
            raise BadSignature(door, f"no secret is set; name one in onefold.toml under hooks.{name}")
        try:
            secret = self.host.config.secret(hook.secret_env)
        except LoadRefused:
            raise BadSignature(door, "its secret is not set on this server") from None
        signed = verify(scheme, ask.scope["headers"], raw, (secret,), now_ms=self.host.clock.now(), door=door)
        payload = payload_of(raw, ask.header(b"content-type"))
        if (setup := setup_call(scheme, ask, payload)) is not None:
            return setup
        caller = Caller(principal=hook.principal, rights=frozenset({"call"}), name=f"hook {name}")
        key = delivery_id(signed, payload, raw, ask)
        started = await self.host.start(name, payload, key=key, caller=caller)
        return answer(started.receipt.to_json(), 202, (REPLAYED,) if started.replayed else ())


def payload_of(raw: bytes, content_type: str | None) -> Json:
    """The delivery as JSON: a form (Slack's commands) becomes an object of its fields. Raises: MalformedJson."""
    if (content_type or "").partition(";")[0].strip().lower() != _FORM:
        return bodies.json_of(raw)
    try:
        pairs = parse_qsl(raw.decode("utf-8"), keep_blank_values=True, errors="strict", max_num_fields=1000)
    except ValueError:
        raise BadRequest([Fault("body", "is no form")]) from None
    fields = dict(pairs)
    if list(fields) == ["payload"]:  # Slack's buttons and GitHub's form mode put the JSON into one field
        return bodies.json_of(fields["payload"].encode("utf-8", "surrogatepass"))
    return fields


def setup_call(scheme: str, ask: Ask, payload: Json) -> Answer | None:
    """The calls by which Slack and GitHub try a door out: answered, never started."""
    if scheme == "slack" and isinstance(payload, dict) and payload.get("type") == "url_verification":
        challenge = payload.get("challenge")
        return answer({"challenge": challenge if isinstance(challenge, str) else ""})
    if scheme == "github" and ask.header(b"x-github-event") == "ping":
        return answer({"ok": True})
    return None


def delivery_id(signed: Signed, payload: Json, raw: bytes, ask: Ask) -> str:
    """By what a repeat of this delivery is known: the sender's own id, else what was signed."""
    if signed.id is not None:
        return signed.id
    field = "id" if signed.scheme == "stripe" else "event_id"
    found: Any = payload.get(field) if isinstance(payload, dict) else None
    if isinstance(found, str) and found:
        return found
    if signed.scheme == "stripe":
        raise BadRequest([Fault("id", "is missing: a Stripe event has one, and a repeat is known by it")])
    stamp = (ask.header(b"x-slack-request-timestamp") or "").encode("latin-1")
    return hashlib.sha256(stamp + b"." + raw).hexdigest()
