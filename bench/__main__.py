"""bench.__main__ - `python -m bench`: everything, one after the other, and bench/RESULTS.md at its end.

For: the order of the run, `--quick`, `--rounds`, and parts of it by name.
Never: leaves a process running; keeps its stores.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from bench import honesty, places, profiles, scenes, sharing
from bench.child import Child, Failed
from bench.goals import START, Line, Measured, lines
from bench.goals_turns import takeover_lines, turn_lines
from bench.interleave import Case, run
from bench.places import SCRATCH, Missing, log, scratch
from bench.results import report
from bench.scenes import module
from bench.standing import Gaps, Made, peer, standing
from bench.turns import SETS, read_back

Profiles = dict[str, list[str]]
TIMERS = ("onefold", "apscheduler", "huey", "dbos")
DBOS_TIMERS = 1_000  # 10,000 in a minute are beyond it: 18 ms of CPU each
SLEPT_S = 10.0  # how long the sleepers of a profile sleep, at most
TASKS = 500
NODES = ("processes", "routed", "takeover")
PARTS = ("rates", "reflexes", "timers", "sleepers", "waiters", "starts", "growth", *SETS, *NODES, "honesty")


@dataclass(frozen=True, slots=True)
class Size:
    """How much of everything."""

    rounds: int
    seconds: float
    runs: int
    spread_s: float
    starts: int
    sizes: tuple[int, ...]
    profiled_s: float
    at_rest: tuple[int, ...]
    loaded: tuple[int, ...]
    settled: tuple[int, ...]
    leases_s: tuple[float, ...]
    kills: int


FULL = Size(
    rounds=4,
    seconds=2.0,
    runs=10_000,
    spread_s=60.0,
    starts=7,
    sizes=(100, 1_000, 10_000),
    profiled_s=3.0,
    at_rest=(1_000, 1_000_000),
    loaded=(1, 1_000, 100_000),
    settled=(1_000, 1_000_000),
    leases_s=(2.0, 10.0),
    kills=3,
)
QUICK = Size(
    rounds=1,
    seconds=1.0,
    runs=300,
    spread_s=2.0,
    starts=1,
    sizes=(10, 100, 300),
    profiled_s=1.0,
    at_rest=(200, 2_000),
    loaded=(1, 100),
    settled=(100, 1_000),
    leases_s=(2.0,),
    kills=1,
)


def commands() -> Made:
    """How each contender is started."""
    wrk = places.tool("wrk")
    return {
        "fold": lambda: module("fold", scratch("fold")),
        "disk": lambda: module("disk", scratch("disk")),
        "served": lambda: module("served", wrk, "post", scratch("served")),
        "workerd": lambda: module("workerd", wrk, places.workerd(), scratch("workerd")),
        "runs": lambda: module("runs", scratch("runs")),
        "dbos": lambda: peer("dbos_runs", scratch("dbos")),
        "restate": lambda: peer("restate_runs", wrk, places.restate_server(), scratch("restate")),
        "absurd": lambda: peer("absurd_runs", scratch("absurd")),
        "tool": lambda: module("served", wrk, "mcp", scratch("tool")),
        "package": lambda: module("mcp_package", wrk),
        "chart": lambda: module("stepping"),
        "xstate": lambda: [places.node(), *_chart_of_xstate()],
    }


def fan_commands() -> Made:
    """Who can turn one trigger into many tasks."""
    return {
        "reflexes": lambda: module("reflexes", scratch("reflexes")),
        "reflexes_pg": lambda: module("reflexes", scratch("reflexes-pg"), "postgres"),
        "dbos": lambda: peer("dbos_runs", scratch("dbos-fan")),
        "dbos_pg": lambda: peer("dbos_runs", scratch("dbos-fan-pg"), "postgres"),
        "absurd": lambda: peer("absurd_runs", scratch("absurd-fan")),
        "procrastinate": lambda: peer("procrastinate_runs", scratch("procrastinate")),
    }


def _chart_of_xstate() -> list[str]:
    here = places.ROOT / "bench" / "contenders"
    return [str(here / "stepping.mjs"), places.xstate(), str(here / "order.json")]


def cases(seconds: float) -> list[Case]:
    """One round, in this order."""
    both = [(name, callers) for callers in (1, 64) for name in ("fold", "disk")]
    return [
        *(Case(name, "fold" if name == "fold" else "rows", callers, seconds) for name, callers in both),
        *(Case(name, "post", callers, seconds) for callers in (1, 8, 64) for name in ("served", "workerd")),
        *(Case(n, "ten", callers, seconds) for callers in (1, 64) for n in ("runs", "dbos", "restate", "absurd")),
        *(Case(name, "mcp", callers, seconds) for callers in (8, 64) for name in ("tool", "package")),
        *(Case(name, "step", 1, seconds) for name in ("chart", "xstate")),
    ]


def fans(taken: Measured, size: Size, failed: Gaps) -> None:
    """One trigger to many tasks to one settle, in interleaved rounds of their own: some take half a minute of each."""
    known = fan_commands()
    turns = [Case(name, "fan", TASKS) for name in known]
    turns += [Case(name, "pair", TASKS) for name in known if name.startswith("reflexes")]
    with standing(known, failed) as children:
        taken.fans = run(children, turns, size.rounds, warm=size is not QUICK)
        failed.update(taken.fans.failed)


def rates(taken: Measured, size: Size, failed: Gaps) -> Profiles:
    """The interleaved rounds; the profiles of those of ours that fall short."""
    with standing(commands(), failed) as children:
        taken.rounds = run(children, cases(size.seconds), size.rounds, warm=size is not QUICK)
        failed.update(taken.rounds.failed)
        return falling_short(lines(taken), children, size, failed)


def sets(taken: Measured, size: Size, parts: Sequence[str], failed: Gaps) -> tuple[Profiles, list[honesty.Check]]:
    """Cells, programs and mail, each in rounds of its own, and the counts that each leaves."""
    found: Profiles = {}
    checks: list[honesty.Check] = []
    for part, make in SETS.items():
        if part in parts:
            given = make(size.seconds)
            with standing(given.made, failed) as children:
                warm = given.warm and size is not QUICK
                rounds = taken.turns[part] = run(children, given.cases, size.rounds, warm=warm)
                failed.update({f"{part}: {label}": why for label, why in rounds.failed.items()})
                checks += read_back(part, given, children, rounds, failed)
                found.update(falling_short(turn_lines(taken, part), children, size, failed))
    return found, checks


def nodes(taken: Measured, size: Size, parts: Sequence[str], failed: Gaps) -> tuple[Profiles, list[honesty.Check]]:
    """Several processes on one Postgres, and the counts that they leave."""
    found: Profiles = {}
    checks: list[honesty.Check] = []

    def look(child: Child, workload: str, callers: int) -> None:
        row = f"a routed turn, {callers} caller{'s' if callers > 1 else ''}: the node that asks"
        try:
            found[row] = profiles.look(child, workload, callers, size.profiled_s)
        except (Failed, Missing) as fault:
            failed[f"profile of {row}"] = str(fault)

    for part, measure in (
        ("processes", partial(sharing.processes, size.rounds, size.seconds, failed)),
        ("routed", partial(sharing.routed, size.rounds, size.seconds, look)),
    ):
        if part in parts:
            try:
                rounds, held = measure()
            except (Failed, Missing) as fault:
                failed[part] = str(fault)
                continue
            taken.turns[part] = rounds
            checks += held
            failed.update({f"{part}: {label}": why for label, why in rounds.failed.items()})
    for lease_s in size.leases_s if "takeover" in parts else ():
        try:
            taken.takeovers[lease_s], check = sharing.takeovers(lease_s, size.kills)
            checks.append(check)
        except (Failed, Missing) as fault:
            failed[f"takeover, lease {lease_s:g} s"] = str(fault)
    return found, checks


def falling_short(table: Sequence[Line], children: Mapping[str, Child], size: Size, failed: Gaps) -> Profiles:
    """Where the time of each workload goes that falls short, by row; of those that these contenders can show."""
    found: Profiles = {}
    for line in table:
        if line.reached != "no" or line.profile is None or line.row in found or line.profile[0] not in children:
            continue
        name, workload, callers = line.profile
        for child in children.values():
            child.stand()
        children[name].go_on()
        try:
            found[line.row] = profiles.look(children[name], workload, callers, size.profiled_s)
        except (Failed, Missing) as fault:
            failed[f"profile of {line.row}"] = str(fault)
    return found


def slow_scenes(table: Sequence[Line], size: Size, failed: Gaps) -> Profiles:
    """The same for sleepers and starts, which have no contender of the rounds."""
    found: Profiles = {}
    if any(line.reached == "no" and line.profile == START for line in table):
        found["starts"] = profiles.imports(module("first", scratch("first") / "store"))
    if any(line.reached == "no" and line.profile and line.profile[0] == "sleeping" for line in table):
        child = Child("sleeping", module("sleeping", scratch("sleeping")), log("sleeping"))
        try:
            found.update(falling_short(table, {"sleeping": child}, replace(size, profiled_s=SLEPT_S), failed))
        finally:
            child.close()
    return found


def rest(taken: Measured, size: Size, parts: Sequence[str], failed: Gaps) -> None:
    """The scenes."""
    attempted = scenes.attempted
    if "reflexes" in parts:
        for count in size.loaded:
            taken.loaded[count] = attempted(f"{count} reflexes", partial(scenes.advances, "loaded", count), failed)
        for count in size.settled:
            taken.settled[count] = attempted(f"{count} runs", partial(scenes.advances, "settled", count), failed)
    if "sleepers" in parts:
        taken.minute = attempted("sleepers over a while", lambda: scenes.sleepers(size.runs, size.spread_s), failed)
        taken.instant = attempted("sleepers at one instant", lambda: scenes.sleepers(size.runs, 0), failed)
    if "timers" in parts:
        for kind in TIMERS:
            count = min(size.runs, DBOS_TIMERS) if kind == "dbos" else size.runs
            taken.timers[kind] = attempted(
                f"timers of {kind}", partial(scenes.timers, kind, count, size.spread_s), failed
            )
        for count in size.at_rest:
            taken.at_rest[count] = attempted(f"{count} timers at rest", partial(scenes.timers_at_rest, count), failed)
    if "waiters" in parts:
        for count in size.sizes:
            taken.waiters[count] = attempted(f"{count} waiters", partial(scenes.waiters, count), failed)
    if "starts" in parts:
        taken.start = attempted("starts", lambda: scenes.starts(size.starts), failed)
        taken.tool_start = attempted("starts with MCP", lambda: scenes.tool_starts(size.starts), failed)
        taken.spaces = attempted("starts with spaces at rest", lambda: scenes.spaces_at_rest(size.starts), failed)
    if "growth" in parts:
        taken.histories = attempted("history", lambda: scenes.histories(size.sizes), failed)
        taken.wakes = attempted("wakes", lambda: scenes.wakes(size.sizes), failed)


def truths(failed: Gaps) -> list[honesty.Check]:
    found: dict[str, str | None] = {"strace": None, "workerd": None}
    for name, find in (("strace", partial(places.tool, "strace")), ("workerd", places.workerd)):
        try:
            found[name] = find()
        except Missing as missing:
            failed[name] = str(missing)
    return honesty.checks(places.tool("wrk"), found["strace"], found["workerd"], failed)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Onefold beside its peers, in one run.")
    parser.add_argument("--quick", action="store_true", help="a minute: that everything works, no measurement")
    parser.add_argument("--rounds", type=int, help="interleaved rounds; 4 and more make a measurement")
    parser.add_argument("--part", action="append", choices=PARTS, help="only this part; may be given again")
    parser.add_argument("--to", type=Path, help="where the report goes instead of bench/RESULTS.md")
    asked = parser.parse_args()
    size = QUICK if asked.quick else FULL
    if asked.rounds:
        size = replace(size, rounds=asked.rounds)
    parts = asked.part or PARTS
    failed: Gaps = {}
    taken = Measured(runs=size.runs, spread_s=size.spread_s)
    try:
        found = rates(taken, size, failed) if "rates" in parts else {}
        if "reflexes" in parts:
            fans(taken, size, failed)
        rest(taken, size, parts, failed)
        found.update(slow_scenes(lines(taken), size, failed))
        checks = []
        for measure in (sets, nodes):
            looked, held = measure(taken, size, parts, failed)
            found.update(looked)
            checks += held
        checks += truths(failed) if "honesty" in parts else []
    except Missing as missing:
        print(missing, file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(SCRATCH, ignore_errors=True)
    table = [*lines(taken), *turn_lines(taken), *takeover_lines(taken)]
    written = report(taken, table, checks, found, failed, rounds=size.rounds, quick=asked.quick)
    place = asked.to or (SCRATCH.parent / "bench-quick.md" if asked.quick or asked.part else places.RESULTS)
    place.write_text(written, encoding="utf-8")
    print(written)
    return 0 if all(check.holds for check in checks) else 1


if __name__ == "__main__":
    sys.exit(main())
