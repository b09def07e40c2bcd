"""bench.contenders.interpreter - the floor under a program: the interpreter alone, without a cell and without a store.

For: `one|ten callers seconds`: the same text in pydantic-monty, in a session of its own under the limits of a turn,
its calls answered by a plain function. `read` tells how often that was called. With `one_core` it and its workers
have one core together.
Never: does what a cell does beside: reads no text first, counts no statements, keeps nothing.
Was wrong once: left to the scheduler. Each call goes to the worker and back, and between two cores that took six times
as long as on one: the floor was whatever the scheduler had made of it.
"""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime
from typing import Any

from pydantic_monty import CollectString, Monty

from bench.answering import answer
from bench.contenders.tallying import ONE, TEN
from bench.measures import Sample, by_threads
from onefold.program.words import LIMITS

WORKERS = 2  # as many as a host has: more callers than that wait for one of them
LIMITED: Any = {
    "max_feed_duration_secs": LIMITS.seconds,
    "max_memory": LIMITS.memory_bytes,
    "max_recursion_depth": LIMITS.depth,
}


def main() -> None:
    told = {"count": 0}

    def add(by: int) -> int:
        told["count"] += by
        return told["count"]

    with Monty(min_processes=1, max_processes=WORKERS) as pool:

        def running(source: str) -> Any:
            def once(who: int, number: int) -> None:
                policy: Any = {"datetime": datetime.now(UTC), "sleep": "zero", "random_start": {"seed": number}}
                with pool.checkout(limits=LIMITED, os_policy=policy) as session:
                    said = CollectString(LIMITS.output_bytes)
                    session.feed_run(source, external_lookup={"add": add}, print_callback=said)

            def taken(callers: int, seconds: float) -> Sample:
                return by_threads(once, min(callers, WORKERS), seconds)

            return taken

        def read(callers: int, seconds: float) -> dict[str, Any]:
            return {"counts": [told["count"]]}

        answer({"one": running(ONE), "ten": running(TEN), "read": read})


if __name__ == "__main__":
    if sys.argv[1:] == ["one_core"]:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    main()
