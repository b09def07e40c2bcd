"""bench.sharing - one, two and four processes on one Postgres, each a child of its own: a node of a fleet.

For: whole folds a second of all of them together, and of one alone beside DBOS and workerd; a turn that is routed
between two nodes beside the same turn asked where its cell is; how long the actors of a killed node are away.
Never: keeps a node between two turns: one that stood still would have lost what it owns. Gives two processes one actor
to write where folds are counted.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from bench import places
from bench.child import READY_S, Child, Failed
from bench.contenders.counting import ACTORS
from bench.honesty import Check
from bench.interleave import Case, Rounds, turn
from bench.measures import Sample, median, spin
from bench.places import log, scratch
from bench.postgres import postgres
from bench.scenes import Told, module
from bench.standing import Gaps, Made, peer, standing
from bench.turns import counted
from bench.wrk import free_port

TOGETHER = (("alone", 1), ("fleet", 1), ("fleet", 2), ("fleet", 4))
CALLERS = 64  # of each process
ROUTED = (1, 8, 64)
WARM_S = 0.3
SPREAD_S = 60.0  # how long nodes may take to share what there is
AWAY_S = 60.0  # beyond the lease: a killed node's actors that are not there by then are lost


def processes(rounds: int, seconds: float, failed: Gaps) -> tuple[Rounds, list[Check]]:
    """The rounds, and for each number of processes what was answered beside what another of them reads. Raises: Missing."""
    wrk = places.tool("wrk")
    made: Made = {
        "dbos": lambda: peer("dbos_runs", scratch("sharing-dbos"), "postgres"),
        "workerd": lambda: module("workerd", wrk, places.workerd(), scratch("sharing-workerd")),
    }
    peers = [Case("dbos", "count", CALLERS, seconds), Case("workerd", "post", CALLERS, seconds)]
    taken, checks = Rounds(), dict[str, Check]()
    with postgres(scratch("sharing")) as server, standing(made, failed) as children:
        for number in range(rounds):
            for how, many in TOGETHER:
                if f"{how} fold {many}" not in taken.failed:
                    _together(taken, checks, server, how, many, seconds)
            for case in peers:
                if case.contender in children:
                    turn(taken, children[case.contender], case, warm=number == 0)
            print(f"round {number + 1} of {rounds} done", file=sys.stderr)
    return taken, list(checks.values())


def _together(taken: Rounds, checks: dict[str, Check], server: str, how: str, many: int, seconds: float) -> None:
    """One turn of so many processes at once."""
    label = f"{how} fold {many}"
    try:
        with started(server, many, alone=how == "alone") as children:
            warm = _all(children, WARM_S)
            gc.collect()
            taken.spins.append(spin())
            samples = _all(children, seconds)
            taken.samples.setdefault(label, []).append(summed(samples))
            answered = sum(each.count for each in (*warm, *samples))
            reads = [children[(at + 1) % many].ask("read", at, 1) for at in range(many)]  # by another than wrote it
            _held(
                checks, f"processes: counts of {label} read back", answered, sum(sum(each["counts"]) for each in reads)
            )
    except Failed as fault:
        taken.failed[label] = str(fault)
        print(f"{label}: {fault}", file=sys.stderr)


def _held(checks: dict[str, Check], what: str, answered: int, there: int) -> None:
    """The last check of that name; the first that does not hold stays."""
    if what not in checks or checks[what].holds:
        checks[what] = counted(what, answered, there)


def routed(rounds: int, seconds: float, look: Callable[[Child, str, int], None]) -> tuple[Rounds, list[Check]]:
    """Turns of cells of node b: asked on node a, and on b itself, in turns. look: is shown node a when all is counted.
    Raises: Failed, Missing.
    """
    taken, checks = Rounds(), dict[str, Check]()
    with postgres(scratch("routed")) as server, started(server, 2) as (a, b):
        a.ask("pick", ACTORS, 1)
        for number in range(rounds):
            for callers in ROUTED:
                for child, workload in ((a, "there"), (b, "here")):
                    turn(taken, child, Case("node", workload, callers, seconds), warm=number == 0, alone=False)
        answered = sum(taken.answered.values())
        there = sum(b.ask("tallies", 0, 1)["counts"])
        _held(checks, "routed: counts of both ways read back", answered, there)
        for callers in (ROUTED[0], ROUTED[-1]):
            look(a, "there", callers)
    return taken, list(checks.values())


def takeovers(lease_s: float, times: int) -> tuple[Told, Check]:
    """Seconds from a kill -9 of a node until the first of its actors has answered on another, and until all have.
    Raises: Failed, Missing.
    """
    taken: list[Told] = []
    answered = there = 0
    with postgres(scratch("takeover")) as server:
        for _ in range(times):
            with started(server, 2, lease=f"{lease_s:g} seconds") as (a, b):
                b.ask("pick", ACTORS, 1)
                before = b.ask("there", CALLERS, 0.5)["count"]
                start = time.perf_counter()
                a.kill()
                b.tell("answered", 0, lease_s + AWAY_S)
                told = b.hear(lease_s + AWAY_S + 30)
                if "failed" in told:
                    raise Failed(told["failed"])
                taken.append({name: told[name] - start for name in ("first", "last")})
                answered += before + told["count"]
                there += sum(b.ask("tallies", 0, 1)["counts"])
    check = counted(f"takeover: counts after {times} kills read back, lease {lease_s:g} s", answered, there)
    return {name: median([each[name] for each in taken]) for name in ("first", "last")}, check


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
def started(server: str, many: int, *, alone: bool = False, lease: str = "") -> Iterator[list[Child]]:
    """So many processes on a database of their own, each with actors enough. Raises: Failed."""
    url = _database(server)
    children: list[Child] = []
    try:
        for at in range(many):
            words = [] if alone else [free_port(), *([lease] if lease else [])]
            children.append(Child(f"node {at}", module("noded", url, at, *words), log("noded"), wait=False))
        for child in children:
            child.hear(READY_S)
        for child in children:
            child.ask("own", ACTORS, SPREAD_S)
        yield children
    finally:
        for child in children:
            if child.process.returncode is None:
                child.close()


def _database(server: str) -> str:
    """A new one on that server: its URL."""
    import psycopg

    name = f"run_{time.time_ns():x}"
    with psycopg.connect(server, autocommit=True) as conn:
        conn.execute(f"create database {name}")
    return f"{server.rpartition('/')[0]}/{name}"
