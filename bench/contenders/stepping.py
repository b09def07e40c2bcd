"""bench.contenders.stepping - Onefold's state charts: one pure step, its snapshot as JSON-shaped data in and out.

For: `step`: a parallel and nested chart with guards, actions and an `always`, six events in a circle.
Never: keeps a machine between two steps, which is what a durable chart cannot do.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.answering import answer, own_pid
from bench.measures import Sample, sample
from onefold.machine.definition import load
from onefold.machine.step import start, step
from onefold.machine.words import Plain

ORDER = Path(__file__).with_name("order.json")
EVENTS = ("Packed", "Paid", "Left", "Paid", "Refunded", "Returned")
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
LUMP = 60  # steps a latency is taken over; one is too short for the clock
Context = Mapping[str, Any]


def pay(context: Context, event: object, now: datetime) -> Context:
    return {**context, "paid": context["paid"] + 1}


def reset(context: Context, event: object, now: datetime) -> Context:
    return {**context, "paid": 0}


def count(context: Context, event: object, now: datetime) -> Context:
    return {**context, "parcels": context["parcels"] + 1}


def enough(context: Context, event: object, now: datetime) -> bool:
    return bool(context["paid"] >= 1)


def early(context: Context, event: object, now: datetime) -> bool:
    return bool(context["paid"] > 1)


def main() -> None:
    chart = load(
        ORDER.read_bytes(),
        context={"paid": 0, "parcels": 0},
        guards={"enough": enough, "early": early},
        actions={"pay": pay, "reset": reset, "count": count},
    )
    events = [Plain(name) for name in EVENTS]
    state, _ = start(chart, NOW)

    def steps(callers: int, seconds: float) -> Sample:
        nonlocal state
        latencies: list[float] = []
        clock = time.perf_counter
        begun = before = clock()
        while before - begun < seconds:
            for _ in range(LUMP // len(events)):
                for event in events:
                    state, _ = step(chart, state, event, NOW)
            after = clock()
            latencies.append((after - before) / LUMP)
            before = after
        if state["context"]["parcels"] == 0:
            raise ValueError(f"the chart did not go round: {state}")
        taken = sample(latencies, before - begun)
        return Sample(taken.rate * LUMP, taken.p50, taken.p99, taken.count * LUMP)

    answer({"step": steps, "pid": lambda callers, seconds: own_pid()})


if __name__ == "__main__":
    main()
