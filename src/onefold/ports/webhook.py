"""ports.webhook - a notice, or what a module owes, as a signed POST to an address.

For: targets `https://…` (and `http://` on this machine): a chat bridge, a pager, a ticket system, an agent's inbox.
Never: follows a redirect, which would hand the links to somebody else; repeats what came back.
Was wrong once: a receiver that answered 200 with a page of its own proxy counted as told. Any 2xx
still counts, but nothing else does, redirects included.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import hmac
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from onefold.kernel.alert import Alert
from onefold.kernel.port import Port, Posting, Standing, Step
from onefold.ports.notify import Links, Memo, Notice, Unsent, Way
from onefold.terms.codec import canonical, parse
from onefold.terms.errors import PortFailed
from onefold.terms.instant import down
from onefold.terms.instant import text as written
from onefold.terms.typed import Codec, codec_of

TIMEOUT_S = 20.0  # for each part of an exchange
WHOLE_S = 60.0  # for all of it: who answers a byte at a time holds a connection no longer
WRITTEN = b"whsec_"
LOCAL = ("localhost", "127.0.0.1", "::1")


def signature(secrets: Sequence[bytes]) -> Callable[[str, int, bytes], str]:
    """The `webhook-signature` header of Standard Webhooks over (id, seconds, body), one signature a secret."""

    keys = [key_of(secret) for secret in secrets]

    def sign(id: str, seconds: int, body: bytes) -> str:
        signed = f"{id}.{seconds}.".encode() + body
        macs = [base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode() for key in keys]
        return " ".join(f"v1,{mac}" for mac in macs)

    return sign


def key_of(secret: bytes) -> bytes:
    """What is signed with: of `whsec_…`, as libraries write a secret, the bytes it stands for; any other is its own bytes."""
    if secret.startswith(WRITTEN):
        try:
            return base64.b64decode(secret.removeprefix(WRITTEN), validate=True) or secret
        except binascii.Error:
            return secret
    return secret


def webhook_way(sign: Callable[[str, int, bytes], str], now: Callable[[], int]) -> Way:
    """The way for https: and http:.

    sign(id, seconds since 1970, body) gives the `webhook-signature` header of Standard Webhooks;
    now() is the host's clock in milliseconds, since receivers refuse a signature that is minutes old.
    """

    async def send(target: str, ask: Notice, links: Links | None, message_id: str, at: datetime) -> None:
        if links is not None and plain_http(target):
            raise Unsent("is not told over plain http: the message holds links that decide. Use https")
        why = await _posted(target, message_id, body_of(ask, links, at), sign, now)
        if why is not None:
            raise Unsent(f"was not told: {why}")

    return send


def posting_port(sign: Callable[[str, int, bytes], str], now: Callable[[], int], posting: Posting) -> Port[Any, None]:
    """The port of a webhook that a module was given. It dedupes: a repeat has the same `webhook-id` and the same data.

    Raises: PortFailed, which names the host and not the path, when the address did not answer with 2xx.
    """
    codec: Codec[Any] = codec_of(posting.body)
    parts = urlsplit(posting.url)
    shown = f"{parts.scheme}://{parts.hostname}/…"

    async def post(step: Step, body: Any) -> None:
        told = {"type": posting.kind, "timestamp": written(down(step.now)), "data": codec.to_json(body)}
        why = await _posted(posting.url, message_id(step.key), canonical(told), sign, now)
        if why is not None:
            raise PortFailed(posting.name, step.key, f"{shown}: {why}")

    return Standing(posting.name, post, codec, codec_of(type(None)))


def plain_http(url: str) -> bool:
    """Whether anybody on the way could read what is posted there."""
    parts = urlsplit(url)
    return parts.scheme != "https" and parts.hostname not in LOCAL


def message_id(key: str) -> str:
    """The `webhook-id` of something owed: the same for every attempt; holds neither a key nor a principal."""
    return hashlib.sha256(key.encode()).hexdigest()[:40]


async def _posted(
    url: str, message_id: str, body: bytes, sign: Callable[[str, int, bytes], str], now: Callable[[], int]
) -> str | None:
    """Post signed JSON; why it was not taken, without a word of the other side, or None when it was."""
    import httpx2  # only who has such a target pays for the client

    seconds = now() // 1000
    headers = {
        "content-type": "application/json",
        "webhook-id": message_id,
        "webhook-timestamp": str(seconds),
        "webhook-signature": sign(message_id, seconds, body),
    }
    try:
        client = httpx2.AsyncClient(timeout=TIMEOUT_S, follow_redirects=False)
        async with (
            asyncio.timeout(WHOLE_S),
            client as http,
            http.stream("POST", url, content=body, headers=headers) as answer,
        ):
            pass  # what came back is not read
    except (httpx2.HTTPError, TimeoutError) as error:
        return type(error).__name__
    return None if answer.is_success else f"the address answered {answer.status_code}"


def body_of(ask: Notice, links: Links | None, at: datetime) -> bytes:
    """The JSON that is posted and signed."""
    if isinstance(ask, Memo):
        note = {"subject": ask.subject, "message": ask.message}
        return canonical({"type": "reflex.notice", "timestamp": written(down(at)), "data": note})
    if isinstance(ask, Alert):
        item = {"id": ask.item, "kind": ask.kind, "program": ask.program, "key": ask.key, "cause": ask.cause}
        told = {"type": "item.parked", "timestamp": written(down(at)), "data": {**item, "since": written(ask.since)}}
        return canonical(told)
    assert links is not None  # an Ask has them
    data = {
        "run_id": ask.run,
        "program": ask.program,
        "name": ask.name,
        "message": ask.message,
        "shown": parse(bytes(ask.shown)),
        "until": None if ask.until is None else written(ask.until),
        "approve_url": links.approve,
        "reject_url": links.reject,
    }
    told = {"type": "approval.requested", "timestamp": written(down(at)), "data": data}
    return canonical(told)
