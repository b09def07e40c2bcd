"""store.postgres.law - what an author's statement says, and whether it may be said at all.

For: one statement read as the server reads it, with the places of its `:name`s, and its first words against a list.
Never: runs a statement; is what keeps an author in their own tables. The server is: the statement runs as a role that
owns its schema and nothing else, within a function whose caller it cannot become (home). What is refused here is what
that role could still do to the session or to itself, and it is told in better words than the server has.
Was wrong once: `:name` found by a pattern. It stood in a string, in a comment and behind a cast.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from onefold.terms.errors import BadStatement

LONGEST = 1_000_000  # characters of a statement, as in SQLite
_ROWS = frozenset({"select", "with", "values", "table"})
_CHANGES = frozenset({"insert", "update", "delete", "merge"})
_SHAPES = frozenset({"create", "alter", "drop"})
_OF_SHAPE = frozenset({"table", "index", "view", "sequence", "type", "domain"})
_OVER = frozenset({"unique", "or", "replace", "recursive"})  # words between CREATE and what is created
_TEMPORARY = frozenset({"temp", "temporary", "local", "global"})
_TRANSACTION = "a database step is one transaction already; leave out "
_NO_SETTING = "how the session is set is not the program's business; leave out "
_WHY: Mapping[str, str] = {
    **{
        word: f"{_TRANSACTION}{word.upper()}"
        for word in ("begin", "start", "commit", "end", "rollback", "abort", "savepoint", "release")
    },
    **{word: f"{_NO_SETTING}{word.upper()}" for word in ("set", "reset", "show", "discard", "load", "security")},
    "prepare": "PREPARE is not available; values are bound by name, as in `:name`",
    "copy": "COPY is not available; files and programs are out of reach",
    "do": "DO is not available; a database step is Python around single statements",
    "call": "CALL is not available; a database step is Python around single statements",
    "listen": "LISTEN is not available; nobody would hear it",
    "notify": "NOTIFY is not available",
    "grant": "GRANT is not available; the tables are the actuator's alone",
    "revoke": "REVOKE is not available; the tables are the actuator's alone",
}


@dataclass(frozen=True, slots=True)
class Reading:
    """A statement apart: its text between the values, and which value stands behind each part but the last.

    names: each once, in the order they first stand in. shapes: whether it may change what tables there are. changes:
    whether a number of rows changed is to be told.
    """

    parts: tuple[str, ...]
    at: tuple[int, ...]
    names: tuple[str, ...]
    shapes: bool
    changes: bool

    def text(self, value: Callable[[int], str]) -> str:
        """The statement with `value(place of the name)` where its names stand."""
        values = [value(place) for place in self.at]
        return "".join([part + mark for part, mark in zip(self.parts, [*values, ""], strict=True)])


def read(sql: str) -> Reading:
    """Raises: BadStatement, saying why it is not available, or what of it cannot be read."""
    if len(sql) > LONGEST:
        raise BadStatement(
            f"it has {len(sql)} characters; at most {LONGEST} are taken, so bind what is long", sql[:200]
        )
    if "\0" in sql:
        raise BadStatement("it has a NUL in it", sql)
    parts: list[str] = []
    at: list[int] = []
    names: dict[str, int] = {}
    words: list[str] = []
    start, over = 0, False
    for kind, begin, end in _tokens(sql):
        if kind == "blank":
            continue
        if kind == "end":
            over = True
            continue
        if over:
            raise BadStatement("one statement at a time; give each a call of its own", sql)
        if kind == "name":
            parts.append(sql[start:begin])
            at.append(names.setdefault(sql[begin + 1 : end], len(names)))
            start = end
        elif kind == "word":
            words.append(sql[begin:end].lower())
    parts.append(sql[start:])
    shapes = _judge(words, sql)
    changes = words[0] in _CHANGES or (words[0] == "with" and not _CHANGES.isdisjoint(words))
    return Reading(tuple(parts), tuple(at), tuple(names), shapes, changes)


def _judge(words: list[str], sql: str) -> bool:
    """Whether it changes what tables there are. Raises: BadStatement for what is not on the list."""
    first = words[0] if words else ""
    if not first:
        raise BadStatement("there is no statement in it", sql)
    if first in _ROWS or first in _CHANGES or first == "truncate":
        if "into" in words and first not in ("insert", "merge"):
            behind = words[words.index("into") + 1 :][:1]
            if behind and behind[0] in _TEMPORARY:
                raise BadStatement("temporary tables are not available", sql)
        return first != "truncate" and "into" in words and first not in ("insert", "merge")
    if first not in _SHAPES:
        raise BadStatement(_WHY.get(first, f"this kind of statement is not available: {first.upper()}"), sql)
    what = next((word for word in words[1:] if word not in _OVER), "")
    if what in _TEMPORARY:
        raise BadStatement("temporary tables, views and sequences are not available", sql)
    if what == "unlogged":
        raise BadStatement("an unlogged table loses its rows with the server; leave out UNLOGGED", sql)
    if what not in _OF_SHAPE:
        there = ", ".join(sorted(_OF_SHAPE))
        raise BadStatement(f"{f'{first} {what}'.rstrip().upper()} is not available; there is {there}", sql)
    return True


# --- as the server reads it, with `standard_conforming_strings` on ----------------------------------

_TOKEN = re.compile(
    r"""
      (?P<blank>  \s+ | --[^\r\n]* )
    | (?P<nested> /\* )
    | (?P<escaped> [eE]' (?: [^'\\] | \\. | '' )* ' )
    | (?P<string> (?: [bBxXnN] | [uU]& )? ' (?: [^'] | '' )* ' )
    | (?P<quoted> (?: [uU]& )? " (?: [^"] | "" )* " )
    | (?P<dollars> \$ (?P<tag> (?: [A-Za-z_\x80-\U0010ffff] [\w\x80-\U0010ffff]* )? ) \$ )
    | (?P<place> \$ \d )
    | (?P<word>   [A-Za-z_\x80-\U0010ffff] [\w$\x80-\U0010ffff]* )
    | (?P<number> \.? \d [\w.]* )
    | (?P<cast>   :: | := )
    | (?P<name>   : [^\W\d] \w* )
    | (?P<end>    ; )
    | (?P<unclosed> ['"] )
    | (?P<other>  . )
    """,
    re.VERBOSE | re.DOTALL,
)
_GOES_ON = re.compile(r"[ \t\f\v]*[\r\n]\s*(--[^\r\n]*[\r\n]\s*)*'")


def _tokens(sql: str) -> Iterator[tuple[str, int, int]]:
    """Kind, begin and end of each token. Raises: BadStatement for what the server would read as something else."""
    place = 0
    while place < len(sql):
        met = _TOKEN.match(sql, place)
        kind = met.lastgroup if met is not None else None
        if met is None or kind is None:
            raise BadStatement("it cannot be read", sql)
        begin, place = place, met.end()
        if met["dollars"] is not None:
            kind = "string"
            place = _behind(sql, met["dollars"], place)
        elif kind == "nested":
            kind, place = "blank", _comment(sql, begin)
        elif kind == "unclosed":
            raise BadStatement("a quote in it is not closed", sql)
        elif kind == "place":
            raise BadStatement("values are bound by name, as in `:name`", sql)
        elif kind == "escaped" and _GOES_ON.match(sql, place):
            raise BadStatement("a string with escapes goes on in the next line; write it as one", sql)
        yield kind, begin, place


def _behind(sql: str, mark: str, start: int) -> int:
    end = sql.find(mark, start)
    if end < 0:
        raise BadStatement(f"what {mark} opens is not closed", sql)
    return end + len(mark)


def _comment(sql: str, begin: int) -> int:
    """Where a comment ends; they nest."""
    depth, place = 0, begin
    for met in re.compile(r"/\*|\*/").finditer(sql, begin):
        depth += 1 if met[0] == "/*" else -1
        place = met.end()
        if depth == 0:
            return place
    raise BadStatement("a comment in it is not closed", sql)
