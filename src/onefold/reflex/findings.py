"""reflex.findings - what is wrong with a definition: everything at once, each with its path and the nearest right word.

For: collecting while definitions are read, and one refusal at the end.
Never: stops at the first fault; tells more of them than anybody reads.
Was wrong once: a path without the reflex's id. In a file of forty, `policy.retry.max` stood for forty places.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from onefold.terms.codec import path_of
from onefold.terms.errors import Fault, Finding, LoadRefused
from onefold.terms.faults import short
from onefold.terms.ids import nearest
from onefold.terms.limits import MAX_FAULTS

Path: TypeAlias = "tuple[str | int, ...]"

FEW: Final = 8
"""Names listed in one sentence; past that, a list is not read."""


@dataclass(frozen=True, slots=True)
class ReflexFinding(Finding):
    """A finding of a definition. `reflex`: its id, "" where it has none; `path`: the place within it, such as
    `policy.retry.max`, "" for the whole; `source`: where the definition came from, such as `billing.json[2]`; `rule`: "template" for what stands in one."""

    reflex: str = ""
    path: str = ""
    source: str = ""
    rule: str = "reflex"


def finding(
    source: str, reflex: str, path: str, problem: str, *, warns: bool = False, rule: str = "reflex"
) -> ReflexFinding:
    """`source`: where the definition came from, such as `billing.json[2]`; "" where that says nothing."""
    parts = [source, f"reflex {short(reflex)}" if reflex else "", path]
    where = ", ".join(part for part in parts if part) or "reflexes"
    return ReflexFinding(where, problem, "warning" if warns else "refused", reflex, path, source, rule)


def few_findings(found: Sequence[Finding]) -> list[Finding]:
    """The first MAX_FAULTS of these, and how many more there are."""
    more = len(found) - MAX_FAULTS
    if more <= 0:
        return list(found)
    return [
        *found[:MAX_FAULTS],
        finding("", "", "", f"there are at least {more} more findings", warns=found[0].level != "refused"),
    ]


def refuse(found: Iterable[Finding]) -> None:
    """Raises: LoadRefused with what was refused among these, if anything was."""
    refused = [item for item in found if item.level == "refused"]
    if refused:
        raise LoadRefused(few_findings(refused))


def listed(names: Iterable[str]) -> str:
    """The first few names, and how many more."""
    all = list(names)
    shown = ", ".join(short(name) for name in all[:FEW])
    return shown if len(all) <= FEW else f"{shown} and {len(all) - FEW} more"


def meant(word: object, known: Collection[str]) -> str:
    """The tail of a sentence: the nearest of the known words, or all of them where they are few."""
    near = nearest(word, known) if isinstance(word, str) else None
    if near is not None:
        return f"; did you mean {near!r}?"
    if not known:
        return "; there is none at all"
    shown = ", ".join(repr(name) for name in sorted(known)[:FEW])
    return f"; there is {shown}{' and more' if len(known) > FEW else ''}"


class Findings:
    """What is wrong so far with one definition."""

    def __init__(self, source: str, reflex: str = "") -> None:
        self.source = source
        self.reflex = reflex
        self.found: list[Finding] = []

    def add(self, path: Path, problem: str) -> None:
        self.found.append(finding(self.source, self.reflex, path_of(path), problem))

    def taken(self, path: Path, faults: Iterable[Fault]) -> None:
        """Faults of something within, whose fields are paths from there."""
        start = path_of(path)
        for fault in faults:
            joint = "" if not start or not fault.field or fault.field.startswith("[") else "."
            self.found.append(finding(self.source, self.reflex, f"{start}{joint}{fault.field}", said(fault)))

    def mapping(self, path: Path, value: object, how: str) -> Mapping[str, Any] | None:
        """The value as an object, or None with a finding that shows how to write it."""
        if isinstance(value, dict):
            return value
        self.add(path, f"{is_null(value) or 'is not an object'}; write {how}")
        return None

    def keys(self, path: Path, raw: Mapping[str, Any], allowed: Collection[str], what: str) -> None:
        for n, key in enumerate([key for key in raw if key not in allowed]):
            near = meant(key, allowed) if n < MAX_FAULTS else ""  # what nobody is told is not looked for
            self.add((*path, key), f"{what} has no such word{near}")

    def choice(self, path: Path, value: object, allowed: Sequence[str]) -> str | None:
        """One of a few words, or None with a finding."""
        if isinstance(value, str) and value in allowed:
            return value
        words = ", ".join(repr(word) for word in allowed)
        near = nearest(value, allowed) if isinstance(value, str) else None
        self.add(path, f"{is_null(value) or f'is not one of {words}'}{f'; did you mean {near!r}?' if near else ''}")
        return None

    def whole(self, path: Path, value: object, least: int, most: int, unit: str) -> int | None:
        """A whole number within bounds, or None with a finding."""
        if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
            return value
        self.add(path, is_null(value) or f"is not a whole number of {unit} from {least} to {most}")
        return None

    def end(self) -> None:
        """Raises: LoadRefused with everything found, if anything was."""
        refuse(self.found)


def is_null(value: object) -> str:
    return "is null; leave it out" if value is None else ""


def said(fault: Fault) -> str:
    return fault.problem if fault.got is None else f"{fault.problem}; it is {short(fault.got)}"
