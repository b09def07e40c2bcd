"""ports.webhook - a notice as a signed POST to an address.

For: targets `https://…` (and `http://` on this machine): a chat bridge, a pager, a ticket system.
Never: follows a redirect, which would hand the links to somebody else; repeats what came back.
Was wrong once: a receiver that answered 200 with a page of its own proxy counted as told. Any 2xx
still counts, but nothing else does, redirects included.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Callable, Sequence
from datetime import datetime
from urllib.parse import urlsplit

from onefold.actuators.words import Ask
from onefold.ports.notify import Links, Unsent, Way
from onefold.terms.codec import canonical, parse
from onefold.terms.instant import down
from onefold.terms.instant import text as written

TIMEOUT_S = 20.0
LOCAL = ("localhost", "127.0.0.1", "::1")


def signature(secrets: Sequence[bytes]) -> Callable[[str, int, bytes], str]:
    """The `webhook-signature` header of Standard Webhooks over (id, seconds, body), one signature a secret."""

    def sign(id: str, seconds: int, body: bytes) -> str:
        signed = f"{id}.{seconds}.".encode() + body
        macs = [base64.b64encode(hmac.new(secret, signed, hashlib.sha256).digest()).decode() for secret in secrets]
        return " ".join(f"v1,{mac}" for mac in macs)

    return sign


def webhook_way(sign: Callable[[str, int, bytes], str], now: Callable[[], int]) -> Way:
    """The way for https: and http:.

    sign(id, seconds since 1970, body) gives the `webhook-signature` header of Standard Webhooks;
    now() is the host's clock in milliseconds, since receivers refuse a signature that is minutes old.
    """

    async def send(target: str, ask: Ask, links: Links, message_id: str, at: datetime) -> None:
        import httpx2  # only who has such a target pays for the client

        parts = urlsplit(target)
        if parts.scheme != "https" and parts.hostname not in LOCAL:
            raise Unsent("is not told over plain http: the message holds links that decide. Use https")
        body, seconds = body_of(ask, links, at), now() // 1000
        headers = {
            "content-type": "application/json",
            "webhook-id": message_id,
            "webhook-timestamp": str(seconds),
            "webhook-signature": sign(message_id, seconds, body),
        }
        try:
            async with httpx2.AsyncClient(timeout=TIMEOUT_S, follow_redirects=False) as http:
                answer = await http.post(target, content=body, headers=headers)
        except httpx2.HTTPError as error:
            raise Unsent(f"was not told: {type(error).__name__}") from None
        if not answer.is_success:
            raise Unsent(f"was not told: the address answered {answer.status_code}")

    return send


def body_of(ask: Ask, links: Links, at: datetime) -> bytes:
    """The JSON that is posted and signed."""
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
