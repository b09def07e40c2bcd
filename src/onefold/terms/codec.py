"""terms.codec - the one JSON: strict to read, canonical to write.

For: `parse` what came from outside, `canonical` bytes to store and digest, `digest` of bytes.
Never: guesses. What two readers could take differently is refused: duplicate keys, NaN and infinity,
numbers past the range, half surrogate pairs, NUL, nesting past MAX_DEPTH, bytes after the end.
Was wrong once: json.loads. `{"amount":1,"amount":500}` was checked as 1 by the proxy and paid as 500.

Canonical form: UTF-8, no spaces, keys in the order of their code points, text escaped only where JSON
demands it. Whole numbers and floats stay what they were: `1`, `1.0` and `-0.0` are three values, so
that reading the bytes back gives the value that was written. Floats have their shortest digits.
"""

from __future__ import annotations

import hashlib
import json  # noqa: TID251 - the one codec: only its pairs hook shows which key stands twice
from collections.abc import Iterable
from typing import Any, Final, TypeAlias

import msgspec

from onefold.terms.errors import BadArguments, Fault
from onefold.terms.faults import looks
from onefold.terms.limits import MAX_DEPTH, MAX_INT, MAX_KEY_BYTES, MIN_INT

Json: TypeAlias = Any
"""Any JSON value: None, bool, int, float, str, a list of them, a dict of text to them. Not written out: a type
that names itself cannot be read from an annotation, and `dict[str, int]` would be no `dict[str, Json]`."""

TEXT: Final = frozenset({str})
LEAST, MOST = float("-inf"), float("inf")
TOO_DEEP: Final = f"is nested deeper than {MAX_DEPTH} levels"
_read = msgspec.json.Decoder().decode
_write = msgspec.json.Encoder(order="sorted").encode


class _Unfit(Exception):
    """Something in a value cannot stand. The exact pass says where and what."""


def parse(raw: bytes, what: str = "the text") -> Json:
    """The JSON value in `raw`, which must be all of it.

    Raises: BadArguments, whose fault names the place inside (`a.b[0]`), or `what` when it is no JSON.
    """
    return parse_canonical(raw, what)[0]


def parse_canonical(raw: bytes, what: str = "the text") -> tuple[Json, bytes]:
    """`parse` and `canonical` in one, for a door that digests what arrived: the second costs nothing here. Raises:
    BadArguments.
    """
    try:
        value = _read(raw)
    except RecursionError:
        raise _bad("", f"{what} {TOO_DEEP}") from None
    except msgspec.ValidationError as out_of_range:  # 1e400, or thousands of digits
        raise _bad("", f"{what} holds a number that is out of range ({_plain(out_of_range)})") from None
    except msgspec.DecodeError as malformed:
        raise _bad("", f"{what} is not JSON: {_plain(malformed)}") from None
    try:
        _within((value,), MAX_DEPTH)
    except _Unfit:
        raise BadArguments([_find(value, "", MAX_DEPTH) or Fault("", f"{what} is not JSON")]) from None
    written = _write(value)
    escapes = raw.find(b"\\") >= 0
    if escapes and b"u0000" in raw and (fault := _find(value, "", MAX_DEPTH)):
        raise BadArguments([fault])
    # Written again, each key and each text keeps its colons. Fewer of them: a key was dropped as a duplicate.
    # An escaped colon spoils the count, so the exact pass decides.
    if raw.count(b":") != written.count(b":") or (escapes and b"u003" in raw):
        twice = _twice(raw)
        if twice is not None:
            raise _bad(twice, "stands twice in one object")
    return value, written


def canonical(value: Json, *, parsed: bool = False) -> bytes:
    """The one form of a value: equal values give equal bytes, and `parse` gives the value back.

    `parsed` promises that it came from `parse` and was not touched: it is not looked at again.
    Raises: BadArguments for what `parse` would refuse, and for what is no JSON.
    """
    if parsed:
        return _write(value)
    try:
        _sound((value,), MAX_DEPTH)
        raw = _write(value)
    except (_Unfit, UnicodeEncodeError):
        raise BadArguments([_find(value, "", MAX_DEPTH) or Fault("", "the value is not JSON")]) from None
    if raw.find(b"\\") >= 0 and b"u0000" in raw and (fault := _find(value, "", MAX_DEPTH)):
        raise BadArguments([fault])
    return raw


def digest(raw: bytes) -> bytes:
    """SHA-256, all 32 bytes: what another content under the same key is told by."""
    return hashlib.sha256(raw).digest()


# --- the fast passes: one look at each value, no path -------------------------------------------


