"""actuators.unwinding - lets the tasks of an ended pass go, quietly.

For: raising Suspended where each task waits, so that the user's `finally` blocks run, and leaving
neither a pending task nor a coroutine that was never awaited.
Never: journals; decides how a pass ended, which is settled before.
Was wrong once: dropping the tasks. The garbage collector ran the `finally` blocks minutes later, in
the middle of something else.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

from onefold.actuators.passloop import PassLoop, PassTask, Spinning, log
from onefold.terms.errors import Suspended

ROUNDS = 100
"""How often code that swallows Suspended is told again before its coroutine is closed."""
BUDGET = 10_000
"""Callbacks an unwinding task may take: enough for any `finally`, not for a loop that never ends."""


def unwind(loop: PassLoop) -> None:
    """End every task of the pass. Afterwards the loop is closed."""
    loop.quiet = True
    loop.budget = BUDGET
    unstarted = [coro for task in loop.tasks for coro in _unstarted(task)] if loop.tasks else []
    try:
        for _ in range(ROUNDS):
            pending = sorted((task for task in loop.tasks if not task.done()), key=lambda task: task.number)
            if not pending:
                break
            _tell(pending)
            loop.drive()
    except Spinning:
        pass
    for task in sorted(loop.tasks, key=lambda task: task.number):
        if not task.done():
            log.warning("%s does not let Suspended pass; catch Exception, not BaseException", _name(task))
            _close(task.get_coro())  # type: ignore[arg-type]
    for coro in unstarted:
        if inspect.getcoroutinestate(coro) == inspect.CORO_CREATED:
            _close(coro)
    loop.close()


def _tell(tasks: list[PassTask]) -> None:
    """Raise Suspended at what each task waits for; a task that waits for another hears it from that one."""
    leaves: list[asyncio.Future[Any]] = []
    others: list[asyncio.Future[Any]] = []
    for task in tasks:
        waiter: asyncio.Future[Any] | None = getattr(task, "_fut_waiter", None)
        if waiter is None or waiter.done():
            continue
        simple = not isinstance(waiter, asyncio.Task) and not hasattr(waiter, "_children")
        (leaves if simple else others).append(waiter)
    for waiter in leaves or others:
        if not waiter.done():
            if isinstance(waiter, asyncio.Task):
                waiter.cancel()
            else:
                waiter.set_exception(Suspended())


def _unstarted(task: PassTask) -> list[Any]:
    """Coroutines that the task's frames hold and never awaited: closed later, so that nobody is warned of them."""
    found: list[Any] = []
    coro: Any = task.get_coro()
    while coro is not None and hasattr(coro, "cr_frame"):
        if coro.cr_frame is not None:
            for value in coro.cr_frame.f_locals.values():
                for item in value if isinstance(value, list | tuple | set) else (value,):
                    if inspect.iscoroutine(item) and inspect.getcoroutinestate(item) == inspect.CORO_CREATED:
                        found.append(item)
        coro = coro.cr_await
    return found


def _name(task: PassTask) -> str:
    return str(getattr(task.get_coro(), "__qualname__", "a task"))


def _close(coro: Coroutine[Any, Any, Any]) -> None:
    with suppress(BaseException):  # user code that will not end is dropped where it stands
        coro.close()
