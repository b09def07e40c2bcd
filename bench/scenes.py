"""bench.scenes - what is no rate: sleepers, waiters and a kill, starts, costs that must not grow.

For: one scene at a time, the contenders of the rounds being ended.
Never: judges; goals does.
"""

from __future__ import annotations

import http.client
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import apsw

from bench.child import Child, Failed, surroundings
from bench.contenders.served import Server, call_once
from bench.contenders.thousand import TOOLS
from bench.measures import median, resident_kib
from bench.places import OURS, ROOT, log, peers_python, scratch

Told = dict[str, Any]
PROBES = 40  # single wakes beside those that sleep
BACK = 3  # starts after a kill; what ran out meanwhile is only there in the first
DEAD_S = 2.0  # waits run out while nobody is there


def module(name: str, *words: object) -> list[str]:
    """The command of one of our contenders."""
    return [OURS, "-m", f"bench.contenders.{name}", *map(str, words)]


def attempted(name: str, scene: Callable[[], Told], failed: dict[str, str]) -> Told:
    """What the scene tells, or nothing and a line in `failed`."""
    print(f"{name} ...", file=sys.stderr)
    try:
        return scene()
    except (Failed, OSError, ValueError, subprocess.SubprocessError) as fault:
        failed[name] = f"{type(fault).__name__}: {fault}"
        print(f"{name}: {fault}", file=sys.stderr)
        return {}


def sleepers(runs: int, seconds: float) -> Told:
    """Lateness of `runs` runs due within `seconds`; 0: all at one instant."""
    folder = scratch("sleeping")
    child = Child("sleeping", module("sleeping", folder), log("sleeping"))
    try:
        child.tell("sleep", runs, seconds)
        told = child.hear(runs / 20 + seconds + 120)
        if "failed" in told:
            raise Failed(told["failed"])
        return told
    finally:
        child.close()


def timers(kind: str, count: int, seconds: float) -> Told:
    """Lateness of `count` timers due within `seconds`: of Onefold ("onefold"), or of a peer."""
    folder = scratch(f"timers-{kind}")
    ours = module("ticking", folder)
    command = ours if kind == "onefold" else [peers_python(), *module("peer_timers", kind, folder)[1:]]
    child = Child(kind, command, log(f"timers-{kind}"))
    try:
        child.tell("minute", count, seconds)
        told = child.hear(count / 5 + seconds + 240)
        if "failed" in told:
            raise Failed(told["failed"])
        return {**told, "count": count}
    finally:
        child.kill() if kind == "dbos" else child.close()


def timers_at_rest(count: int) -> Told:
    """`count` timers that sleep until tomorrow: what they cost on the disk, at a start, in memory, and for a wake."""
    folder = scratch("timers-at-rest")
    told: Told = {}
    for workload, times in (("grow", 0), ("probe", PROBES)):
        start = time.perf_counter()
        child = Child("ticking", module("ticking", folder), log("timers-at-rest"))
        told |= {"first_s": time.perf_counter() - start}  # of the second start, with all of them asleep
        try:
            child.tell(workload, count, times)
            said = child.hear(count / 500 + 240)
            if "failed" in said:
                raise Failed(said["failed"])
            told |= said
        finally:
            child.close()
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    return {**told, "bytes_each": size / count}


def advances(what: str, count: int) -> Told:
    """Microseconds of an advance with nothing due, and of a fact's way to its effect and its settle, with `count`
    reflexes loaded, or so many settled runs in the ledger.
    """
    folder = scratch(f"advances-{what}")
    child = Child("reflexes", module("reflexes", folder), log("reflexes"))
    try:
        child.tell(what, count, PROBES)
        told = child.hear(count / 500 + 240)
        if "failed" in told:
            raise Failed(told["failed"])
        return told
    finally:
        child.close()


def waiters(runs: int) -> Told:
    """`runs` waiting runs, a kill, and a start: memory each, first new answer, all armed, in seconds from the exec."""
    folder = scratch("waiting")
    child = Child("waiting", module("waiting", folder), log("waiting"))
    try:
        child.tell("arm", runs, DEAD_S)
        told = child.hear(runs / 20 + 120)
        if "failed" in told:
            raise Failed(told["failed"])
    finally:
        child.kill()
    time.sleep(told["brief_s"])
    starts = [_back(folder) for _ in range(BACK)]
    return {**told, **starts[0], "first_s": median([each["first_s"] for each in starts])}


