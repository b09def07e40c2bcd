"""The list of the public suites in docs/charts.md, made anew: `.venv/bin/python -m tests.machine.scxml.report`.

For: three tables of counts and reasons, and the names of what passes. A test holds the document to it.
Never: leaves a file out. Each is passed, beyond what a chart is, or differs with a reason that stands here.
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections import Counter, defaultdict
from pathlib import Path
from typing import Final

from tests.machine.scxml.play import Verdict, verdict

ROOT: Final = Path(__file__).resolve().parents[3]
DOCUMENT: Final = ROOT / "docs" / "charts.md"
BEGIN: Final = "<!-- made by tests/machine/scxml/report.py from here -->"
END: Final = "<!-- to here -->"
SUITES: Final = (
    ("SCION", "scion/test", "the charts of SCION's test framework 2.0.16"),
    (
        "W3C, ECMAScript",
        "scion/test/w3c-ecma",
        "the W3C's charts, with expressions in ECMAScript, from the same package",
    ),
    (
        "W3C, Python",
        "statemachine/tests/scxml/w3c",
        "the W3C's charts, with expressions in Python, from python-statemachine 3.2.2",
    ),
)
DIFFERS: Final = {
    "156": "an action that fails changes nothing; SCXML keeps what a loop did before it failed",
}


def name_of(file: Path) -> str:
    """`144` for the W3C's, `history/history0` for SCION's."""
    number = re.fullmatch(r"test(\d+[a-z]?(-\d)?)(\.txml)?\.scxml", file.name)
    if number is not None and "w3c" in str(file.parent):
        return number[1]
    return f"{file.parent.name}/{file.name.removesuffix('.scxml')}"


def verdicts(charts: Path) -> dict[str, dict[str, Verdict]]:
    """For each suite, how each of its files fares. Files that another one invokes count with that one."""
    found: dict[str, dict[str, Verdict]] = {}
    for suite, folder, _ in SUITES:
        files = sorted((charts / folder).rglob("*.scxml"))
        mine = [file for file in files if "sub" not in file.name and (suite != "SCION" or "w3c-ecma" not in str(file))]
        found[suite] = {name_of(file): verdict(file) for file in mine}
    return found


def written(charts: Path) -> str:
    """The part of the document that is made."""
    lines = [BEGIN, ""]
    found = verdicts(charts)
    lines += ["| suite | files | beyond a chart | apply | pass |", "|---|---|---|---|---|"]
    for suite, _, what in SUITES:
        words = Counter(v.word for v in found[suite].values())
        apply = len(found[suite]) - words["beyond"]
        lines.append(f"| {suite}: {what} | {len(found[suite])} | {words['beyond']} | {apply} | {words['passed']} |")
    for suite, _, _ in SUITES:
        lines += ["", f"### {suite}", ""]
        lines += _suite(found[suite])
    return "\n".join([*lines, "", END])


def _suite(files: dict[str, Verdict]) -> list[str]:
    reasons: dict[str, list[str]] = defaultdict(list)
    for name, found in files.items():
        if found.word == "beyond":
            reasons[found.reason].append(name)
    lines = ["| beyond a chart, because of | files |", "|---|---|"]
    lines += [f"| {reason} | {', '.join(names)} |" for reason, names in sorted(reasons.items())]
    for name, found in files.items():
        if found.word == "failed":
            lines += ["", f"Differs: {name}: {DIFFERS.get(name, 'NOT KNOWN: ' + found.reason)}."]
    passed: dict[str, list[str]] = defaultdict(list)
    for name in (name for name, found in files.items() if found.word == "passed"):
        folder, _, rest = name.rpartition("/")
        passed[folder].append(rest)
    said = "; ".join(f"{folder + ': ' if folder else ''}{' '.join(names)}" for folder, names in passed.items())
    lines += ["", *textwrap.wrap(f"Pass: {said}.", 118)]
    return lines


def placed(document: str, part: str) -> str:
    """The document with its made part replaced."""
    head, _, rest = document.partition(BEGIN)
    return head + part + rest.partition(END)[2]


if __name__ == "__main__":
    DOCUMENT.write_text(
        placed(DOCUMENT.read_text(encoding="utf-8"), written(ROOT / ".setup" / "charts")), encoding="utf-8"
    )
    sys.stderr.write(f"{DOCUMENT} written\n")
