"""bench.honesty - that fast answers are durable answers.

For: syncs counted by strace beside answers counted by the caller; counters read back after a kill.
Never: takes the word of the measured side for either.
Was wrong once: a kill between two loads. Nothing was in flight, so nothing could be lost.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from bench.child import Child, Failed
from bench.places import log, scratch
from bench.scenes import module

SYNCS = "fsync,fdatasync"
ALONE_S = 2.0
KILLED_AFTER_S = 1.5
LOADED_S = 2.0


@dataclass(frozen=True, slots=True)
class Check:
    """One check: what was held against what, and whether it holds."""

    what: str
    told: str
    holds: bool


def syncs(strace: str, name: str, command: list[str], workload: str) -> Check:
    """One caller after the other: at least one sync for each answer."""
    written = scratch(f"strace-{name}") / "calls"
    traced = [strace, "-f", "-qq", "-e", f"trace={SYNCS}", "-e", "signal=none", "-o", str(written), *command]
    child = Child(name, traced, log(f"strace-{name}"))
    try:
        child.ask(workload, 1, 1.0)
        before = _lines(written)
        answers = child.ask(workload, 1, ALONE_S)["count"]
        counted = _lines(written) - before
    finally:
        child.close()
    told = f"{counted} syncs for {answers} answers to one caller ({counted / max(answers, 1):.2f} each)"
    return Check(f"{name}: a sync stands behind every answer", told, 0 < answers <= counted)


def _lines(path: Path) -> int:
    text = path.read_text(encoding="utf-8", errors="replace")
    return sum(("sync(" in line and "unfinished" not in line) or "sync resumed" in line for line in text.splitlines())


def killed() -> Check:
    """Kill Onefold under the load of 64 callers in process; every acknowledged fold must be there."""
    folder = scratch("killed")
    child = Child("killed", module("fold", folder), log("killed"))
    child.tell("fold", 64, 30.0)
    time.sleep(KILLED_AFTER_S)
    child.kill()
    told = _read(folder)
    lost = sum(max(0, given - there) for given, there in zip(told["acknowledged"], told["counts"], strict=True))
    given, there = sum(told["acknowledged"]), sum(told["counts"])
    text = f"{given} folds acknowledged, {there} read back, {lost} lost, by each of {len(told['counts'])} counters"
    return Check("in process: counters read back after kill -9 under load", text, lost == 0 and given > 0)


def killed_server(wrk: str) -> Check:
    """Kill `onefold serve` right after a load over HTTP; every answered event must be there."""
    folder = scratch("killed-served")
    child = Child("killed-served", module("served", wrk, "post", folder), log("killed"))
    answers = 0
    try:
        answers = child.ask("post", 64, LOADED_S)["count"]
    finally:
        child.kill()
    there = sum(_read(folder)["counts"])
    return Check(
        "over HTTP: counters read back after kill -9", f"{answers} answered, {there} read back", 0 < answers <= there
    )


def killed_workerd(wrk: str, binary: str) -> Check:
    """The same for the durable object, so that both are held to one rule."""
    folder = scratch("killed-workerd")
    command = module("workerd", wrk, binary, folder)
    child = Child("killed-workerd", command, log("killed"))
    answers = 0
    try:
        child.ask("post", 64, LOADED_S)  # the first answers make a file for each object
        answers = child.ask("post", 64, LOADED_S)["count"]
    finally:
        child.kill()
    child = Child("killed-workerd", command, log("killed"))
    try:
        there = sum(child.ask("read", 1, 1)["counts"])
    finally:
        child.close()
    told = f"{answers} answered, {there} read back"
    return Check("workerd: counters read back after kill -9", told, 0 < answers <= there)


def _read(folder: Path) -> dict[str, list[int]]:
    """The counters of a store that was left by a kill."""
    child = Child("read back", module("fold", folder), log("killed"))
    try:
        return child.ask("read", 1, 1.0)
    finally:
        child.close()


def checks(wrk: str, strace: str | None, workerd: str | None, failed: dict[str, str]) -> list[Check]:
    """All of them; one that could not be made is a line in `failed`."""
    todo = [("killed", killed), ("killed over HTTP", lambda: killed_server(wrk))]
    if workerd is not None:
        binary = workerd
        todo.append(("killed workerd", lambda: killed_workerd(wrk, binary)))
    if strace is not None:
        tracer = strace
        ours = module("fold", scratch("strace-fold"))
        todo.append(("syncs of Onefold", lambda: syncs(tracer, "onefold", ours, "fold")))
        if workerd is not None:
            theirs = module("workerd", wrk, workerd, scratch("strace-workerd-store"))
            todo.append(("syncs of workerd", lambda: syncs(tracer, "workerd", theirs, "post")))
    done: list[Check] = []
    for name, check in todo:
        try:
            done.append(check())
        except (Failed, OSError) as fault:
            failed[name] = str(fault)
    return done
