"""fence.allow - `# onefold: allow RULE because REASON`: what a person has decided to live with.

For: reading these comments, taking out what they allow, and telling of those that allow nothing.
Never: a list of exceptions in a settings file, far from the line and from its reason.
Was wrong once: an allow without a reason. Nobody dared to take it out a year later.
"""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Final

from onefold.fence.look import sentence
from onefold.fence.rules import RULES
from onefold.fence.words import Finding
from onefold.terms.ids import nearest

MARK: Final = re.compile(r"#+\s*onefold:\s*(?P<said>.*)")
ALLOW: Final = re.compile(r"allow\s+(?P<rule>[\w-]+)(?P<rest>.*)")
BECAUSE: Final = re.compile(r"\s*,?\s*because\s+\S")
NEVER: Final = frozenset({"allow", "syntax"})


@dataclass(frozen=True, slots=True)
class Allow:
    """One comment. covers: the line it speaks of. rule: "" and `wrong` set when it cannot be taken."""

    line: int
    covers: int
    rule: str
    wrong: str = ""


def allows(raw: bytes) -> list[Allow]:
    """The comments of a file that speak to the fence. One alone on its line covers the next line of code."""
    if b"onefold:" not in raw:
        return []
    found: list[tuple[int, str, bool]] = []
    lines: dict[int, bool] = {}
    try:
        for token in tokenize.tokenize(io.BytesIO(raw).readline):
            if token.type == tokenize.COMMENT:
                alone = not token.line[: token.start[1]].strip()
                found.append((token.start[0], token.string, alone))
            elif token.type not in (tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING):
                lines[token.start[0]] = True
    except (tokenize.TokenError, SyntaxError, ValueError):
        return []  # what cannot be read is told of already
    code = sorted(lines)
    read = []
    for line, text, alone in found:
        said = MARK.match(text)
        if said is not None:
            covers = next((other for other in code if other > line), line) if alone else line
            read.append(_read(line, covers, said["said"].strip()))
    return read


def _read(line: int, covers: int, said: str) -> Allow:
    match = ALLOW.match(said)
    if match is None:
        return Allow(line, covers, "", f"`# onefold: {said}` is not understood")
    rule = match["rule"]
    if rule not in RULES or rule in NEVER:
        close = nearest(rule, [name for name in RULES if name not in NEVER])
        hint = f"; did you mean `{close}`?" if close else ""
        return Allow(line, covers, "", f"`# onefold: allow {rule}` names no rule that can be allowed{hint}")
    if BECAUSE.match(match["rest"]) is None:
        return Allow(line, covers, "", f"`# onefold: allow {rule}` gives no reason, so it allows nothing")
    return Allow(line, covers, rule)


def settle(file: str, found: Iterable[Finding], allowed: Collection[Allow], *, asked: bool) -> list[Finding]:
    """The findings of one file that stay. asked: the file was to be checked itself, so its idle comments are told of."""
    used: set[Allow] = set()
    stay = []
    for finding in found:
        silent = [one for one in allowed if one.rule == finding.rule and one.covers == finding.line]
        used.update(silent)
        if not silent:
            stay.append(finding)
    cure = sentence(RULES["allow"].instead[""])
    for one in allowed if asked else ():
        if one.wrong:
            stay.append(Finding(file, one.line, "allow", sentence(one.wrong), cure))
        elif one not in used:
            problem = f"`# onefold: allow {one.rule}` silences nothing: line {one.covers} has no such finding."
            stay.append(
                Finding(file, one.line, "allow", problem, "Take the comment out, or put it where the finding is.")
            )
    return stay
