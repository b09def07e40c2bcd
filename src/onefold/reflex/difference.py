"""reflex.difference - what changed between two versions of a definition, in lines for people.

For: "March ran the old version, April the new one", and what that means; a review before something is armed.
Never: judges a change; compares more than definitions.
Was wrong once: a difference of two printed texts. One word moved to another line, and everything had changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any, Final

from onefold.reflex.words import Json
from onefold.terms.codec import below, canonical

SHOWN: Final = 120
"""Characters of a value; what is longer is seen in the definitions themselves."""

ABSENT: Final = object()


@dataclass(frozen=True, slots=True)
class Change:
    """One place. `was` and `now` are JSON; `kind` says which of them there is: added, removed, changed."""

    path: str
    kind: str
    was: Json = None
    now: Json = None

    def __str__(self) -> str:
        if self.kind == "added":
            return f"{self.path}: added {_text(self.now)}"
        if self.kind == "removed":
            return f"{self.path}: removed, was {_text(self.was)}"
        return f"{self.path}: {_text(self.was)} → {_text(self.now)}"


def changes(old: Json, new: Json) -> list[Change]:
    """What is different, in the order of the words; of lists, the items that came, went or changed."""
    return list(_changes("", old, new))


def _changes(path: str, old: Any, new: Any) -> Iterator[Change]:
    if old is ABSENT:
        yield Change(path, "added", now=new)
    elif new is ABSENT:
        yield Change(path, "removed", was=old)
    elif isinstance(old, dict) and isinstance(new, dict):
        for word in sorted({**old, **new}):
            yield from _changes(below(path, word), old.get(word, ABSENT), new.get(word, ABSENT))
    elif isinstance(old, list) and isinstance(new, list):
        yield from _items(path, old, new)
    elif canonical(old) != canonical(new):
        yield Change(path or "the definition", "changed", old, new)


def _items(path: str, old: list[Any], new: list[Any]) -> Iterator[Change]:
    """Items in pairs where as many came as went, else those that came and those that went."""
    before, after = [canonical(item) for item in old], [canonical(item) for item in new]
    for _, i, i_end, j, j_end in SequenceMatcher(a=before, b=after, autojunk=False).get_opcodes():
        paired = i_end - i == j_end - j
        for at in range(max(i_end - i, j_end - j)):
            was = old[i + at] if i + at < i_end else ABSENT
            now = new[j + at] if j + at < j_end else ABSENT
            if paired or was is ABSENT or now is ABSENT:
                yield from _changes(below(path, j + at if now is not ABSENT else i + at), was, now)
            else:
                yield Change(below(path, j + at), "changed", was, now)


def _text(value: Json) -> str:
    text = canonical(value).decode()
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"
