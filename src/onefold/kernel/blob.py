"""kernel.blob - bytes too large for a row: what they are called, their rows, and who refers to them. Pure.

For: a blob's digest and address, the pointer that stands in a row for it, the rows of its commit, and
when it may be swept.
Never: does I/O; reads a clock; lets one principal's digest find another's bytes.
Was wrong once: a count of references in the blob's row. Each fold that named a blob wrote the row anew,
and a row taken away by hand left a count that never came to nothing. A reference is a row of its own,
and is believed only while what it names still names the blob.

The digest is of the bytes, and is what people hold. The address is of principal and digest, and is what
the rows are found by: the same bytes put by two principals are two blobs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from msgspec import Raw, Struct
from msgspec.structs import fields, replace

from onefold.store.contract import (
    Append,
    Cell,
    Column,
    Create,
    Migration,
    Put,
    Query,
    Remove,
    Row,
    Schema,
    Table,
    Write,
)
from onefold.terms.codec import canonical, digest, parse
from onefold.terms.ids import Principal, principal_text
from onefold.terms.limits import BLOB_PART_BYTES, INLINE_BYTES

NAME = b"sha256:"
_NAMED = re.compile(rb"sha256:([0-9a-f]{64})")
_DIGEST = re.compile(r"sha256:([0-9a-f]{64})")

BLOB = Table(
    "blob",
    (
        Column("n", "int"),
        Column("address", "bytes"),
        Column("principal", "text"),
        Column("digest", "bytes"),
        Column("size", "int"),
        Column("at", "int"),  # when it was last put
        Column("file", "text", null=True),  # its name in the folder of blobs; None: its bytes are in `blob_part`
        Column("condemned", "int", null=True),  # when it was first found with nobody referring to it
    ),
    key=("n",),
    serial=True,
    unique=(("address",),),
)

BLOB_PART = Table(
    "blob_part",
    (Column("blob", "int"), Column("no", "int"), Column("bytes", "bytes")),
    key=("blob", "no"),
)

BLOB_REF = Table(
    "blob_ref",
    (Column("address", "bytes"), Column("row", "text"), Column("n", "int")),  # row: "turn" or "owed"; n: its number
    key=("address", "row", "n"),
    narrow=True,
)

BLOBS = Schema(
    "blobs",
    (BLOB, BLOB_PART, BLOB_REF),
    (Migration(1, oldest=1, steps=(Create(BLOB), Create(BLOB_PART), Create(BLOB_REF))),),
)

_N, _ADDRESS, _PRINCIPAL, _FILE = (BLOB.at[name] for name in ("n", "address", "principal", "file"))
_CONDEMNED, _AT = BLOB.at["condemned"], BLOB.at["at"]


# --- names ------------------------------------------------------------------------------------------


def digest_text(digest_: bytes) -> str:
    """A digest as people hold it: `sha256:` and 64 hex digits."""
    return f"sha256:{digest_.hex()}"


def digest_of(text: object) -> bytes | None:
    """The 32 bytes of a digest's text; None when it is none."""
    found = _DIGEST.fullmatch(text) if isinstance(text, str) else None
    return None if found is None else bytes.fromhex(found[1])


def address_of(principal: Principal, digest_: bytes) -> bytes:
    """Where the blob of this principal is: 32 bytes that no other principal's blob has."""
    return digest(principal_text(principal).encode() + b"\0" + digest_)


def named(*texts: bytes | None) -> set[bytes]:
    """The digests that stand in these bytes, wherever they stand."""
    found: set[bytes] = set()
    for text in texts:
        if text is not None and NAME in text:
            found.update(bytes.fromhex(match.decode()) for match in _NAMED.findall(text))
    return found


# --- pointers: what stands in a row for bytes that are elsewhere ----------------------------------------


def pointer(digest_: bytes) -> bytes:
    """What a column of bytes holds instead. No JSON begins with NUL, so nothing that was sealed reads as one."""
    return b"\0" + NAME + digest_.hex().encode()


def pointed(raw: bytes) -> bytes | None:
    """The digest, when these bytes are a pointer."""
    return bytes.fromhex(raw[len(NAME) + 1 :].decode()) if raw[:1] == b"\0" else None


_OPEN, _CLOSE = b'{ "blob":"' + NAME, b'"}'
_POINTED = re.compile(re.escape(_OPEN) + rb"([0-9a-f]{64})" + re.escape(_CLOSE))
_LONG = len(_OPEN) + 64 + len(_CLOSE)


def raw_pointer(digest_: bytes) -> Raw:
    """What stands in a fact for a JSON value that is elsewhere. Its space is what no written JSON has: see `plain`."""
    return Raw(_OPEN + digest_.hex().encode() + _CLOSE)


def raw_pointed(raw: Raw) -> bytes | None:
    """The digest, when this JSON value is a pointer."""
    if memoryview(raw).nbytes != _LONG:
        return None
    text = bytes(raw)
    return bytes.fromhex(text[len(_OPEN) : -len(_CLOSE)].decode()) if text.startswith(_OPEN) else None


def pointed_in(*texts: Any) -> set[bytes]:
    """The digests that columns of a row point at: whole ones, and values in its facts."""
    found: set[bytes] = set()
    for text in texts:
        if isinstance(text, bytes) and NAME in text:
            whole = pointed(text)
            found.update([whole] if whole is not None else map(_unhexed, _POINTED.findall(text)))
    return found


