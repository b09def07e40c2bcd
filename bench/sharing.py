"""bench.sharing - one, two and four processes on one Postgres, each a child of its own.

For: whole folds a second of all of them together, and of one beside DBOS and workerd.
Never: keeps a process between two turns: one that stood still would have lost what it owns; gives two processes one
actor to write.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from bench import places
from bench.child import Child, Failed
from bench.honesty import Check
from bench.interleave import Case, Rounds, turn
from bench.measures import Sample, spin
from bench.places import log, scratch
from bench.postgres import postgres
from bench.scenes import module
from bench.standing import Gaps, Made, peer, standing
from bench.turns import counted

TOGETHER = (1, 2, 4)
CALLERS = 64  # of each process
WARM_S = 0.3


def processes(rounds: int, seconds: float, failed: Gaps) -> tuple[Rounds, list[Check]]:
    """The rounds, and for each number of processes what was answered beside what another of them reads. Raises: Missing."""
    wrk = places.tool("wrk")
    made: Made = {
        "dbos": lambda: peer("dbos_runs", scratch("sharing-dbos"), "postgres"),
        "workerd": lambda: module("workerd", wrk, places.workerd(), scratch("sharing-workerd")),
    }
    peers = [Case("dbos", "count", CALLERS, seconds), Case("workerd", "post", CALLERS, seconds)]
    taken, checks = Rounds(), dict[int, Check]()
    with postgres(scratch("sharing")) as url, standing(made, failed) as children:
        for number in range(rounds):
            for many in TOGETHER:
                label = f"shared fold {many}"
                if label not in taken.failed:
                    _together(taken, checks, url, number, many, seconds)
            for case in peers:
                if case.contender in children:
                    turn(taken, children[case.contender], case, warm=number == 0)
            print(f"round {number + 1} of {rounds} done", file=sys.stderr)
    return taken, list(checks.values())


def _together(taken: Rounds, checks: dict[int, Check], url: str, number: int, many: int, seconds: float) -> None:
    """One turn of so many processes at once."""
    label = f"shared fold {many}"
    try:
        with _started(url, number * 10 + many, many) as children:
            warm = _all(children, WARM_S)
            gc.collect()
            taken.spins.append(spin())
            samples = _all(children, seconds)
            taken.samples.setdefault(label, []).append(summed(samples))
            answered = sum(each.count for each in (*warm, *samples))
            there = sum(
                sum(children[(at + 1) % many].ask("read", at, 1)["counts"]) for at in range(many)
            )  # read by another than wrote
            check = counted(f"processes: counts of {many} on one Postgres read back", answered, there)
            if many not in checks or checks[many].holds:
                checks[many] = check
    except Failed as fault:
        taken.failed[label] = str(fault)
        print(f"{label}: {fault}", file=sys.stderr)


def summed(samples: list[Sample]) -> Sample:
    """What several reached side by side: rates and counts added, the worst of the latencies."""
    return Sample(
        sum(each.rate for each in samples),
        max(each.p50 for each in samples),
        max(each.p99 for each in samples),
        sum(each.count for each in samples),
    )


def _all(children: list[Child], seconds: float) -> list[Sample]:
    """All of them at once. Raises: Failed."""
    for child in children:
        child.tell("fold", CALLERS, seconds)
    told = [child.hear(seconds + 90) for child in children]
    for each in told:
        if "failed" in each:
            raise Failed(each["failed"])
    return [Sample(**each) for each in told]


@contextmanager
def _started(url: str, run: int, many: int) -> Iterator[list[Child]]:
    """So many processes, each ready. Raises: Failed."""
    children: list[Child] = []
    try:
        for at in range(many):
            children.append(Child(f"sharing {at}", module("sharing", url, run, at), log("sharing"), wait=False))
        for child in children:
            child.hear(120)
        yield children
    finally:
        for child in children:
            child.close()
