"""reflex.sql - the text of a selection: which values it asks for, and that it is one question.

For: the names after a colon, where they stand for values and not in text, comments or casts; the same text as another
driver wants it.
Never: puts a value into the text; judges what it reads (the database does, read-only).
Was wrong once: a search for `:name`. It found one in a comment, one in a text, and one in `a::int`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

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
    bare = _PIECE.sub(lambda piece: " " if piece["comment"] else piece.group(), sql).strip()
    if not bare or len(sql) > MAX_CHARS:
        return f"is empty, or longer than {MAX_CHARS} characters"
    if not _OPENS.match(bare):
        return "must begin with SELECT, WITH or VALUES: a selection only reads"
    end = next((piece.start() for piece in _PIECE.finditer(bare) if piece["end"]), None)
    return "must be one statement" if end is not None and bare[end + 1 :].strip() else None
