"""fence.checking - the whole check: files in, findings out.

For: `check`.
Never: loads, runs or opens anything; raises for what is written in a file.
Was wrong once: importing the file to look at its Module. Loading it sent a mail.
"""

from __future__ import annotations

from collections.abc import Iterable

from onefold.fence.allow import allows, settle
from onefold.fence.charts import delays
from onefold.fence.look import sentence
from onefold.fence.meaning import Meaning
from onefold.fence.places import places
from onefold.fence.rules import RULES
from onefold.fence.units import Unit, Units, Unreadable
from onefold.fence.walk import Walk
from onefold.fence.words import Find, Finding, Place, Source

NOWHERE = Place("module", "", "")


class _Told:
    """Findings, each once: a function that several places reach is told of for the first of them."""

    def __init__(self) -> None:
        self.found: dict[tuple[str, int, int, str], Finding] = {}

    def __call__(self, finding: Finding, column: int) -> None:
        self.found.setdefault((finding.file, finding.line, column, finding.rule), finding)

    def of(self, file: str) -> list[Finding]:
        return [finding for finding in self.found.values() if finding.file == file]

    @property
    def files(self) -> set[str]:
        return {finding.file for finding in self.found.values()}


def check(sources: Iterable[Source], find: Find | None = None) -> list[Finding]:
    """Everything that may not stand where it stands, by file and line. Comments that allow have been heard.

    find: gives the user's own file behind an import; without it each file is read by itself.
    """
    units = Units(find or (lambda file, module, level: None))
    meaning = Meaning(units)
    told = _Told()
    asked: list[Unit] = []
    for source in sources:
        try:
            asked.append(units.add(source))
        except Unreadable as fault:
            told(_unreadable(source.file, fault.line, str(fault)), 0)
    walk = Walk(meaning, told)
    for unit in asked:
        try:
            _check_one(meaning, walk, unit, told)
        except RecursionError:
            told(_unreadable(unit.file, 1, "it is nested too deeply to be followed"), 0)
    raw = {unit.file: unit.raw for unit in units.all()}
    wanted = {unit.file for unit in asked}
    stay: list[Finding] = []
    for file in sorted(told.files | wanted):
        stay += settle(file, told.of(file), allows(raw.get(file, b"")), asked=file in wanted)
    return sorted(stay)


def _check_one(meaning: Meaning, walk: Walk, unit: Unit, told: _Told) -> None:
    found = places(meaning, unit)
    for root in found.roots:
        walk.root(root)
    for chart in found.charts:
        for where, line, key in delays(meaning, chart.node, unit):
            rule = RULES["delayed"]
            problem = f"in {chart.place.owner}, `{key}` {rule.verb}: {rule.reason(chart.place)}"
            told(Finding(where.file, line, rule.name, sentence(problem), sentence(rule.cure(chart.place))), 0)
    for call, place in found.unsaved:
        rule = RULES["no-snapshot"]
        problem = f"{place.owner} {rule.verb}: {rule.reason(place)}"
        found_here = Finding(unit.file, call.lineno, rule.name, sentence(problem), sentence(rule.cure(place)))
        told(found_here, call.col_offset)


def _unreadable(file: str, line: int, why: str) -> Finding:
    rule = RULES["syntax"]
    return Finding(file, line, rule.name, sentence(f"the file {rule.verb}: {why}"), sentence(rule.cure(NOWHERE)))
