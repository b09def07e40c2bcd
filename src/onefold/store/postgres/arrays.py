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
    if not values:
        return _EMPTY(0, 0, _OID[kind])
    nulls = None in values
    body = b"".join(_WITH_NULLS[kind](values) if nulls else _WHOLE[kind](values))
    return _HEAD(1, int(nulls), _OID[kind], len(values), 1) + body


faults = (struct.error, TypeError, AttributeError, ValueError)

_WHOLE: Mapping[Kind, Callable[[Sequence[Any]], list[bytes]]] = {
    "int": lambda values: [_INT(8, v) for v in values],
    "text": lambda values: [_LENGTH(len(raw)) + raw for raw in [v.encode() for v in values]],
    "bytes": lambda values: [_LENGTH(len(v)) + v for v in values],
}
_WITH_NULLS: Mapping[Kind, Callable[[Sequence[Any]], list[bytes]]] = {
    "int": lambda values: [_NULL if v is None else _INT(8, v) for v in values],
    "text": lambda values: [_NULL if v is None else _text(v) for v in values],
    "bytes": lambda values: [_NULL if v is None else _LENGTH(len(v)) + v for v in values],
}


def _text(value: str) -> bytes:
    raw = value.encode()
    return _LENGTH(len(raw)) + raw
