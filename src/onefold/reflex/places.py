"""reflex.places - on which line of a JSON text a place within it stands.

For: findings that name a path, shown to people who look at a file.
Never: judges the text; it was read before, or a line is not asked for.
Was wrong once: the path looked for as text. `"max"` stood in the comment of another reflex first.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Final

from onefold.terms.codec import below, parse
from onefold.terms.errors import BadArguments

TOKEN: Final = re.compile(rb'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')


def lines(raw: bytes, wanted: Collection[str]) -> Mapping[str, int]:
    """The line, from 1, of each of these paths (`[2].policy.retry`): that of the key, or of the item in a list. Of a
    text that is no JSON, those before the place where it breaks."""
    found: dict[str, int] = {"": 1}
    stack: list[tuple[str, int | None]] = []  # the path of each open list or object; a list's next item, else None
    path, line, end = "", 1, 0
    key_follows = False
    for token in TOKEN.finditer(raw):
        line += raw.count(b"\n", end, token.start())
        end = token.start()
        text = token[0]
        if text in b"}]" and stack:
            stack.pop()
            key_follows = False
        elif text == b"," and stack:
            key_follows = stack[-1][1] is None
        elif text != b":" and text != b",":
            if key_follows:
                try:
                    path = below(stack[-1][0], str(parse(text)))
                except BadArguments:
                    break
                key_follows = False
            elif stack and (at := stack[-1][1]) is not None:
                path = below(stack[-1][0], at)
                stack[-1] = (stack[-1][0], at + 1)
            if path in wanted:
                found.setdefault(path, line)
            if text in b"{[":
                stack.append((path, None if text == b"{" else 0))
                key_follows = text == b"{"
    return found


def nearest_line(path: str, known: Mapping[str, int]) -> int:
    """The line of a path, or of what is around it where it is not there: a missing word has no line."""
    for part in around(path):
        if part in known:
            return known[part]
    return 1


def around(path: str) -> list[str]:
    """The path and all that it lies within, the innermost first."""
    ends = [match.start() for match in re.finditer(r"[.\[]", path)]
    return [path, *(path[:end] for end in reversed(ends) if end)]