def _back(folder: Path) -> Told:
    start = time.perf_counter()
    child = Child("back", module("waiting", "back", folder), log("waiting"), wait=False)
    try:
        child.hear(60)
        first = time.perf_counter() - start
        taken = child.hear(60)
        armed = time.perf_counter() - start
        if taken["wrong"]:
            raise Failed(f"{taken['wrong']} waits that had run out ended otherwise")
        return {"first_s": first, "armed_s": armed}
    finally:
        child.kill()


def starts(times: int) -> Told:
    """From the exec to the first durable answer of a script with one module, and its memory then."""
    taken: list[tuple[float, int]] = []
    for number in range(times + 1):
        folder = scratch("first")
        start = time.perf_counter()
        command = module("first", folder / "store")
        with subprocess.Popen(command, cwd=ROOT, env=surroundings(), stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            said = process.stdout.readline().split()
            elapsed = time.perf_counter() - start
        if len(said) != 2:
            raise Failed("the first answer did not come")
        if number:  # the first fills the disk's cache
            taken.append((elapsed, int(said[1])))
    return {"seconds": median([each[0] for each in taken]), "kib": median([each[1] for each in taken])}


def tool_starts(times: int) -> Told:
    """From the exec of `onefold serve` to its first durable answer over MCP, and its memory then."""
    taken: list[tuple[float, int]] = []
    for number in range(times + 1):
        folder = scratch("tool")
        start = time.perf_counter()
        server = Server("bench/contenders/adding.py", folder / "store")
        try:
            told = call_once(server.port)
            elapsed = time.perf_counter() - start
            if told["result"]["structuredContent"]["result"]["sum"] != 3:
                raise Failed(f"the tool answered {told}")
            if number:
                taken.append((elapsed, resident_kib(server.process.pid)))
        finally:
            server.stop()
    return {"seconds": median([each[0] for each in taken]), "kib": median([each[1] for each in taken])}


def spaces_at_rest(times: int) -> Told:
    """From the exec of `onefold serve` to its first durable answer, with a thousand spaces that each hold a sleeper."""
    store = scratch("thousand") / "store"
    _nap(store, minutes=60 * 24)
    for number in range(1, TOOLS):
        _under_its_name(store, number)
    taken = [_nap(store, minutes=0) for _ in range(times + 1)]
    return {"seconds": median(taken[1:]), "spaces": TOOLS}


def _nap(store: Path, *, minutes: int) -> float:
    """Seconds from the exec until the first tool has answered a call of its own key."""
    start = time.perf_counter()
    server = Server("bench/contenders/thousand.py", store)
    try:
        line = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        wait = "wait=20" if minutes == 0 else "wait=0"
        headers = {"content-type": "application/json", "prefer": wait, "idempotency-key": f"{time.time_ns()}"}
        line.request("POST", "/tools/tool_0", json.dumps({"minutes": minutes}), headers)
        told = json.loads(line.getresponse().read())
        elapsed = time.perf_counter() - start
        while minutes and not told.get("waits"):  # asleep, so that its space is left at rest
            line.request("GET", f"/runs/{told['run_id']}?wait=0")
            told = json.loads(line.getresponse().read())
        if told["status"] != ("waiting" if minutes else "done"):
            raise Failed(f"the tool answered {told}")
        return elapsed
    finally:
        server.stop()


def _under_its_name(store: Path, number: int) -> None:
    """The first tool's space once more, as that of another."""
    name = f"tool_{number}"
    shutil.copy(store / "tool_0.db", store / f"{name}.db")
    db = apsw.Connection(str(store / f"{name}.db"))
    db.execute("pragma synchronous = off")
    with db:
        db.execute("update _onefold_actor set kind = ?", (name,))
        db.execute("update _onefold_alarm set kind = ?", (name,))
        db.execute("update _onefold_run set program = ?", (name,))
    db.close()


def histories(sizes: Sequence[int]) -> Told:
    """A turn's microseconds, warm and after a start, by length of history."""
    return _by_size("history", "turn", sizes, 200)


def wakes(sizes: Sequence[int]) -> Told:
    """A single wake's lateness in milliseconds, by number of runs that sleep on."""
    return _by_size("sleeping", "probe", sizes, 30)


def _by_size(contender: str, workload: str, sizes: Sequence[int], times: int) -> Told:
    told: Told = {}
    for size in sizes:
        child = Child(contender, module(contender, scratch(f"{contender}-{size}")), log(contender))
        try:
            child.tell(workload, size, times)
            said = child.hear(size / 50 + 120)
            if "failed" in said:
                raise Failed(said["failed"])
            told[str(size)] = said
        finally:
            child.close()
    return told
