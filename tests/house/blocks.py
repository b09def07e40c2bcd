"""Code in documents: which blocks there are, and what their first line says is to be done with them.

For: ```python run           executed, in order, in one folder for the document
     ```python file=NAME     written into that folder, for the blocks after it
     ```text output          what the run before it must print, exactly
     ```python sketch        abridged on purpose; not even parsed
     ```python               must parse
Never: runs anything itself; the test does.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

FENCE = re.compile(
    r"^(?P<indent> *)(?P<ticks>`{3,})(?P<info>[^`\n]*)\n(?P<code>.*?)^(?P=indent)(?P=ticks) *$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block: its language, its marks in order, its text, and the line where it opens."""

    language: str
    marks: tuple[str, ...]
    code: str
    line: int

    @property
    def file(self) -> str | None:
        return next((mark.removeprefix("file=") for mark in self.marks if mark.startswith("file=")), None)


def blocks(document: Path) -> list[Block]:
    """The fenced blocks of a document, from its top."""
    text = document.read_text(encoding="utf-8")
    found = []
    for match in FENCE.finditer(text):
        language, *marks = match["info"].split() or [""]
        found.append(Block(language, tuple(marks), match["code"], text.count("\n", 0, match.start()) + 1))
    return found
