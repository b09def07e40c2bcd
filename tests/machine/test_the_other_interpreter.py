"""Charts made by chance do the same here and in XState: where they are, what they hold, what they owe.

XState runs twice: as it is, and with the departures of docs/charts.md edited into it. Onefold equals the second
on every chart, and the first on most: then the departures are all there are, and they are rare.
"""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from onefold.machine.definition import load
from onefold.machine.step import Trace, trace, trace_start
from onefold.machine.words import Endless, Plain
from tests.machine.random_charts import ACTIONS, BOOMS, EFFECTS, GUARDS, random_chart

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SEEDS = range(600)
SAME_AT_LEAST = 0.85  # of the charts, without any amendment; 0.93 when this was written
pytestmark = [pytest.mark.needs_node, pytest.mark.timeout(900)]

Told = list[dict[str, Any] | str]


def shown(snapshot: dict[str, Any]) -> dict[str, Any]:
    """What both sides say of a snapshot."""
    told: dict[str, Any] = {"status": snapshot["status"]}
    if snapshot["status"] == "error":
        return told
    told["value"] = snapshot["value"]
    told["context"] = snapshot["context"]
    if snapshot.get("output") is not None:
        told["output"] = snapshot["output"]
    if snapshot["status"] == "active" and "children" in snapshot:
        told["children"] = {id: shown(child["snapshot"]) for id, child in snapshot["children"].items()}
    return told


def told(done: Trace) -> dict[str, Any]:
    effects = [[list(effect.actor), effect.name, effect.value] for effect in done.effects]
    heard = sorted({arrow.event.rpartition(".")[0] or arrow.event or "always" for arrow in done.taken})
    return {**shown(done.snapshot), "effects": effects, "failed": bool(BOOMS), "heard": heard}


def ours(chart: dict[str, Any], events: list[str]) -> Told:
    """Each step of Onefold; a text at the end where it stopped."""
    loaded = load(chart, guards=GUARDS, actions=ACTIONS, effects=EFFECTS)
    lines: Told = []
    try:
        BOOMS.clear()
        done = trace_start(loaded, NOW)
        lines.append(told(done))
        for name in events:
            if done.snapshot["status"] != "active":
                break
            BOOMS.clear()
            done = trace(loaded, json.loads(json.dumps(done.snapshot)), Plain(name), NOW)
            lines.append(told(done))
    except Endless:
        lines.append("endless")
    except (LookupError, ValueError) as fault:  # an error that no state hears
        lines.append(str(fault))
    return lines


def theirs(charts: Path, cases: list[tuple[dict[str, Any], list[str]]], *amended: str) -> list[Told]:
    oracle = Path(__file__).with_name("xstate_oracle.mjs")
    node = charts.parent / "bin" / "node"
    command = [str(node) if node.exists() else "node", str(oracle), str(charts / "xstate" / "dist"), *amended]
    lines = "".join(json.dumps({"chart": chart, "events": events}) + "\n" for chart, events in cases)
    ran = subprocess.run(command, input=lines, capture_output=True, text=True, check=False, timeout=300)
    assert ran.returncode == 0, ran.stderr
    return [json.loads(line) for line in ran.stdout.splitlines()]


def by_actor(effects: list[Any], *, root_only: bool) -> dict[str, list[Any]]:
    """Effects of each actor in order; between actors XState has another order when it starts."""
    found: dict[str, list[Any]] = {}
    for actor, name, value in effects:
        if not (root_only and actor):
            found.setdefault("/".join(actor), []).append([name, value])
    return found


def same(here: Told, there: Told) -> bool:
    for at, line in enumerate(here):
        other = there[at] if at < len(there) else "nothing"
        if isinstance(line, str):  # an error that nobody hears: XState keeps it as its last snapshot
            return isinstance(other, dict) and other["status"] == "error"
        if isinstance(other, str):
            return False
        failed = line["failed"]  # what a failing child still owed is taken back here, and was done there
        if by_actor(line["effects"], root_only=failed) != by_actor(other["effects"], root_only=failed):
            return False
        if any(line.get(part) != other.get(part) for part in ("status", "value", "context", "output", "children")):
            return False
    return len(here) == len(there) or isinstance(there[-1], str)


@cache
def played(charts: Path) -> list[tuple[int, Told, Told, Told]]:
    """(seed, here, XState as it is, XState amended), for all charts that come to rest."""
    cases = [(seed, *random_chart(seed)) for seed in SEEDS]
    mine = [(seed, chart, events, ours(chart, events)) for seed, chart, events in cases]
    rest = [case for case in mine if case[3][-1] != "endless"]
    asked = [(chart, events) for _, chart, events, _ in rest]
    with ThreadPoolExecutor(2) as both:
        plain = both.submit(theirs, charts, asked)
        amended = both.submit(theirs, charts, asked, str(charts / "amended"))
        return [
            (seed, here, one, two)
            for (seed, _, _, here), one, two in zip(rest, plain.result(), amended.result(), strict=True)
        ]


def test_with_the_departures_every_chart_does_the_same(charts: Path) -> None:
    assert [seed for seed, here, _, amended in played(charts) if not same(here, amended)] == []


def test_without_them_most_charts_do_the_same(charts: Path) -> None:
    agree = [same(here, plain) for _, here, plain, _ in played(charts)]
    assert sum(agree) / len(agree) > SAME_AT_LEAST


def test_the_charts_are_worth_asking(charts: Path) -> None:
    """Nothing that matters is missing among them, and few run for ever."""
    seen: Counter[str] = Counter()
    for _, here, _, _ in played(charts):
        for line in here:
            if isinstance(line, str):
                seen["stopped by an error"] += 1
                continue
            seen["steps"] += 1
            seen[line["status"]] += 1
            seen["effects"] += bool(line["effects"])
            seen["a failed action"] += line["failed"]
            seen.update(line["heard"])
    assert len(played(charts)) > 0.85 * len(SEEDS)
    wanted = ["done", "effects", "a failed action", "stopped by an error"]
    wanted += ["always", "done.actor", "error.actor", "done.state.m", "R1", "P1", "*", "e"]
    assert {word: seen[word] for word in wanted if seen[word] < 5} == {}
    assert seen["steps"] > 4000
