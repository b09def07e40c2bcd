"""store.worker - one thread that runs what it is asked, and answers on the loop.

For: the author's step, which is plain Python and must not hold up the loop.
Never: ends what runs in it: a thread cannot be ended. Whoever asked stops waiting, and `leave`s it.
Was wrong once: the loop's own pool of threads. A step that never ended kept the process from ending.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

T = TypeVar("T")


class Worker:
    """`leave` lets the thread end when it is done with what it was asked."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.get_running_loop()
        self._asked: queue.SimpleQueue[tuple[asyncio.Future[Any], Callable[[], Any]] | None] = queue.SimpleQueue()
        threading.Thread(target=self._work, name=f"onefold-{name}", daemon=True).start()

    def ask(self, call: Callable[[], T]) -> asyncio.Future[T]:
        answer: asyncio.Future[T] = self._loop.create_future()
        self._asked.put((answer, call))
        return answer

    def leave(self) -> None:
        self._asked.put(None)

    def _work(self) -> None:
        while (asked := self._asked.get()) is not None:
            answer, call = asked
            try:
                value = call()
            except BaseException as fault:  # noqa: BLE001 - the door: an author's fault is raised on the loop, not here
                told = partial(_fail, answer, fault)
            else:
                told = partial(_succeed, answer, value)
            try:
                self._loop.call_soon_threadsafe(told)
            except RuntimeError:
                return  # the loop is closed: nobody waits any more


def _succeed(answer: asyncio.Future[Any], value: Any) -> None:
    if not answer.done():
        answer.set_result(value)


def _fail(answer: asyncio.Future[Any], fault: BaseException) -> None:
    if isinstance(fault, StopIteration | SystemExit | KeyboardInterrupt):
        ended = RuntimeError(f"the step raised {type(fault).__name__}")
        ended.__cause__ = fault
        fault = ended
    if not answer.done():
        answer.set_exception(fault)


def heard(answer: asyncio.Future[Any]) -> None:
    """For a late answer that nobody waits for: its raise is no news."""
    if not answer.cancelled():
        answer.exception()