def _within(items: Iterable[Any], depth: int) -> None:
    """Depth and whole numbers of what a reader gave. Raises: _Unfit."""
    for item in items:
        kind = type(item)
        if kind is str:
            continue
        if kind is dict or kind is list:
            if not depth:
                raise _Unfit
            _within(item.values() if kind is dict else item, depth - 1)
        elif kind is int and not MIN_INT <= item <= MAX_INT:
            raise _Unfit


def _sound(items: Iterable[Any], depth: int) -> None:
    """Nothing but JSON, within its limits; NUL and surrogates are seen in the bytes. Raises: _Unfit."""
    for item in items:
        kind = type(item)
        if kind is str or item is None or kind is bool:
            continue
        if kind is dict or kind is list:
            if not depth or (kind is dict and not TEXT.issuperset(map(type, item))):
                raise _Unfit
            _sound(item.values() if kind is dict else item, depth - 1)
        elif not ((kind is int and MIN_INT <= item <= MAX_INT) or (kind is float and LEAST < item < MOST)):
            raise _Unfit


# --- the exact passes: where, and what ----------------------------------------------------------


def _find(value: object, path: str, depth: int) -> Fault | None:
    """The first thing within that cannot stand, or None."""
    if isinstance(value, dict | list):
        if not depth:
            return Fault("", f"the value {TOO_DEEP}")
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in items:
            if isinstance(value, dict):
                if type(key) is not str:
                    return Fault(path, "has a key that is not text", shown(key))
                if problem := text_problem(key):
                    return Fault(path, f"has a key that {problem}", shown(key))
            fault = _find(item, below(path, key), depth - 1)
            if fault:
                return fault
        return None if type(value) in (dict, list) else Fault(path, _no_json(value), shown(value))
    problem = scalar_problem(value)
    return Fault(path, problem, shown(value)) if problem else None


def scalar_problem(value: object) -> str | None:
    """What keeps a value that is no list and no object out of JSON, or None."""
    if type(value) is str:
        return text_problem(value)
    if type(value) is int:
        return None if MIN_INT <= value <= MAX_INT else "must be a whole number within 64 bits"
    if type(value) is float:
        return None if LEAST < value < MOST else "must be a finite number"
    return None if value is None or type(value) is bool else _no_json(value)


def text_problem(value: str) -> str | None:
    """What keeps text from being stored, or None."""
    if "\0" in value:
        return "holds a NUL character"
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            return "holds half of a surrogate pair"
    return None


def shown(value: object) -> Json:
    """What may stand as `got` in a refusal: the value if it is JSON of one line, else how it looks."""
    if value is None or scalar_problem(value) is None:
        return value
    if isinstance(value, str):
        return ascii(value)
    return looks(value)[:MAX_KEY_BYTES]


def _no_json(value: object) -> str:
    return f"has the type {type(value).__name__}, which is not JSON"


def below(path: str, key: str | int) -> str:
    """The path of an item: `a.b`, `a[0]`. Of a key that is very long, its beginning."""
    if isinstance(key, int):
        return f"{path}[{key}]"
    if len(key) > MAX_KEY_BYTES:
        key = f"{key[:MAX_KEY_BYTES]}…"
    return f"{path}.{key}" if path else key


def path_of(parts: Iterable[str | int]) -> str:
    """The path that these lead along, from the value itself."""
    path = ""
    for part in parts:
        path = below(path, part)
    return path


class _Pairs(dict[str, Any]):
    twice: str | None = None


def _pairs(pairs: list[tuple[str, Any]]) -> _Pairs:
    found = _Pairs(pairs)
    if len(found) != len(pairs):
        seen = set[str]()
        for key, _ in pairs:
            if key in seen:
                found.twice = key
                break
            seen.add(key)
    return found


def _twice(raw: bytes) -> str | None:
    """The path of a key that stands twice in one object, or None."""
    stack: list[tuple[str, Any]] = [("", json.loads(raw, object_pairs_hook=_pairs))]
    while stack:
        path, value = stack.pop()
        if isinstance(value, _Pairs):
            if value.twice is not None:
                return below(path, value.twice)
            stack.extend((below(path, key), item) for key, item in value.items())
        elif isinstance(value, list):
            stack.extend((below(path, at), item) for at, item in enumerate(value))
    return None


def _bad(path: str, problem: str) -> BadArguments:
    return BadArguments([Fault(path, problem)])


def _plain(error: Exception) -> str:
    told = str(error).removeprefix("JSON is malformed: ")
    return {"Input data was truncated": "it ends too early", "Invalid UTF-8 encoded string": "it is not UTF-8"}.get(
        told, told[:1].lower() + told[1:]
    )
