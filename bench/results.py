"""bench.results - bench/RESULTS.md: what was measured, on what, and what falls short.

For: text out of lines. Never: leaves out a row that was not reached, or one that could not be measured.
"""

from __future__ import annotations

import importlib.metadata
import platform
import subprocess
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from bench.goals import Line, Measured, number
from bench.honesty import Check
from bench.measures import median
from bench.places import PACKAGES, PEERS, ROOT

OURS = ("apsw", "msgspec", "pydantic", "uvicorn", "uvloop", "httptools", "mcp")


def report(
    taken: Measured,
    lines: Sequence[Line],
    checks: Sequence[Check],
    profiles: Mapping[str, Sequence[str]],
    failed: Mapping[str, str],
    *,
    rounds: int,
    quick: bool,
) -> str:
    """The whole file."""
    parts = [
        "# What was measured\n",
        _opening(taken, rounds, quick=quick),
        "## Goals\n",
        _goals(lines),
        "## Honesty\n",
        _table(("check", "", "holds"), [(c.what, c.told, "yes" if c.holds else "**no**") for c in checks]),
        "## Rates\n",
        _rates(taken),
    ]
    if failed:
        parts += ["## Not measured\n", "".join(f"- {name}: {why}\n" for name, why in failed.items())]
    if profiles:
        parts += ["## Where the time of what falls short goes\n", _profiles(profiles)]
    return "\n".join(parts)


def _opening(taken: Measured, rounds: int, *, quick: bool) -> str:
    spins = [spin for rounds in taken.all_rounds for spin in rounds.spins] or [0.0]
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in OURS)
    peers = ", ".join((*PEERS, *PACKAGES)).replace("==", " ")
    text = (
        f"`python -m bench`{' --quick' if quick else ''}, {datetime.now(UTC):%Y-%m-%d %H:%M} UTC, "
        f"commit {commit.stdout.strip() or 'unknown'}, {rounds} interleaved round{'s' if rounds > 1 else ''}; medians.\n\n"
        f"- Machine: {_processor()}, {_cores()} cores, {_memory()} GiB, Python {platform.python_version()}.\n"
        f"- Onefold with {versions}.\n"
        f"- Beside {peers}.\n"
        f"- Quiet or busy: a fixed spin before each turn took {min(spins):.0f} ns at best, {median(spins):.0f} in the "
        f"middle, {max(spins):.0f} at worst. Only ratios of one run mean anything; absolute figures move with it.\n"
        "- Contenders that are not measured stand still (SIGSTOP). HTTP is driven by one thread of wrk on the same "
        "cores. In process means `deliver_raw`: the event parsed, checked, folded with a fact, an owed row on a port "
        "that confirms, a wake, and answered after the commit was synced.\n"
        "- A turn of a cell is a method that adds one to a field, answered after its commit, under a key that the door "
        "makes. Beside it: one SQL statement of a durable object behind its output gate; get and set of a virtual object; "
        "a workflow of one transaction of DBOS, called in process from threads. Koru's figures are its own, of another "
        "machine and without a sync: they are bounds, and no ratio is made of them.\n"
    )
    if quick:
        text += "\n**A quick run: it shows that everything works. Its figures are no measurement.**\n"
    return text


def _goals(lines: Sequence[Line]) -> str:
    rows = []
    for line in lines:
        value = "-" if line.value is None else f"{number(line.value)} {line.unit}"
        must, aim = (_bound(bound, line) for bound in (line.must, line.aim))
        reached = "**no**" if line.reached == "no" else line.reached
        rows.append((line.row, line.figure, value, must, aim, reached))
    return _table(("workload", "figure", "measured", "must reach", "aim", "reached"), rows)


def _bound(bound: float | None, line: Line) -> str:
    return "" if bound is None else f"{'≤' if line.less else '≥'} {bound:g} {line.unit}"


def _rates(taken: Measured) -> str:
    rows = []
    named = [("", rounds) for rounds in (taken.rounds, taken.fans)]
    for part, rounds in [*named, *((f"{part}: ", rounds) for part, rounds in taken.turns.items())]:
        for label, samples in rounds.samples.items():
            rates = [each.rate for each in samples]
            middle = [number(rounds.middle(label, name)) for name in ("rate", "p50", "p99")]
            rows.append((part + label, middle[0], f"{number(min(rates))} to {number(max(rates))}", *middle[1:]))
    return _table(("contender, workload, callers", "a second", "from, to", "p50 ms", "p99 ms"), rows)


def _profiles(profiles: Mapping[str, Sequence[str]]) -> str:
    told = (
        "Stacks sampled from outside while the workload runs: share of the samples, microseconds an answer, and the "
        "line on top. Time inside a library's C code stands at the line that called it; where one caller waits for "
        "the disk, that line is the commit.\n\n"
    )
    return told + "\n".join(f"### {row}\n\n```text\n" + "\n".join(lines) + "\n```\n" for row, lines in profiles.items())


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    cells = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |\n" for row in cells)


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.is_file():
        for line in info.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.machine()


def _cores() -> int:
    import os

    return os.cpu_count() or 1


def _memory() -> int:
    import os

    return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30)
