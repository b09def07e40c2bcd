"""terms.ids - names of things that must never be mistaken for one another.

For: principals, actors, event ids and their sources, keys that leave, names, run ids.
Never: makes an id from time or chance by itself; run ids without a key get their bytes handed in.
Was wrong once: ids joined with a colon. `a:b` with `c` met `a` with `b:c`, and one tenant's refund
was taken for the other's.

A branded id is made here and only here, from text that has been checked: no empty one, no NUL
(Postgres refuses it), no lone surrogate (nothing can store it), no more than MAX_ID_BYTES.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Collection
from typing import Final, NamedTuple, NewType, TypeAlias

from onefold.terms.errors import BadArguments, Fault, Finding, LoadRefused
from onefold.terms.limits import MAX_ID_BYTES, MAX_KEY_BYTES

Principal: TypeAlias = "str | None"
"""Who something runs as. Opaque; equality is the whole rule; None equals only itself."""

PrincipalText = NewType("PrincipalText", str)
EventId = NewType("EventId", str)
LeavingKey = NewType("LeavingKey", str)
RunId = NewType("RunId", str)

NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,31}", re.ASCII)
DOTTED: Final = re.compile(r"[a-z][a-z0-9_-]{0,31}", re.ASCII)  # one word between the dots of a reflex's name
RESERVED: Final[dict[str, frozenset[str]]] = {
    "actuator": frozenset({"get_run", "list_runs", "cancel_run", "send_event"}),
    "reflex": frozenset({"graph", "runs", "tasks", "explain"}),
}
HEX_64: Final = re.compile(r"[0-9a-f]{64}", re.ASCII)


class ActorId(NamedTuple):
    """One writer, one history, one alarm. All that is keyed by it is scoped by its principal."""

    kind: str
    principal: Principal
    key: str


SLOTS: Final = 1_024
"""Parts into which a store's actors fall, and which nodes of a fleet own. Enough for a hundred nodes."""


def slot_of(at: ActorId, slots: int) -> int:
    """The slot of an actor among so many: the same on every node, in every release."""
    told = "\0".join((at.kind, principal_text(at.principal), at.key)).encode()
    return int.from_bytes(hashlib.blake2b(told, digest_size=8).digest(), "big") % slots


def check_text(value: object, field: str = "id", *, limit: int = MAX_ID_BYTES) -> str:
    """`value` as text that every store can hold and every index can find. Raises: BadArguments."""
    if not isinstance(value, str):
        raise BadArguments([Fault(field, "must be text", value)])
    if not value:
        raise BadArguments([Fault(field, "must not be empty")])
    if value.isascii():
        size = len(value)
    else:
        try:
            size = len(value.encode())
        except UnicodeEncodeError:
            raise BadArguments([Fault(field, "holds half of a surrogate pair", ascii(value))]) from None
    if size > limit:
        raise BadArguments([Fault(field, f"has {size} bytes; at most {limit} are taken")])
    if "\0" in value:
        raise BadArguments([Fault(field, "holds a NUL character", ascii(value))])
    return value


# --- principals --------------------------------------------------------------------------------


def principal_text(p: Principal) -> PrincipalText:
    """What a row holds: "-" for None, "=" and the text otherwise. Raises: BadArguments."""
    return PrincipalText("-" if p is None else "=" + check_text(p, "principal"))


def principal_of(text: str) -> Principal:
    """The way back from a row. Raises: BadArguments for text that no principal gives."""
    if text == "-":
        return None
    if len(text) < 2 or text[0] != "=":
        raise BadArguments([Fault("principal", "is not the text of a principal", text)])
    return text[1:]


# --- event ids: (source, id) -------------------------------------------------------------------


def door_id(id: str) -> EventId:
    """An event that somebody sent. The only source whose ids others choose."""
    return EventId("d/" + check_text(id))


def owed_id(key: str) -> EventId:
    """The answer to an owed row, by its key."""
    return EventId("o/" + check_text(key, "key"))


def delivered_id(key: str) -> EventId:
    """What one actor owed another, by the key under which it left: once for each."""
    return EventId(f"m/{check_text(key, 'key')}/owed")


def step_id(id: str) -> EventId:
    """The result of a step."""
    return EventId("s/" + check_text(id, "step"))


