"""serve.signed - one signed delivery of another system: checked, read, and named.

For: what `/hooks` and `/facts/{signal}` share: the raw body verified, then parsed, then its delivery's own id.
Never: parses before the signature holds; says more than 401 of what is not signed.
Was wrong once: a second door with a reading of its own. It took a form's body as text, and half of Slack was lost.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import parse_qsl

from onefold.serve import bodies
from onefold.serve.door import Host, Json
from onefold.serve.problems import BadRequest
from onefold.serve.routes import Answer, Ask, answer
from onefold.serve.webhooks import Signed, verify
from onefold.terms.errors import BadSignature, Fault, LoadRefused

_FORM: Final = "application/x-www-form-urlencoded"


@dataclass(frozen=True, slots=True)
class Delivery:
    """A delivery whose signature held. `setup`: the answer to a call that merely tries the door out; it is no delivery."""

    signed: Signed
    payload: Json
    raw: bytes
    setup: Answer | None = None


async def delivered(
    host: Host, ask: Ask, *, scheme: str, named: Sequence[str] | None, door: str, setting: str
) -> Delivery:
    """The delivery in a request to `door`. named: variables of its secrets; `setting`: where they would be named.

    Raises: BadSignature for whatever is not signed by one of them; BadRequest for a signed body that cannot be read.
    """
    raw = await bodies.read(ask.scope, ask.receive)
    if named is None:
        raise BadSignature(door, f"no secret is set; name one in onefold.toml under {setting}")
    secrets = _secrets(host, named, setting)
    if not secrets:
        raise BadSignature(door, f"the secret that {setting} names is not set on this server")
    signed = verify(scheme, ask.scope["headers"], raw, secrets, now_ms=host.clock.now(), door=door)
    payload = payload_of(raw, ask.header(b"content-type"))
    return Delivery(signed, payload, raw, setup_call(scheme, ask, payload))


def _secrets(host: Host, named: Sequence[str], setting: str) -> tuple[str, ...]:
    """Those that are set: while one of two is being changed, the other still opens the door."""
    found: list[str] = []
    for name in named:
        try:
            found.append(host.config.secret(name, setting))
        except LoadRefused:
            continue
    return tuple(found)


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


def delivery_id(told: Delivery, ask: Ask) -> str:
    """By what a repeat of this delivery is known: the sender's own id, else what was signed. Raises: BadRequest."""
    if told.signed.id is not None:
        return told.signed.id
    field = "id" if told.signed.scheme == "stripe" else "event_id"
    found: Any = told.payload.get(field) if isinstance(told.payload, dict) else None
    if isinstance(found, str) and found:
        return found
    if told.signed.scheme == "stripe":
        raise BadRequest([Fault("id", "is missing: a Stripe event has one, and a repeat is known by it")])
    stamp = (ask.header(b"x-slack-request-timestamp") or "").encode("latin-1")
    return hashlib.sha256(stamp + b"." + told.raw).hexdigest()
