"""serve.webhooks - four ways to sign a delivery: Standard Webhooks, Stripe, GitHub, Slack.

For: is this raw body signed by a secret we share, is it fresh, and by which id is it known.
Never: parses before the signature holds; compares text (a non-ASCII letter raises there); takes an
empty secret; lets any input raise something else than BadSignature.
Was wrong once: `abs(now - float(timestamp)) > 300`. NaN is never greater, so `nan` was always fresh.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from onefold.terms.errors import BadSignature

TOLERANCE_S: Final = 300  # both ways; what Standard Webhooks, Stripe and Slack agree on
_DIGITS: Final = re.compile(rb"[0-9]{1,12}")  # ASCII only: int() also takes full-width digits and 1_000
_ID: Final = re.compile(rb"[\x21-\x7e]{1,256}")
_PREFIX: Final = "whsec_"
_SIGNATURES: Final = 32  # of one header; a thousand would be a way to make us work

Headers = Iterable[tuple[bytes, bytes]]


@dataclass(frozen=True, slots=True)
class Signed:
    """A delivery whose signature held. `id` is None where only its body names it (Stripe, Slack)."""

    scheme: str
    id: str | None


def _one(headers: Headers, name: bytes) -> bytes:
    """The header of that name; b"" when it is missing or stands twice, which no sender does."""
    found = [value for known, value in headers if known == name]
    return found[0].strip() if len(found) == 1 else b""


def _fresh(stamp: bytes, now_s: int) -> bool:
    return _DIGITS.fullmatch(stamp) is not None and abs(now_s - int(stamp)) <= TOLERANCE_S


def _mac(secret: bytes, *parts: bytes) -> bytes:
    mac = hmac.new(secret, digestmod=hashlib.sha256)
    for part in parts:
        mac.update(part)
    return mac.digest()


def _any(given: Iterator[bytes], secrets: Sequence[bytes], signed: Sequence[bytes]) -> bool:
    """Whether one of the signatures is one of ours. Looks at every pair, so time tells nothing."""
    rights = [_mac(secret, *signed) for secret in secrets if secret]
    held = False
    for count, signature in enumerate(given):
        if count >= _SIGNATURES:
            break
        for right in rights:
            held |= hmac.compare_digest(right, signature)
    return held


def _hex(value: bytes) -> bytes:
    try:
        return binascii.unhexlify(value)
    except (binascii.Error, ValueError):
        return b""


def _base64(value: bytes) -> bytes:
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        return b""


def standard_key(secret: str) -> bytes:
    """The key in `whsec_<base64>`; another text is its own UTF-8. A broken `whsec_` is no key at all."""
    if secret.startswith(_PREFIX):
        return _base64(secret.removeprefix(_PREFIX).encode("utf-8", "replace"))
    return secret.encode("utf-8", "replace")


def _standard(headers: Headers, body: bytes, secrets: Sequence[str], now_s: int) -> str | None:
    id, stamp = _one(headers, b"webhook-id"), _one(headers, b"webhook-timestamp")
    if not id or not _fresh(stamp, now_s):
        raise _Refused("webhook-id is missing, or webhook-timestamp is not within 5 minutes")
    given = (
        _base64(value)
        for version, _, value in (one.partition(b",") for one in _one(headers, b"webhook-signature").split())
        if version == b"v1"
    )
    if not _any(given, [standard_key(secret) for secret in secrets], (id, b".", stamp, b".", body)):
        raise _Refused("no v1 signature of webhook-signature fits")
    return _named(id)


def _stripe(headers: Headers, body: bytes, secrets: Sequence[str], now_s: int) -> str | None:
    pairs = [pair.strip().partition(b"=") for pair in _one(headers, b"stripe-signature").split(b",")]
    stamps = [value for name, _, value in pairs if name == b"t"]
    if len(stamps) != 1 or not _fresh(stamps[0], now_s):
        raise _Refused("its time is not within 5 minutes")
    given = (_hex(value) for name, _, value in pairs if name == b"v1")
    if not _any(given, [secret.encode("utf-8", "replace") for secret in secrets], (stamps[0], b".", body)):
        raise _Refused("no v1 signature of Stripe-Signature fits")
    return None


def _github(headers: Headers, body: bytes, secrets: Sequence[str], now_s: int) -> str | None:
    del now_s  # GitHub signs no time; a repeat is known by its delivery id
    scheme, _, value = _one(headers, b"x-hub-signature-256").partition(b"=")
    given = iter((_hex(value),) if scheme == b"sha256" else ())
    if not _any(given, [secret.encode("utf-8", "replace") for secret in secrets], (body,)):
        raise _Refused("X-Hub-Signature-256 does not fit")
    id = _one(headers, b"x-github-delivery")
    if not id:
        raise _Refused("X-GitHub-Delivery is missing, so a repeat could not be told")
    return _named(id)


def _slack(headers: Headers, body: bytes, secrets: Sequence[str], now_s: int) -> str | None:
    stamp = _one(headers, b"x-slack-request-timestamp")
    if not _fresh(stamp, now_s):
        raise _Refused("X-Slack-Request-Timestamp is not within 5 minutes")
    version, _, value = _one(headers, b"x-slack-signature").partition(b"=")
    given = iter((_hex(value),) if version == b"v0" else ())
    if not _any(given, [secret.encode("utf-8", "replace") for secret in secrets], (b"v0:", stamp, b":", body)):
        raise _Refused("X-Slack-Signature does not fit")
    return None


def _named(id: bytes) -> str:
    if not _ID.fullmatch(id):
        raise _Refused("its id is not 1 to 256 printable ASCII characters")
    return id.decode("ascii")


class _Refused(Exception):
    """Why a signature is not taken. The words tell what to look at, never what would have been right."""


_Check = Callable[[Headers, bytes, Sequence[str], int], str | None]
SCHEMES: Final[Mapping[str, _Check]] = {
    "standard": _standard,
    "stripe": _stripe,
    "github": _github,
    "slack": _slack,
}


def verify(scheme: str, headers: Headers, body: bytes, secrets: Sequence[str], *, now_ms: int, door: str) -> Signed:
    """Whether the raw `body` is signed by one of `secrets`, and fresh. Raises: BadSignature, whatever came.

    headers: as ASGI has them, names in lower case. now_ms: milliseconds since 1970.
    """
    check = SCHEMES.get(scheme)
    if check is None:
        raise BadSignature(door, f"no scheme is called {scheme!r}")
    if not any(secrets):
        raise BadSignature(door, "this door has no secret, so nothing can be checked")
    try:
        return Signed(scheme, check(tuple(headers), body, secrets, now_ms // 1000))
    except _Refused as refused:
        raise BadSignature(door, str(refused)) from None


def sign_standard(id: str, timestamp_s: int, body: bytes, secret: str) -> dict[str, str]:
    """The three headers of Standard Webhooks for a delivery of ours."""
    stamp = str(timestamp_s)
    signature = base64.b64encode(_mac(standard_key(secret), id.encode(), b".", stamp.encode(), b".", body))
    return {"webhook-id": id, "webhook-timestamp": stamp, "webhook-signature": f"v1,{signature.decode()}"}
