"""host.links - approval links: a right in a text, made when it is sent, kept nowhere.

For: tokens bound to one run, one wait, one choice and the arguments that were shown.
Never: stored, logged, or found by looking one up: whoever can read the store cannot approve.
Was wrong once: a random token whose hash lay in the store. The bytes of what is owed are sealed once,
so the token itself lay in the owed row.

A token is base64url(JSON of what it is bound to) "." base64url(HMAC-SHA-256 over it). The first
secret signs, all of them are accepted, so a secret can be changed while links are out.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Sequence
from typing import Literal

import msgspec

Choice = Literal["approve", "reject"]
PURPOSE = b"onefold approval link 1\0"
LONGEST = 2_000  # characters of a token; real ones have about 300


class Bound(msgspec.Struct, frozen=True):
    """What a link is good for. `shown`: digest in hex of the arguments the person was shown."""

    program: str
    run: str
    call: str
    choice: Choice
    shown: str


_write = msgspec.json.Encoder()
_read = msgspec.json.Decoder(Bound)


def make(secret: bytes, bound: Bound) -> str:
    """The token of a link."""
    payload = _write.encode(bound)
    return f"{_text(payload)}.{_text(_mac(secret, payload))}"


def read(secrets: Sequence[bytes], token: str) -> Bound | None:
    """What the token is bound to, or None for one that no secret of ours made."""
    if len(token) > LONGEST or not token.isascii():
        return None
    payload_text, dot, mac_text = token.partition(".")
    try:
        payload, mac = _bytes(payload_text), _bytes(mac_text)
        bound = _read.decode(payload)
    except (binascii.Error, ValueError, msgspec.MsgspecError):
        return None
    if not dot or True not in [hmac.compare_digest(_mac(secret, payload), mac) for secret in secrets]:
        return None
    return bound


def _mac(secret: bytes, payload: bytes) -> bytes:
    return hmac.new(secret, PURPOSE + payload, hashlib.sha256).digest()


def _text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _bytes(told: str) -> bytes:
    raw = base64.b64decode(told + "=" * (-len(told) % 4), altchars=b"-_", validate=True)
    if _text(raw) != told:
        raise ValueError("not the one way to write it")
    return raw