def _unhexed(digits: bytes) -> bytes:
    return bytes.fromhex(digits.decode())


def plain(raw: bytes) -> bytes:
    """JSON as it is kept: whatever an author handed over as finished JSON, it never reads as a pointer."""
    return canonical(parse(raw)) if raw.startswith(b"{ ") else raw


# --- spilling -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Spill:
    """Bytes that go to the blobs with the commit of the row that points at them."""

    n: int
    address: bytes
    principal: Principal
    digest: bytes
    data: bytes
    file: str | None


class Spiller(Protocol):
    """One space's blobs, as folds use them."""

    def spill(self, principal: Principal, data: bytes) -> Spill:
        """Bytes for the commit to come; nothing is kept yet."""

    def about_to_commit(self, spills: Sequence[Spill], refs: Sequence[Row]) -> None:
        """A fold that spills or refers is decided. Where blobs are files they are durable when this returns."""

    def answer(self, turn: Any) -> None:
        """Tell a turn its first reply, which is a pointer, once it has been read."""


def lightened(facts: Sequence[Any], spill: Any) -> Sequence[Any]:
    """The facts with each long JSON value of theirs replaced by a pointer; `spill(bytes)` gives the digest."""
    return [_light(fact, spill) for fact in facts]


def _light(fact: Struct, spill: Any) -> Struct:
    heavy = {name: raw for name, raw in _raws(fact) if memoryview(raw).nbytes > INLINE_BYTES}
    if not heavy:
        return fact
    return replace(fact, **{name: raw_pointer(spill(bytes(raw))) for name, raw in heavy.items()})


def pointers(value: Any) -> set[bytes]:
    """The digests that the JSON values directly inside a word or state point at."""
    return {found for _, raw in _raws(value) if (found := raw_pointed(raw)) is not None}


def filled(value: Any, known: Mapping[bytes, bytes]) -> Any:
    """The same word with the values it points at, which `known` has by digest."""
    found = {name: Raw(known[at]) for name, raw in _raws(value) if (at := raw_pointed(raw)) is not None}
    return replace(value, **found) if found else value


def note(value: Any, known: dict[bytes, bytes]) -> None:
    """Add to `known`, by digest, the values of a word that its row only points at."""
    for _, raw in _raws(value):
        if memoryview(raw).nbytes > INLINE_BYTES:
            known[digest(bytes(raw))] = bytes(raw)


_RAW_FIELDS: dict[type, tuple[str, ...]] = {}


def _raws(value: Any) -> list[tuple[str, Raw]]:
    kind = type(value)
    names = _RAW_FIELDS.get(kind)
    if names is None:
        names = _RAW_FIELDS[kind] = tuple(f.name for f in fields(kind) if f.type is Raw)
    return [(name, getattr(value, name)) for name in names]


# --- rows -----------------------------------------------------------------------------------------------


def lookup(addresses: Iterable[Cell]) -> Query:
    """The blobs at these addresses, held against a sweep until the commit."""
    return Query(BLOB, on=("address",), keys=[(address,) for address in addresses], lock="update")


def writes(spills: Sequence[Spill], refs: Sequence[Row], met: Sequence[Row], at: int) -> list[Write]:
    """The rows of these blobs and references, where `met` are the blobs that exist. Blobs put again are as new."""
    known = {row[_ADDRESS]: row for row in met}
    heads: list[Row] = []
    parts: list[Row] = []
    out: list[Write] = []
    for spill in spills:
        old = known.get(spill.address)
        n = spill.n if old is None else int(old[_N] or 0)
        who = principal_text(spill.principal)
        heads.append((n, spill.address, who, spill.digest, len(spill.data), at, spill.file, None))
        if spill.file is None:
            parts.extend((n, no, part) for no, part in enumerate(cut(spill.data)))
        elif old is not None and old[_FILE] is None:
            out.append(Remove(BLOB_PART, where=(("blob", "=", n),)))
    if heads:
        out.append(Put(BLOB, heads))
    if parts:
        out.append(Put(BLOB_PART, parts))
    if refs:
        out.append(Append(BLOB_REF, refs, met="keep"))
    return out


def cut(data: bytes) -> list[bytes]:
    """The bytes as rows take them: none for none."""
    return [data[at : at + BLOB_PART_BYTES] for at in range(0, len(data), BLOB_PART_BYTES)]


# --- sweeping -------------------------------------------------------------------------------------------


def live(refs: Sequence[Row], rows: Mapping[tuple[str, int], Sequence[bytes | None]], digest_: bytes) -> set[Row]:
    """Which references are true: the row they name is there, and still names the digest."""
    needle = digest_.hex().encode()
    return {
        ref
        for ref in refs
        if any(text is not None and needle in text for text in rows.get((str(ref[1]), int(ref[2] or 0)), ()))
    }


def verdict(row: Row, now: int, *, referred: bool, grace: int, delay: int) -> str:
    """What a sweep does with a blob: `keep`, `pardon` one that was condemned, `condemn`, or `remove`.

    Twice it must be found with nobody referring to it, `delay` ms apart, and `grace` ms after it was put.
    """
    condemned, at = row[_CONDEMNED], int(row[_AT] or 0)
    if referred or now - at < grace:
        return "keep" if condemned is None else "pardon"
    if condemned is None:
        return "condemn"
    return "remove" if now - int(condemned) >= delay else "keep"
