"""bench.answering - a contender's side of the pipe: one line asked, one line answered.

For: `workload callers seconds` in, JSON out, until the pipe closes.
Never: lets a library's print spoil the pipe; hides a failure (it is answered, by name).
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable, Mapping
from io import TextIOWrapper
from typing import Any

from bench.measures import Sample

Work = Callable[[int, float], Any]
AsyncWork = Callable[[int, float], Awaitable[Any]]


def private_pipe() -> TextIOWrapper:
    """The pipe to whoever asks; everything else that is printed goes to the log."""
    pipe = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return pipe


def answer(workloads: Mapping[str, Work]) -> None:
    """Answer until the pipe closes."""
    pipe = private_pipe()
    _say(pipe, {"ready": True})
    for line in sys.stdin:
        name, callers, seconds = line.split()
        try:
            told = workloads[name](int(callers), float(seconds))
        except Exception as fault:  # noqa: BLE001 - the run goes on with the others, and the report names it
            told = {"failed": f"{type(fault).__name__}: {fault}"}
        _say(pipe, told)


async def answer_async(workloads: Mapping[str, AsyncWork]) -> None:
    """As `answer`, on a loop. `pid` is answered with the process itself, which does the work."""
    pipe = private_pipe()
    _say(pipe, {"ready": True})
    while line := await asyncio.to_thread(sys.stdin.readline):
        name, callers, seconds = line.split()
        try:
            told = own_pid() if name == "pid" else await workloads[name](int(callers), float(seconds))
        except Exception as fault:  # noqa: BLE001 - the run goes on with the others, and the report names it
            told = {"failed": f"{type(fault).__name__}: {fault}"}
        _say(pipe, told)


def own_pid() -> dict[str, Any]:
    return {"pid": os.getpid()}


def _say(pipe: TextIOWrapper, told: Any) -> None:
    pipe.write(json.dumps(told.plain() if isinstance(told, Sample) else told) + "\n")
    pipe.flush()
