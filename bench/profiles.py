"""bench.profiles - where the time of one workload goes: stacks sampled from outside while it runs.

For: the lines that were on top of the stack most often.
Never: slows what it looks at as a tracing profiler does (one of those doubled the share of small calls).
"""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from collections.abc import Iterable

from bench.child import Child, Failed, surroundings
from bench.places import ROOT, peers_tool, scratch

PER_SECOND = 250
LINES = 14
_FRAME = re.compile(r"^(?P<function>.*) \((?P<file>.*):(?P<line>\d+)\)$")
_ROOTS = ("onefold", "site-packages")
_IDLE = ("select", "_worker", "readline")  # a thread that waits is no time


def look(child: Child, workload: str, callers: int, seconds: float) -> list[str]:
    """The top lines of the process that does the work of `child`. Raises: Failed, Missing."""
    sampler = peers_tool("py-spy")
    answered = child.ask("pid", 1, 0)
    written = scratch("profile") / "stacks"
    child.tell(workload, callers, seconds + 1)
    options = ["--rate", str(PER_SECOND), "--duration", str(round(seconds)), "--format", "raw", "--nonblocking"]
    command = [sampler, "record", "--pid", str(answered["pid"]), *options, "--output", str(written)]
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    told = child.hear(seconds + 90)
    if said.returncode or not written.is_file():
        raise Failed(f"its stacks could not be read: {said.stderr.strip()[-200:]}")
    rate = told.get("rate", 0.0)
    answers = rate * round(seconds)
    each_us = 1e6 / PER_SECOND / answers if answers else 0.0
    return top(written.read_text(encoding="utf-8").splitlines(), each_us)


def imports(command: list[str]) -> list[str]:
    """The modules whose own loading took longest in a start: share of all loading, milliseconds, name."""
    said = subprocess.run(
        [command[0], "-X", "importtime", *command[1:]],
        cwd=ROOT,
        env=surroundings(),
        capture_output=True,
        text=True,
        check=True,
    )
    rows = [line.split("|") for line in said.stderr.splitlines() if line.startswith("import time:") and "|" in line]
    own = [
        (int(row[0].rpartition(":")[2]), row[2].strip()) for row in rows if row[0].rpartition(":")[2].strip().isdigit()
    ]
    total = sum(us for us, _ in own) or 1
    longest = sorted(own, reverse=True)[:LINES]
    ours = sum(us for us, name in own if name.startswith("onefold"))
    return [
        f"{total / 1e3:6.1f} ms  all {len(own)} modules; {ours / 1e3:.1f} ms of them Onefold's own",
        *(f"{us / total:6.1%} {us / 1e3:8.1f} ms  {name}" for us, name in longest),
    ]


def top(stacks: Iterable[str], each_us: float) -> list[str]:
    """Collapsed stacks (`a;b;c count`) as lines: share of the busy samples, microseconds an answer, place.

    each_us: how many microseconds of each answer one sample stands for.
    """
    leaves: Counter[str] = Counter()
    for stack in stacks:
        frames, _, count = stack.rpartition(" ")
        leaf = frames.rpartition(";")[2]
        if leaf and not leaf.startswith(_IDLE):
            leaves[place(leaf)] += int(count)
    total = sum(leaves.values()) or 1
    return [
        f"{n / total:6.1%}{f' {n * each_us:8.1f} us' if each_us else ''}  {where}"
        for where, n in leaves.most_common(LINES)
    ]


def place(frame: str) -> str:
    """`function (file:line)` as `file:line function`, without the folders of this machine."""
    found = _FRAME.match(frame)
    if found is None:
        return frame
    parts = found["file"].split("/")
    for root in _ROOTS:
        if root in parts:
            parts = parts[len(parts) - parts[::-1].index(root) :]
            break
    else:
        parts = parts[-2:]
    return f"{'/'.join(parts)}:{found['line']} {found['function']}"
