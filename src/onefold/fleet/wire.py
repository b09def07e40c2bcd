"""fleet.wire - a turn on its way to the node that owns its actor, and what comes back. Pure.

For: one form for what is routed and what waits in a box: which actor, under which id, which content; a reply or a fault.
Never: names a function of anybody's: what is to be done is data, decided where the actor is.
Was wrong once: a route for each verb. A turn that became a letter was another thing than the one that was sent. And a
fault made anew from its fields: what its constructor had not kept was gone from its sentence.
"""

from __future__ import annotations

import hashlib
import hmac
import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from onefold.terms.codec import Json, canonical, parse
from onefold.terms.errors import BadArguments, Fault, Finding, HostError, OnefoldError
from onefold.terms.faults import short
from onefold.terms.ids import ActorId, check_text, principal_of, principal_text

PATH: Final = "/fleet/turns"
LOOK: Final = "/fleet/look"
NUDGE: Final = "/fleet/nudge"
SIGNED: Final = "onefold-signature"
FRESH_S: Final = 300  # how old a signature may be: clocks of two machines differ, and each turn counts once anyway
AT_ONCE: Final = 64  # turns of one request
_ROOMS: Final = tuple(f"onefold.{room}." for room in ("terms", "machine", "kernel"))  # whose faults a turn may meet


@dataclass(frozen=True, slots=True)
class Sent:
    """One turn. event: its id as rows have it. digest: of its content. word: the event as its module writes it, or a
    program {"program": source}, or an act that is no turn, {"do": "evict"}.
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
    def is_act(self) -> bool:
        """Whether it asks for an act of the actor's owner that is no turn."""
        return isinstance(self.word, dict) and isinstance(self.word.get("do"), str) and "type" not in self.word

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


def is_routed(body: bytes) -> bool:
    """Whether a letter is a turn whose sender waits for its reply, and no program that was posted."""
    return "word" in parse(body, "a letter")


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
    fields = {name: _plain(value) for name, value in fault.fields.items()}
    return canonical({"code": fault.code, "fields": fields, "detail": _text(str(fault))})


def _plain(value: Any) -> Json:
    """What an error carries, as JSON; what is none, as a text of it."""
    if isinstance(value, tuple) and value and all(isinstance(one, Fault | Finding) for one in value):
        return [{name: _plain(getattr(one, name)) for name in type(one).__slots__} for one in value]
    try:
        canonical(value)
    except (OnefoldError, TypeError, ValueError, RecursionError):
        return _text(short(value))
    return value


def _text(said: str) -> str:
    """Text that can be written as such: an author's exception may hold halves of characters."""
    return said.encode("utf-8", "replace").decode()


class ElsewhereFailed(HostError):
    """Another node met a fault that this one's code does not know."""

    def __init__(self, code: str, detail: str) -> None:
        self.code_there = code
        self.detail = detail
        super().__init__(f"The node that owns it met {code}: {detail} Send the same again.")


def fault_of(raw: bytes) -> OnefoldError:
    """The fault that another node told. No constructor is called: what it was made of is not all that it carries.

    Raises: BadArguments for what is no fault at all.
    """
    told = parse(raw, "an answer of another node")
    if not isinstance(told, dict):
        raise BadArguments([Fault("fault", "has code, fields and detail")])
    code, fields, detail = str(told.get("code")), told.get("fields"), str(told.get("detail"))
    kind = _known().get(code)
    if kind is None or not isinstance(fields, dict) or not _needs(kind) <= fields.keys():
        return ElsewhereFailed(code, detail)
    try:
        values = {name: _carried(name, value) for name, value in fields.items()}
    except (KeyError, TypeError):
        return ElsewhereFailed(code, detail)
    fault = kind.__new__(kind, detail)
    vars(fault).update(values)
    return fault


def _carried(name: str, value: Any) -> Any:
    if name == "faults":
        return tuple(Fault(one["field"], one["problem"], one["got"]) for one in value)
    if name == "findings":
        return tuple(Finding(one["where"], one["problem"], one["level"]) for one in value)
    return value


def _needs(kind: type[OnefoldError]) -> set[str]:
    """The fields without which it cannot be one of these."""
    takes = inspect.signature(kind).parameters.values()
    return {each.name for each in takes if each.default is each.empty}


def _known() -> dict[str, type[OnefoldError]]:
    """The faults of this code by their codes."""
    found: dict[str, type[OnefoldError]] = {}
    kinds: list[type[OnefoldError]] = OnefoldError.__subclasses__()
    for kind in kinds:  # those that it leads to are put behind it
        kinds += kind.__subclasses__()
        if kind.__module__.startswith(_ROOMS):
            found.setdefault(kind.code, kind)  # a case that shares its code is told as what it is a case of
    return found


# --- who may ask ---------------------------------------------------------------------------------


def signature(secret: bytes, seconds: int, path: str, body: bytes) -> str:
    """What a node's request carries: the instant, and a MAC over instant, path and body with the shared secret."""
    return f"{seconds},{_mac(secret, seconds, path, body)}"


def is_signed(secrets: Sequence[bytes], header: str | None, now_s: int, path: str, body: bytes) -> bool:
    """Whether a node of this fleet sent it, and lately."""
    instant, _, mac = (header or "").partition(",")
    if not (instant.isascii() and instant.isdigit() and len(instant) < 15) or abs(now_s - int(instant)) > FRESH_S:
        return False
    told = mac.encode("utf-8", "surrogatepass")
    return any(hmac.compare_digest(told, _mac(s, int(instant), path, body).encode()) for s in secrets)


def _mac(secret: bytes, seconds: int, path: str, body: bytes) -> str:
    return hmac.new(secret, f"onefold fleet\0{seconds}\0{path}\0".encode() + body, hashlib.sha256).hexdigest()
