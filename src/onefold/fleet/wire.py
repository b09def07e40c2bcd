"""fleet.wire - a turn on its way to the node that owns its actor, and what comes back. Pure.

For: one form for what is routed and what waits in a box: which actor, under which id, which content; a reply or a fault.
Never: names a function of anybody's: what is to be done is data, decided where the actor is.
Was wrong once: a route for each verb. A turn that became a letter was another thing than the one that was sent.
"""

from __future__ import annotations

import hashlib
import hmac
import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from onefold.terms import errors
from onefold.terms.codec import Json, canonical, parse
from onefold.terms.errors import BadArguments, Fault, HostError, OnefoldError
from onefold.terms.ids import ActorId, check_text, principal_of, principal_text
from onefold.terms.turns import OutOfTime, TurnFailed, failed

PATH: Final = "/fleet/turns"
LOOK: Final = "/fleet/look"
NUDGE: Final = "/fleet/nudge"
SIGNED: Final = "onefold-signature"
FRESH_S: Final = 300  # how old a signature may be: clocks of two machines differ, and each turn counts once anyway
AT_ONCE: Final = 64  # turns of one request
_LEFT_OUT: Final = ("faults", "findings")


@dataclass(frozen=True, slots=True)
class Sent:
    """One turn. event: its id as rows have it. digest: of its content. word: the event as its module writes it, or a
    program {"program": source}, or {"do": "evict"}.
    """

    at: ActorId
    event: str
    digest: bytes
    word: Json

    def to_json(self) -> dict[str, Json]:
        at = self.at
        told = {"kind": at.kind, "principal": principal_text(at.principal), "key": at.key, "event": self.event}
        return {**told, "digest": self.digest.hex(), "word": self.word}

    @property
    def is_program(self) -> bool:
        """Whether it is source for a cell, and no event of a module: those have a type."""
        return isinstance(self.word, dict) and "program" in self.word and "type" not in self.word

    @property
    def body(self) -> bytes:
        """What a box keeps of it: everything but the actor and the id, which its row has."""
        return canonical({"digest": self.digest.hex(), "word": self.word})


def sents_of(raw: bytes) -> list[Sent]:
    """The turns of one request. Raises: BadArguments."""
    told = parse(raw, "turns")
    if not isinstance(told, list) or not 0 < len(told) <= AT_ONCE:
        raise BadArguments([Fault("turns", f"is a list of 1 to {AT_ONCE} turns")])
    return [_sent(one) for one in told]


def _sent(told: Json) -> Sent:
    names = ("kind", "principal", "key", "event", "digest")
    if not isinstance(told, dict) or "word" not in told or not all(isinstance(told.get(name), str) for name in names):
        raise BadArguments([Fault("turn", "has kind, principal, key, event, digest and word")])
    at = ActorId(told["kind"], principal_of(told["principal"]), check_text(told["key"], "key"))
    return Sent(at, check_text(told["event"], "event"), _hex(told["digest"]), told["word"])


def boxed(at: ActorId, event: str, body: bytes) -> Sent:
    """A letter as the turn it is. One that holds a program alone is of a cell, and its digest is made where it is read."""
    told = parse(body, "a letter")
    if "word" not in told:
        return Sent(at, event, b"", told)
    return Sent(at, event, _hex(told["digest"]), told["word"])


def _hex(text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError:
        raise BadArguments([Fault("digest", "is not hex")]) from None


# --- what comes back -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Answer:
    """reply: as its codec writes it. replayed: it was given before."""

    reply: bytes
    replayed: bool = False


class Line(msgspec.Struct):
    """One line of an answer: what the turn at this place of the request came to."""

    n: int
    reply: msgspec.Raw = msgspec.Raw(b"")
    replayed: bool = False
    fault: msgspec.Raw = msgspec.Raw(b"")

    @property
    def told(self) -> Answer | OnefoldError:
        return Answer(bytes(self.reply), self.replayed) if self.reply else fault_of(bytes(self.fault))


def answered(n: int, answer: Answer) -> bytes:
    return b'{"n":%d,"replayed":%b,"reply":%b}\n' % (n, b"true" if answer.replayed else b"false", answer.reply)


def refused(n: int, fault: OnefoldError) -> bytes:
    """A fault, so that the other node can raise the same one."""
    return b'{"n":%d,"fault":%b}\n' % (n, told_of(fault))


line_of = msgspec.json.Decoder(Line).decode


def told_of(fault: OnefoldError) -> bytes:
    return canonical({"code": fault.code, "fields": _fields(fault), "detail": str(fault)})


def _fields(fault: OnefoldError) -> dict[str, Json]:
    if isinstance(fault, BadArguments):
        shown = [{"field": one.field, "problem": one.problem, "got": _plain(one.got)} for one in fault.faults]
        return {"faults": shown, "nothing_was": fault.nothing_was}
    if isinstance(fault, TurnFailed):
        return {"kind": fault.kind, **{name: _plain(value) for name, value in fault.fields.items()}}
    return {name: _plain(value) for name, value in fault.fields.items() if name not in _LEFT_OUT}


def _plain(value: object) -> Json:
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)


class ElsewhereFailed(HostError):
    """Another node met a fault that this one's code does not know."""

    def __init__(self, code: str, detail: str) -> None:
        self.code_there = code
        self.detail = detail
        super().__init__(f"The node that owns it met {code}: {detail} Send the same again.")


def fault_of(raw: bytes) -> OnefoldError:
    """The fault that another node told."""
    told = parse(raw, "an answer of another node")
    code, fields, detail = str(told.get("code")), told.get("fields") or {}, str(told.get("detail"))
    try:
        return _made(code, fields)
    except (KeyError, TypeError, ValueError, AttributeError):
        return ElsewhereFailed(code, detail)


def _made(code: str, fields: dict[str, Any]) -> OnefoldError:
    if code == BadArguments.code:
        faults = [Fault(one["field"], one["problem"], one["got"]) for one in fields["faults"]]
        return BadArguments(faults, nothing_was=fields["nothing_was"])
    if "kind" in fields and "ran" in fields and "of" in fields:
        return failed(fields)
    kinds: list[type[OnefoldError]] = [*_all(OnefoldError), OutOfTime]
    known = {kind.code: kind for kind in kinds}
    takes = inspect.signature(known[code]).parameters
    return known[code](**{name: value for name, value in fields.items() if name in takes})


def _all(kind: type[OnefoldError]) -> list[type[OnefoldError]]:
    below = [each for each in kind.__subclasses__() if each.__module__ in (errors.__name__, "onefold.terms.damage")]
    return [*below, *(one for each in below for one in _all(each))]


# --- who may ask ---------------------------------------------------------------------------------


def signature(secret: bytes, seconds: int, path: str, body: bytes) -> str:
    """What a node's request carries: the instant, and a MAC over instant, path and body with the shared secret."""
    return f"{seconds},{_mac(secret, seconds, path, body)}"


def is_signed(secrets: Sequence[bytes], header: str | None, now_s: int, path: str, body: bytes) -> bool:
    """Whether a node of this fleet sent it, and lately."""
    instant, _, mac = (header or "").partition(",")
    if not (instant.isascii() and instant.isdigit() and len(instant) < 15) or abs(now_s - int(instant)) > FRESH_S:
        return False
    return any(hmac.compare_digest(mac.encode(), _mac(s, int(instant), path, body).encode()) for s in secrets)


def _mac(secret: bytes, seconds: int, path: str, body: bytes) -> str:
    return hmac.new(secret, f"onefold fleet\0{seconds}\0{path}\0".encode() + body, hashlib.sha256).hexdigest()
