"""store.statement - the text of a selection or a change: which values it asks for, and that it is one statement.

For: the names after a colon, where they stand for values and not in text, comments or casts; the same text as another
driver wants it; which table a statement changes; a value as SQLite takes it.
Never: puts a value into the text; judges what it reads (the database does, read-only).
Was wrong once: a search for `:name`. It found one in a comment, one in a text, and one in `a::int`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal

from onefold.terms.codec import canonical

MAX_CHARS: Final = 100_000
_PIECE: Final = re.compile(
    r"""(?P<text>'(?:[^']|'')*'|"(?:[^"]|"")*")
    |(?P<comment>--[^\n]*|/\*.*?(?:\*/|\Z))
    |(?P<dollar>\$(?P<tag>[A-Za-z_]*)\$.*?\$(?P=tag)\$)
    |(?P<cast>::)
    |:(?P<value>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<end>;)
    |(?P<percent>%)""",
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_OPENS: Final = re.compile(r"\s*(select|with|values)\b", re.IGNORECASE)
_WRITES: Final = re.compile(r"\s*(insert|replace|update|delete|with)\b", re.IGNORECASE)
_OR: Final = r"(?:\s+or\s+(?:abort|fail|ignore|replace|rollback))?"
_CHANGES: Final = re.compile(
    rf"\b(?P<verb>insert{_OR}\s+into|replace\s+into|update{_OR}(?!\s+set\b)|delete\s+from)\s+(?P<table>\w+|\"[^\"]+\")",
    re.IGNORECASE | re.ASCII,
)
_RETURNS: Final = re.compile(r"\breturning\b", re.IGNORECASE)


def values_of(sql: str) -> tuple[str, ...]:
    """The names of the values that a text asks for, each once, in order."""
    found = (piece["value"] for piece in _PIECE.finditer(sql))
    return tuple(dict.fromkeys(name for name in found if name))


def with_values(sql: str, write: Callable[[str], str], *, percent: str = "%") -> str:
    """The text with each value's place written by `write(name)`, and each % outside of them as `percent`."""

    def piece(match: re.Match[str]) -> str:
        name = match["value"]
        return match.group().replace("%", percent) if name is None else write(name)

    return _PIECE.sub(piece, sql)


def problem_of(sql: str) -> str | None:
    """Why a text is not one question, or None."""
    return _single(sql) or (
        None if _OPENS.match(_bare(sql)) else "must begin with SELECT, WITH or VALUES: a selection only reads"
    )


@dataclass(frozen=True, slots=True)
class Change:
    """What a text changes: which table, how, and whether it gives the rows back."""

    table: str
    op: Literal["insert", "update", "delete"]
    returns: bool


def change_of(sql: str) -> Change | str:
    """What one statement changes; or why it is none, in words."""
    problem = _single(sql)
    if problem:
        return problem
    words = _PIECE.sub(lambda piece: piece.group() if piece["text"] and piece.group()[0] == '"' else " ", sql)
    found = _CHANGES.search(words)
    if not _WRITES.match(words) or found is None:
        return "must be one INSERT, UPDATE or DELETE"
    verb = found["verb"].lower().split()[0]
    op: Literal["insert", "update", "delete"] = "insert" if verb in ("insert", "replace") else verb  # type: ignore[assignment]
    return Change(found["table"].strip('"'), op, _RETURNS.search(words) is not None)


def _bare(sql: str) -> str:
    return _PIECE.sub(lambda piece: " " if piece["comment"] else piece.group(), sql).strip()


def _single(sql: str) -> str | None:
    bare = _bare(sql)
    if not bare or len(sql) > MAX_CHARS:
        return f"is empty, or longer than {MAX_CHARS} characters"
    end = next((piece.start() for piece in _PIECE.finditer(bare) if piece["end"]), None)
    return "must be one statement" if end is not None and bare[end + 1 :].strip() else None


def bound(value: Any) -> Any:
    """A value as SQLite takes it: lists and objects as JSON text, true and false as 1 and 0."""
    if isinstance(value, list | dict):
        return canonical(value).decode()
    return int(value) if isinstance(value, bool) else value
