"""store.postgres.arrays - cells as Postgres takes them: binary, a column of many rows as one array.

For: `scalar` and `array`, the two shapes of a parameter.
Never: knows a table; reads an answer (the driver's own loaders do, in C).
Was wrong once: the driver's dumpers. They looked up a dumper for each cell; a batch of 64 folds took longer to
write down than to run.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from onefold.store.contract import Cell, Kind

_HEAD = struct.Struct(">iiiii").pack  # dimensions, may hold nulls, element type, length, first index
_EMPTY = struct.Struct(">iii").pack
_INT = struct.Struct(">iq").pack
_LENGTH = struct.Struct(">i").pack
_LONG = struct.Struct(">q").pack
AT_ONCE = 64  # numbers that are written down by one call
_INTS = [struct.Struct(">" + "iq" * size).pack for size in range(AT_ONCE + 1)]
_NULL = b"\xff\xff\xff\xff"
_OID: Mapping[Kind, int] = {"int": 20, "text": 25, "bytes": 17}


def small(value: int) -> bytes:
    """An int4."""
    return _LENGTH(value)


def scalar(kind: Kind, value: Any) -> bytes | None:
    """One cell. Raises: what `faults` names, for a value of another kind."""
    if value is None:
        return None
    if kind == "int":
        return _LONG(value)
    raw: bytes = value.encode() if kind == "text" else value
    return b"" + raw


def array(kind: Kind, values: Sequence[Cell]) -> bytes:
    """A column. Raises: what `faults` names, for a value of another kind."""
    size = len(values)
    if not size:
        return _EMPTY(0, 0, _OID[kind])
    first = values[0]
    if first == values[-1] and values.count(first) == size:  # of many a table's columns all cells are one
        return _HEAD(1, first is None, _OID[kind], size, 1) + _CELL[kind](first) * size
    nulls = None in values
    body = b"".join(map(_CELL[kind], values)) if nulls else _WHOLE[kind](values)
    return _HEAD(1, nulls, _OID[kind], size, 1) + body


faults = (struct.error, TypeError, AttributeError, ValueError)


def _ints(values: Sequence[Any]) -> bytes:
    out = []
    for start in range(0, len(values), AT_ONCE):
        some = values[start : start + AT_ONCE]
        cells = [8] * (2 * len(some))
        cells[1::2] = some
        out.append(_INTS[len(some)](*cells))
    return b"".join(out)


def _raw(values: Sequence[bytes]) -> bytes:
    size = len(values[0])
    if len(set(map(len, values))) == 1:
        head = _LENGTH(size)
        return head + head.join(values)
    return b"".join([_LENGTH(len(v)) + v for v in values])


def _text(value: str | None) -> bytes:
    if value is None:
        return _NULL
    raw = value.encode()
    return _LENGTH(len(raw)) + raw


_CELL: Mapping[Kind, Callable[[Any], bytes]] = {
    "int": lambda v: _NULL if v is None else _INT(8, v),
    "text": _text,
    "bytes": lambda v: _NULL if v is None else _LENGTH(len(v)) + v,
}
_WHOLE: Mapping[Kind, Callable[[Sequence[Any]], bytes]] = {
    "int": _ints,
    "text": lambda values: _raw([v.encode() for v in values]),
    "bytes": _raw,
}
