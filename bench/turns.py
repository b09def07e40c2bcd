"""bench.turns - cells, programs, mail and processes: sets of contenders, each measured in rounds of its own.

For: who takes part, what is asked of them, and the counts that are read back when the rounds are over.
Never: takes a set for measured whose counts are others than were answered: an arm may silently not have run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bench import places
from bench.child import Child, Failed
from bench.contenders.tallying import CALLS
from bench.honesty import Check
from bench.interleave import Case, Rounds
from bench.places import scratch
from bench.scenes import module
from bench.standing import Gaps, Made, peer

CALLERS = (1, 8, 64)
PRODUCERS = (1, 8, 64)


@dataclass(frozen=True, slots=True)
class Set:
    """Contenders and their cases. adds: how much one answer of a workload adds to the counts, by default 1.

    cut: those that are driven by wrk, which leaves a request of each caller without its answer.
    """

    made: Made
    cases: Sequence[Case]
    adds: Mapping[str, int] = field(default_factory=dict)
    cut: frozenset[str] = frozenset()
    warm: bool = True


def cells(seconds: float) -> Set:
    """One durable increment with its reply, over HTTP and in process."""
    wrk = places.tool("wrk")
    made: Made = {
        "cell_served": lambda: module("served", wrk, "turn", scratch("cell-served")),
        "workerd": lambda: module("workerd", wrk, places.workerd(), scratch("cell-workerd")),
        "restate": lambda: peer("restate_runs", wrk, places.restate_server(), scratch("cell-restate")),
        "cell": lambda: module("cells", scratch("cell")),
        "dbos": lambda: peer("dbos_runs", scratch("cell-dbos")),
    }
    asked = {"cell_served": "turn", "workerd": "post", "restate": "count", "cell": "turn", "dbos": "count"}
    turns = [Case(name, workload, callers, seconds) for callers in CALLERS for name, workload in asked.items()]
    return Set(made, turns, cut=frozenset({"cell_served", "workerd", "restate"}))


def programs(seconds: float) -> Set:
    """A program's turn with one call and with ten, beside the interpreter alone and beside a store that is memory."""
    made: Made = {
        "cell": lambda: module("cells", scratch("cell")),
        "memory": lambda: module("cells", "memory"),
        "interpreter": lambda: module("interpreter"),
        "one_core": lambda: module("interpreter", "one_core"),
        "disk": lambda: module("disk", scratch("disk")),
    }
    turns = [
        Case(name, workload, callers, seconds)
        for callers in (1, 64)
        for workload in ("one", "ten")
        for name in ("cell", "memory", "interpreter", *(("one_core",) if callers == 1 else ()))
    ]
    return Set(made, [*turns, Case("disk", "rows", 1, seconds)], adds={"ten": CALLS})


def mail(seconds: float) -> Set:
    """Letters posted and delivered apart, both together, and the ring."""
    made: Made = {
        "mail": lambda: module("letters", scratch("letters")),
        "disk": lambda: module("disk", scratch("disk")),
    }
    apart = [Case("mail", workload, many) for many in PRODUCERS for workload in ("post", "deliver")]
    together = [Case("mail", workload, 8, seconds) for workload in ("box", "one_box", "ring", "one_ring", "hop")]
    # A letter counts where it is posted, and once: what is read back has all of them delivered.
    return Set(made, [*apart, *together, Case("disk", "rows", 1, seconds)], {"deliver": 0, "hop": 0}, warm=False)


SETS = {"cells": cells, "programs": programs, "mail": mail}


def read_back(part: str, given: Set, children: Mapping[str, Child], taken: Rounds, failed: Gaps) -> list[Check]:
    """What was answered beside what the contender's store says, of each that counts."""
    checks = []
    for name, child in children.items():
        asked = [workload for who, workload in taken.answered if who == name]
        if name == "disk" or not asked:
            continue
        child.go_on()
        try:
            there = sum(child.ask("read", 1, 1)["counts"])
        except Failed as fault:
            failed[f"{part}: counts of {name}"] = str(fault)
            continue
        finally:
            child.stand()
        answered = sum(given.adds.get(each, 1) * taken.answered[name, each] for each in asked)
        beyond = taken.asked[name] if name in given.cut else 0
        checks.append(counted(f"{part}: counts of {name} read back", answered, there, beyond))
    return checks


def counted(what: str, answered: int, there: int, beyond: int = 0) -> Check:
    """Nothing lost, nothing twice. beyond: how many may have counted whose answer nobody waited for."""
    told = f"{answered} answered, {there} read back" + (f", {beyond} may have been cut off" if beyond else "")
    return Check(what, told, 0 < answered <= there <= answered + beyond)


def apart_s(taken: Rounds, producers: int) -> tuple[float, float]:
    """Seconds to post one letter and to deliver one, apart; 0 where that was not measured."""
    posted, delivered = (taken.rate(f"mail {workload} {producers}") for workload in ("post", "deliver"))
    return 1 / posted if posted else 0.0, 1 / delivered if delivered else 0.0
