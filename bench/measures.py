"""bench.measures - samples, percentiles, and a spin that shows how quiet the machine was.

For: numbers, on both sides of the pipe.
Never: imports more than the standard library: peers run in environments of their own.
"""

from __future__ import annotations

import asyncio
import statistics
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

SPIN = 200_000
PAGE_KIB = 4


@dataclass(frozen=True, slots=True)
class Sample:
    """One turn of one contender: answers a second, latencies in milliseconds, how many answers."""

    rate: float
    p50: float
    p99: float
    count: int

    def plain(self) -> dict[str, Any]:
        return asdict(self)


def spin() -> float:
    """Nanoseconds for one turn of a fixed loop: it rises when others want the core."""
    start = time.perf_counter_ns()
    total = 0
    for number in range(SPIN):
        total += number & 7
    return (time.perf_counter_ns() - start) / SPIN


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which `share` of 100 lie; of no values, 0."""
    if not values:
        return 0.0
    return sorted(values)[min(len(values) - 1, int(len(values) * share / 100))]


def median(values: Sequence[float]) -> float:
    return statistics.median(values) if values else 0.0


def lateness(fired: Sequence[tuple[float, Sequence[float]]]) -> dict[str, Any]:
    """Of (instant, when it fired) in seconds: p50, p99 and most in ms; how many were early, fired twice, or not at all."""
    late = [(times[0] - due) * 1e3 for due, times in fired if times]
    return {
        "p50": median(late),
        "p99": percentile(late, 99),
        "most": max(late, default=0.0),
        "early": sum(each < 0 for each in late),
        "twice": sum(len(times) > 1 for _, times in fired),
        "done": len(late),
        "missing": len(fired) - len(late),
    }


def sample(latencies_s: Sequence[float], elapsed_s: float) -> Sample:
    """A sample out of the latency of each answer, in seconds."""
    count = len(latencies_s)
    return Sample(count / elapsed_s, percentile(latencies_s, 50) * 1e3, percentile(latencies_s, 99) * 1e3, count)


async def by_tasks(call: Callable[[int, int], Awaitable[Any]], callers: int, seconds: float) -> Sample:
    """`callers` tasks, each calling `call(caller, number)` again and again for `seconds`."""
    latencies: list[float] = []
    clock = time.perf_counter
    start = clock()
    end = start + seconds

    async def caller(who: int) -> None:
        number = 0
        before = clock()
        while before < end:
            await call(who, number)
            after = clock()
            latencies.append(after - before)
            before = after
            number += 1

    await asyncio.gather(*(caller(who) for who in range(callers)))
    return sample(latencies, clock() - start)


def by_threads(call: Callable[[int, int], Any], callers: int, seconds: float) -> Sample:
    """As `by_tasks`, with a thread for each caller."""
    latencies: list[float] = []
    start = time.perf_counter()
    end = start + seconds

    def caller(who: int) -> None:
        number = 0
        before = time.perf_counter()
        while before < end:
            call(who, number)
            after = time.perf_counter()
            latencies.append(after - before)
            before = after
            number += 1

    threads = [threading.Thread(target=caller, args=(who,)) for who in range(callers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sample(latencies, time.perf_counter() - start)


def resident_kib(pid: int | str = "self") -> int:
    """Resident memory of a process in KiB."""
    with open(f"/proc/{pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * PAGE_KIB