# --- joining -----------------------------------------------------------------------------------


def join(*parts: str | None) -> str:
    """One text of many parts, so that no two lists ever give the same.

    Parts are joined by "/"; a slash within one is "~1", a tilde "~0", None is "~" alone. Over
    MAX_KEY_BYTES it is its SHA-256 in hex; a joined text that already looks like one is hashed too,
    so nobody can name another's hash. Raises: BadArguments for no parts, NUL, lone surrogates.
    """
    if not parts:
        raise BadArguments([Fault("parts", "must not be empty")])
    try:
        joined = "/".join(["~" if part is None else _escaped(part) for part in parts])
    except (TypeError, AttributeError):
        raise BadArguments([Fault("parts", "must be text or None", repr(parts))]) from None
    if "\0" in joined or not joined.isascii():
        for part in filter(None, parts):
            check_text(part, "part", limit=len(joined) * 4)
    size = len(joined) if joined.isascii() else len(joined.encode())
    if size > MAX_KEY_BYTES or (size == 64 and HEX_64.fullmatch(joined)):
        return hashlib.sha256(joined.encode()).hexdigest()
    return joined


def _escaped(part: str) -> str:
    return part.replace("~", "~0").replace("/", "~1") if "/" in part or "~" in part else part


def leaving_key(actor: ActorId, owed: str) -> LeavingKey:
    """The key under which something owed leaves: its principal, kind, actor and owed key in one."""
    return LeavingKey(join(actor.principal, actor.kind, actor.key, check_text(owed, "key")))


# --- runs --------------------------------------------------------------------------------------


def run_id(principal: Principal, actuator: str, key: str) -> RunId:
    """The id of the run that a key names: asked for twice, it is one run. Raises: BadArguments for an empty key."""
    told = "/".join(
        (_escaped(principal_text(principal)), _escaped(check_text(actuator)), _escaped(check_text(key, "key")))
    )
    return _run(actuator, b"key\0" + told.encode())


def run_id_random(actuator: str, chance: bytes) -> RunId:
    """The id of a run without a key, from at least 16 bytes of chance that host hands in. Raises: BadArguments."""
    if len(chance) < 16:
        raise BadArguments([Fault("chance", "needs at least 16 bytes", len(chance))])
    return _run(actuator, b"chance\0" + chance)


def run_tag(actuator: str) -> str:
    """Four letters that every run id of this actuator begins with, so that a run is looked for in few spaces."""
    return base64.b32encode(hashlib.sha256(b"actuator\0" + actuator.encode()).digest()[:5]).decode().lower()[:4]


def _run(actuator: str, told: bytes) -> RunId:
    return RunId(f"run_{run_tag(actuator)}{base64.b32encode(hashlib.sha256(told).digest()[:20]).decode().lower()}")


# --- names -------------------------------------------------------------------------------------


def check_name(name: object, kind: str, *, dots: bool = False) -> str:
    """A name of an actuator, module or port; with `dots`, of a reflex, effect or select. Raises: LoadRefused."""
    where = f"{kind} {name!r}"
    if not isinstance(name, str):
        raise LoadRefused([Finding(where, "a name is text")])
    if dots and (len(name) > MAX_KEY_BYTES or not all(DOTTED.fullmatch(word) for word in name.split("."))):
        told = "a name is words joined by dots, each of lower-case letters, digits, _ and -"
        raise LoadRefused([Finding(where, f"{told}, beginning with a letter, at most 32 long")])
    if not dots and not NAME.fullmatch(name):
        told = "a name has lower-case letters, digits and _, begins with a letter"
        raise LoadRefused([Finding(where, f"{told} and is at most 32 long")])
    if name in RESERVED.get(kind, ()):
        raise LoadRefused([Finding(where, "this name is Onefold's own; choose another")])
    return name


def nearest(word: str, words: Collection[str]) -> str | None:
    """The word that was perhaps meant, or None when nothing is close. No name is very long: such a one is no slip."""
    if not words or len(word) > MAX_KEY_BYTES:
        return None
    from difflib import get_close_matches  # only ever needed for a refusal

    lowered = {w.lower(): w for w in words}
    close = get_close_matches(word.lower(), lowered, n=1, cutoff=0.6)
    return lowered[close[0]] if close else None
