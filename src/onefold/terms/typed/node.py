"""terms.typed.node - what one annotation becomes: how a value is written, read, refused, described.

For: the parts every kind of node shares. A node turns a value into its mirror, which msgspec writes,
and what msgspec read back into the value. Mirrors have the JSON form by themselves: structs with
sorted fields and a tag, lists, text, numbers.
Never: looks at bytes (codec does), or at annotations (build does).
Was wrong once: the dataclasses themselves given to msgspec. It writes no tags for them and takes
unknown fields without a word.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal, TypeAlias

import msgspec

from onefold.terms.codec import Json, below, shown
from onefold.terms.errors import BadArguments, Fault
from onefold.terms.typed.sayings import say

Turn: TypeAlias = Callable[[Any], Any]
Schema: TypeAlias = dict[str, Any]
Mode = Literal["validation", "serialization"]

PROGRAM_FAULTS: Final = (ValueError, TypeError, AssertionError, ArithmeticError, LookupError)
"""What a class raises from its own check of its fields. Anything else is a fault of the program and passes through."""

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


def as_json(mirror: Any) -> Json:
    """A mirror as plain JSON: what `msgspec.to_builtins` leaves a tuple is a list there, as it will come back."""
    return _decode(_encode(mirror))


class Unfit(Exception):
    """A value that does not fit its type, met while it is turned into its mirror."""

    def __init__(self, problem: str, got: object = None) -> None:
        self.problem = problem
        self.got = got
        self.path = ""
        super().__init__(problem)

    def inside(self, key: str | int) -> Unfit:
        """The same, met one level further in."""
        dot = "." if self.path and not self.path.startswith("[") else ""
        self.path = f"{below('', key)}{dot}{self.path}"
        return self

    @property
    def fault(self) -> Fault:
        return Fault(self.path, self.problem, shown(self.got))


class UnknownTag(Fault):
    """A fault whose cause is a "type" that names no class known here."""

    __slots__ = ()


class UnknownKind(BadArguments):
    """A value whose "type" names a class this code does not know: perhaps newer code wrote it.

    `kind` is that name. At a door it is a bad argument; an actor with such a fact is left alone.
    """

    code = "bad_arguments"

    def __init__(self, kind: str, faults: list[Fault], *, nothing_was: str = "started") -> None:
        super().__init__(faults, nothing_was=nothing_was)
        self.kind = kind


class Node:
    """One annotation. `wire` is the type msgspec reads; `must` ends the sentence "must be …".

    `asks` is what it reads from outside, where a lone class must name itself too.

    `out` makes a value its mirror and `into` what was read the value; None: they are the same.
    `slim` leaves fields equal to their defaults out of a mirror; None: there are none.
    `gives` are the classes of its values, `reads` the classes of what msgspec reads for it.
    """

    def __init__(self, wire: Any, must: str, *, gives: tuple[type, ...], reads: tuple[type, ...] = ()) -> None:
        self.wire = wire
        self.asks = wire
        self.must = must
        self.gives = gives
        self.reads = reads or gives
        self.out: Turn | None = None
        self.into: Turn | None = None
        self.slim: Turn | None = None
        self._decode: Turn | None = None

    def mirror(self, value: Any) -> Any:
        return self.out(value) if self.out else value

    def check(self, value: Any) -> None:
        """Raises: Unfit, or what a reader raises, when `value` would not come back as it is."""
        mirror = self.mirror(value)
        if msgspec.json.decode(_encode(mirror), type=self.wire) != mirror:
            raise Unfit(f"must be {self.must}", value)

    def read(self, json: Json) -> Any:
        """The value in `json`. Raises: msgspec.ValidationError, Unfit, or what a class of the program raises.

        By way of bytes: msgspec.convert makes the plan of a union anew each time, which takes three times as long.
        """
        if self.wire is Any:
            return self.into(json) if self.into else json
        return self.read_written(_encode(json))

    def read_written(self, raw: bytes) -> Any:
        """`read` of JSON that is bytes already."""
        if self._decode is None:
            self._decode = msgspec.json.Decoder(self.asks).decode
        found = self._decode(raw)
        return self.into(found) if self.into else found

    def explain(self, json: Json, path: str) -> list[Fault]:
        """All that is wrong with `json`, one fault a field; empty when it can be read."""
        try:
            self.read(json)
        except Unfit as unfit:
            return [Fault(path, unfit.problem, shown(json))]
        except PROGRAM_FAULTS as fault:
            return [Fault(path, say(fault, self.must), shown(json))]
        return []

    def schema(self, defs: dict[str, Schema], mode: Mode) -> Schema:
        """JSON Schema of the wire form; classes go into `defs`."""
        found = msgspec.json.schema(self.wire)
        return {key: item for key, item in found.items() if item not in (-(2**63), 2**63 - 1)}


def referred(schema: Any, defs: dict[str, Schema], used: dict[str, Schema]) -> dict[str, Schema]:
    """The definitions that a schema refers to, and those that they refer to."""
    if isinstance(schema, dict):
        name = str(schema.get("$ref", "")).removeprefix("#/$defs/")
        if name in defs and name not in used:
            used[name] = defs[name]
            referred(defs[name], defs, used)
    for item in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        referred(item, defs, used)
    return used
