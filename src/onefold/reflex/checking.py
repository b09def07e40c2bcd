"""reflex.checking - what `onefold check` says of files of definitions.

For: the findings of the gate, each with its file and line.
Never: opens a file, loads an app: which effects and selections there are, nobody knows here.
Was wrong once: every `*.json` of a folder taken for definitions. A package.json had nine findings.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from onefold.fence.words import Finding as Found
from onefold.fence.words import Source
from onefold.reflex.findings import ReflexFinding
from onefold.reflex.gate import NOTHING, Known, Placed, look
from onefold.reflex.places import around, lines, nearest_line
from onefold.reflex.source import in_text
from onefold.reflex.templates import CelTransform
from onefold.terms.errors import Finding

RULES: Final = ("reflex", "template")
"""What a definition says; what stands in its templates, as the transform that ships reads them."""

BYTE: Final = re.compile(r"is not JSON: .*\(byte (\d+)\)$")


def is_definitions(raw: bytes) -> bool:
    """Whether a JSON file that nobody named looks like definitions: it speaks of what sets off an effect, or why."""
    return b'"intent"' in raw or (b'"effect"' in raw and b'"on"' in raw)


def check(sources: Sequence[Source], known: Known = NOTHING) -> list[Found]:
    """What would be refused of these files, loaded together."""
    found: list[Finding] = []
    placed: list[Placed] = []
    for source in sources:
        placed.extend(in_text(source.raw, source.file, found))
    found.extend(look(placed, replace(known, free_names=CelTransform().findings)).findings)
    raw = {source.file: source.raw for source in sources}
    return sorted(_told(raw, found))


def _told(raw: Mapping[str, bytes], found: Iterable[Finding]) -> Iterator[Found]:
    by_file: dict[str, list[ReflexFinding]] = {}
    for item in found:
        if isinstance(item, ReflexFinding) and item.level == "refused":
            by_file.setdefault(_file(item), []).append(item)
    for file, items in by_file.items():
        text = raw.get(file, b"")
        known = lines(text, {part for item in items for part in around(_place(file, item))})
        for item in items:
            problem, _, instead = item.problem.partition("; ")
            of = f"reflex {item.reflex}" if item.reflex else "this definition"
            where = f"In {of}, {item.path}" if item.path else f"{of[0].upper()}{of[1:]}"
            line = _broken(text, item.problem) or nearest_line(_place(file, item), known)
            yield Found(file, line, item.rule, f"{where}: {problem}.", _sentence(instead))


def _broken(raw: bytes, problem: str) -> int | None:
    """The line where a text stops being JSON, as the reader told its byte."""
    if "ends too early" in problem:
        return raw.rstrip().count(b"\n") + 1
    at = BYTE.search(problem)
    return raw.count(b"\n", 0, int(at[1])) + 1 if at else None


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}{'' if text[-1] in '.?!' else '.'}" if text else ""


def _file(item: ReflexFinding) -> str:
    """The file of `billing.json[2]`."""
    file, bracket, n = item.source.rpartition("[")
    return file if bracket and n[:-1].isdigit() and n.endswith("]") else item.source


def _place(file: str, item: ReflexFinding) -> str:
    index = item.source.removeprefix(file)
    joint = "" if not index or not item.path or item.path.startswith("[") else "."
    return f"{index}{joint}{item.path}"
