"""terms.typed.codecs - the codec of one annotation: values to canonical bytes and back.

For: the verbs every room uses, on the hot path of each fold.
Never: trusts that a value has the types its class declares: dataclasses do not look. What was
written is read again, in the same call, before anybody may store it.
Was wrong once: writing without reading. A fact with a text where a number belongs was stored, and
its actor never woke again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Generic, NoReturn, TypeVar, cast, overload

import msgspec

from onefold.terms import codec
from onefold.terms.codec import Json, below, shown, text_problem
from onefold.terms.errors import BadArguments, Fault
from onefold.terms.typed.build import Builder
from onefold.terms.typed.declared import told
from onefold.terms.typed.node import PROGRAM_FAULTS, Mode, Node, Schema, Unfit, UnknownKind, UnknownTag, referred
from onefold.terms.typed.sayings import say

T = TypeVar("T")

WRITING: Final = (Unfit, BadArguments, *PROGRAM_FAULTS)
READING: Final = (Unfit, *PROGRAM_FAULTS)

_write = msgspec.json.Encoder(order="sorted").encode
_read_json = msgspec.json.Decoder().decode


class Codec(Generic[T]):
    """Writes and reads values of one type. Made by `codec_of`, once for each annotation."""

    def __init__(self, annotation: Any, node: Node) -> None:
        self.annotation = annotation
        self.node = node
        self._out = node.out
        self._into = node.into
        self._slim = node.slim
        self._read = msgspec.json.Decoder(node.wire).decode
        self._read_many = msgspec.json.Decoder(list[node.wire]).decode  # type: ignore[name-defined]

    # --- writing ---------------------------------------------------------------------------------

    def encode(self, value: T) -> bytes:
        """The canonical bytes of `value`; `decode` reads them. Raises: BadArguments when it does not fit its type."""
        try:
            mirror = self._out(value) if self._out else value
            raw = _write(mirror)
            if self._read(raw) == mirror and (raw.find(b"\\") < 0 or b"u0000" not in raw):
                return raw
        except WRITING as fault:
            self._refuse_value(value, fault)
        self._refuse_written(mirror, raw)

    def seal(self, value: T, *, slim: bool = False) -> tuple[bytes, T]:
        """The bytes, and the value as it comes back from them: what replay will see, the first time too."""
        try:
            mirror = self._out(value) if self._out else value
            raw = _write(mirror)
            found = self._read(raw)
            if found == mirror and (raw.find(b"\\") < 0 or b"u0000" not in raw):
                if slim and self._slim:
                    raw = _write(self._slim(mirror))
                return raw, self._into(found) if self._into else found
        except WRITING as fault:
            self._refuse_value(value, fault)
        self._refuse_written(mirror, raw)

    def round_trip(self, value: T) -> T:
        """The value as it comes back from its JSON."""
        return self.seal(value)[1]

    def slim(self, value: T) -> bytes:
        """Canonical bytes without the fields that equal their default: what an object in process is digested by.

        A default added by new code then changes no digest. What arrives as JSON is digested as it came,
        before this codec sees it, so a sender that spells a default out has another digest than one that does not.
        """
        if self._slim is None:
            return self.encode(value)
        try:
            mirror = self._out(value) if self._out else value
            raw = _write(mirror)
            if self._read(raw) == mirror and (raw.find(b"\\") < 0 or b"u0000" not in raw):
                return _write(self._slim(mirror))
        except WRITING as fault:
            self._refuse_value(value, fault)
        self._refuse_written(mirror, raw)

    def seal_many(self, values: Sequence[T]) -> tuple[bytes, list[T]]:
        """`seal` of several at once: the bytes of a JSON array, and the values as they come back.

        Raises: BadArguments, whose fault names which.
        """
        raw, mirrors = self._written_many(values)
        into = self._into
        try:
            return raw, [into(mirror) for mirror in mirrors] if into else mirrors
        except WRITING as fault:
            self._refuse_value(values, fault)

    def to_json(self, value: T) -> Json:
        """The JSON value of `value`. Raises: BadArguments."""
        return _read_json(self.encode(value))

    def _written_many(self, values: Sequence[T]) -> tuple[bytes, list[Any]]:
        out = self._out
        try:
            mirrors = [out(value) for value in values] if out else list(values)
            raw = _write(mirrors)
            found = self._read_many(raw)
            if found == mirrors and (raw.find(b"\\") < 0 or b"u0000" not in raw):
                return raw, found
        except WRITING as fault:
            for value in values:
                self.encode(value)  # says which
            self._refuse_value(values, fault)
        for value in values:
            self.encode(value)
        return raw, found

    def _refuse_written(self, mirror: Any, raw: bytes) -> NoReturn:
        """It could be written, but would come back as something else, or it holds a NUL."""
        found = self._read(raw)
        fault = _difference(mirror, found, "") if found != mirror else _nul_in(_read_json(raw))
        raise _bad([fault or Fault("", "does not come back as it was")])

    def _refuse_value(self, value: Any, fault: BaseException) -> NoReturn:
        if isinstance(fault, BadArguments):
            raise fault
        if isinstance(fault, Unfit):
            raise _bad([fault.fault]) from None
        if isinstance(fault, UnicodeEncodeError):
            raise _bad([Fault("", "holds half of a surrogate pair")]) from None
        faults = []
        if isinstance(fault, msgspec.ValidationError):  # it was written, and cannot be read: say why in our words
            faults = self.node.explain(_read_json(_write(self.node.mirror(value))), "")
        raise _bad(faults or [Fault("", say(cast(Exception, fault), self.node.must), shown(value))]) from None

    # --- reading ---------------------------------------------------------------------------------

    def decode(self, raw: bytes) -> T:
        """The value in bytes that a codec wrote. What comes from outside goes through `codec.parse` and `from_json`.

        Raises: UnknownKind where a "type" is not known, perhaps written by newer code; BadArguments otherwise.
        """
        try:
            found = self._read(raw)
            return cast(T, self._into(found) if self._into else found)
        except READING as fault:
            self._refuse_bytes(raw, fault, many=False)

    def decode_many(self, raw: bytes) -> list[T]:
        """The values in a JSON array that `seal_many` wrote. Raises: as `decode`."""
        into = self._into
        try:
            found = self._read_many(raw)
            return [into(item) for item in found] if into else found
        except READING as fault:
            self._refuse_bytes(raw, fault, many=True)

    def from_json(self, json: Json, path: str = "") -> T:
        """The value in JSON that `codec.parse` gave. `path` stands before each field's name.

        Raises: BadArguments with one fault a field; UnknownKind where a "type" is not known.
        """
        try:
            return cast(T, self.node.read(json))
        except READING as fault:
            self._refuse_json(json, path, fault)

    def arrived(self, written: bytes, json: Json) -> T:
        """As `from_json`, of what `codec.parse_canonical` gave: its bytes, and the value they stand for."""
        try:
            return cast(T, self.node.read_written(written))
        except READING as fault:
            self._refuse_json(json, "", fault)

    def _refuse_json(self, json: Json, path: str, fault: BaseException, nothing_was: str = "started") -> NoReturn:
        faults = self.node.explain(json, path)
        for found in faults:
            if isinstance(found, UnknownTag):
                raise UnknownKind(found.got, faults, nothing_was=nothing_was) from None
        if not faults:  # the explanation saw nothing: let what was seen first stand
            problem = fault.problem if isinstance(fault, Unfit) else say(cast(Exception, fault), self.node.must)
            faults = [Fault(path, problem, shown(json))]
        raise BadArguments(faults, nothing_was=nothing_was) from None

    def _refuse_bytes(self, raw: bytes, fault: BaseException, *, many: bool) -> NoReturn:
        json = codec.parse(raw, "what was stored")
        if not many:
            self._refuse_json(json, "", fault, "read")
        if isinstance(json, list):
            for at, item in enumerate(json):
                if self.node.explain(item, ""):
                    self._refuse_json(item, below("", at), fault, "read")
        raise BadArguments([Fault("", "must be a list", shown(json))], nothing_was="read") from None

    # --- describing ------------------------------------------------------------------------------

    def schema(self, mode: Mode = "validation") -> Schema:
        """JSON Schema 2020-12 of the JSON form. `serialization`: what `encode` writes, where no field is left out."""
        defs: dict[str, Schema] = {}
        root = self.node.schema(defs, mode)
        defs.pop("", None)
        used = referred(root, defs, {})
        return {**root, "$defs": used} if used else root

    def __repr__(self) -> str:
        return f"Codec({told(self.annotation)})"


def _bad(faults: list[Fault]) -> BadArguments:
    return BadArguments(faults, nothing_was="stored")


def _difference(sent: Any, found: Any, path: str) -> Fault | None:
    """Where a mirror and what was read of it differ: a value of another type that looks the same in JSON."""
    if isinstance(sent, msgspec.Struct) and type(sent) is type(found):
        pairs: Any = [(n, getattr(sent, n), getattr(found, n)) for n in sent.__struct_fields__]
    elif isinstance(sent, list | tuple) and isinstance(found, list | tuple) and len(sent) == len(found):
        pairs = [(at, s, f) for at, (s, f) in enumerate(zip(sent, found, strict=True))]
    elif isinstance(sent, dict) and isinstance(found, dict) and sent.keys() == found.keys():
        pairs = [(key, sent[key], found[key]) for key in sent]
    else:
        return Fault(path, f"is a {type(sent).__name__}, which would come back as {type(found).__name__}", shown(sent))
    for key, one, other in pairs:
        if one != other:
            return _difference(one, other, below(path, key))
    return None


def _nul_in(json: Json) -> Fault | None:
    stack: list[tuple[str, Any]] = [("", json)]
    while stack:
        path, value = stack.pop()
        if isinstance(value, str) and (problem := text_problem(value)):
            return Fault(path, problem, shown(value))
        if isinstance(value, dict):
            stack += [(path, key) for key in value]
            stack += [(below(path, key), item) for key, item in value.items()]
        elif isinstance(value, list):
            stack += [(below(path, at), item) for at, item in enumerate(value)]
    return None


_made: Final[dict[Any, Codec[Any]]] = {}


@overload
def codec_of(annotation: type[T], *, tagged: bool = False) -> Codec[T]: ...
@overload
def codec_of(annotation: Any, *, tagged: bool = False) -> Codec[Any]: ...
def codec_of(annotation: Any, *, tagged: bool = False) -> Codec[Any]:
    """The codec of a type, as it stands in a signature. `tagged`: a lone class carries its "type" too.

    Raises: LoadRefused for a type without a JSON form, and for members that JSON cannot tell apart.
    """
    key = (annotation, tagged)
    try:
        found = _made.get(key)
    except TypeError:  # metadata that cannot be hashed
        return Codec(annotation, Builder().node(annotation, told(annotation), tagged=tagged))
    if found is None:
        found = _made[key] = Codec(annotation, Builder().node(annotation, told(annotation), tagged=tagged))
    return found
