"""program.monty - programs of more than one call, in pydantic-monty: a worker process that can do nothing else.

For: running statements one after another under limits, with the clock frozen and a seed of the turn's own.
Never: a file, a socket, the host's clock or chance; a verdict made of the machine's speed.
Was wrong once: the whole text in one go. Where it stopped could be read only from a traceback, which a limit has not. A
function given as a value: it came out as the text that it is called by, and was kept as one. And the loop's own pool of
threads: programs that looped took all of it, and nobody's plain function ran beside them.

A worker that dies takes its turn with it, and is replaced. Time is counted only while the program runs, and is no
verdict: OutOfTime stores nothing, and the same program may pass on a machine with less to do.
"""

from __future__ import annotations

import ast
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import datetime
from typing import TYPE_CHECKING, Any

from onefold.program.calling import Calls, within
from onefold.program.values import as_json
from onefold.program.words import Json, Limits, Ran, Scope, Statements, Stopped, Verdict
from onefold.terms.errors import Busy
from onefold.terms.ids import nearest
from onefold.terms.turns import OutOfTime

if TYPE_CHECKING:
    from pydantic_monty import Monty, MontySession

GRACE_S = 1.0
"""After its time a program is stopped by its worker; a worker that does not is killed this much later."""
INTERNAL = "Internal error in monty: "
UNSUPPORTED = "The monty syntax parser does not yet support "
SUSPENSIONS = 10_000
"""Round trips to the host; `Limits.cost` is what a person meets, this one only keeps the pool's own default away."""

_VALUE = "_onefold_value"  # names of the worker's, where a program's would be
_ASK = f"import json as _onefold_json\n_onefold_json.dumps({_VALUE})"
_WRITTEN = ("date", "datetime", "Decimal")  # `as_json` has a text for them

WAITING_AT_MOST = 1_000
"""Programs that are begun or wait for a worker; another would wait for minutes."""


class Interpreter:
    """A pool of workers, started when first needed. May be used from several threads."""

    def __init__(self, processes: int = 2) -> None:
        self._processes = processes
        self._pool: Monty | None = None
        self._lock = threading.Lock()
        self._threads = ThreadPoolExecutor(processes, thread_name_prefix="onefold-program")
        self._begun = 0

    def begin(self, program: Statements, scope: Scope, now: datetime, seed: int, limits: Limits) -> Future[Verdict]:
        """`run`, in a thread of its own pool, as soon as a worker is free. Raises: Busy when too many wait."""
        with self._lock:
            if self._begun >= WAITING_AT_MOST:
                raise Busy("The queue of programs", WAITING_AT_MOST)
            self._begun += 1
        future = self._threads.submit(self.run, program, scope, now, seed, limits)
        future.add_done_callback(self._ended)
        return future

    def _ended(self, future: Future[Verdict]) -> None:
        with self._lock:
            self._begun -= 1

    def run(self, program: Statements, scope: Scope, now: datetime, seed: int, limits: Limits) -> Verdict:
        """Run the statements; blocks. Raises: OutOfTime, also where the worker died of it."""
        from pydantic_monty import MontyCrashedError

        calls = Calls(scope, limits)
        try:
            with self._started().checkout(
                limits={
                    "max_feed_duration_secs": limits.seconds,
                    "max_memory": limits.memory_bytes,
                    "max_recursion_depth": limits.depth,
                    "max_suspensions": SUSPENSIONS,
                },
                os_policy={"datetime": now, "sleep": "zero", "random_start": {"seed": seed}},
            ) as session:
                return _all(session, program, calls, scope, limits)
        except MontyCrashedError as died:
            raise OutOfTime("A program's worker", limits.seconds + GRACE_S) from died

    def close(self) -> None:
        """End the workers."""
        with self._lock:
            pool, self._pool = self._pool, None
        self._threads.shutdown(wait=False, cancel_futures=True)
        if pool is not None:
            pool.__exit__(None, None, None)

    def _started(self) -> Monty:
        with self._lock:
            if self._pool is None:
                from pydantic_monty import Monty

                pool = Monty(min_processes=1, max_processes=self._processes, feed_duration_limit_grace=GRACE_S)
                self._pool = pool.__enter__()
            return self._pool


def _all(session: MontySession, program: Statements, calls: Calls, scope: Scope, limits: Limits) -> Verdict:
    from pydantic_monty import CollectString, MontyConversionError, MontyRuntimeError, MontySyntaxError

    functions = {name: calls.function(name) for name in scope}
    said = CollectString(limits.output_bytes)
    of = len(program.parts)
    value: Any = None
    for ran, (part, line) in enumerate(zip(program.parts, program.lines, strict=True)):
        last = ran == of - 1 and _gives(part)
        try:
            value = session.feed_run(
                f"{_VALUE} = {part}\n{_VALUE}" if last else part, external_lookup=functions, print_callback=said
            )
        except MontySyntaxError as wrong:
            told = {"line": line + _line(wrong) - 1, "message": _message(wrong)}
            return Stopped("parse", told, ran, of)
        except MontyConversionError as wrong:
            return Stopped("raised", {"message": _message(wrong)}, ran, of)
        except MontyRuntimeError as fault:
            return _judged(fault, calls, scope, limits, ran, of, line)
        if calls.ended is not None:  # it caught what ends it
            return _at(calls.ended, ran, of)
    try:
        verdict = within(as_json(value), limits, of)
        if isinstance(verdict, Ran) and _has_text(verdict.value):
            _own_words(session)
        return verdict
    except ValueError as wrong:
        return Stopped("raised", {"message": f"its value cannot leave: {wrong}"}, of, of)


def _gives(part: str) -> bool:
    """Whether a statement is an expression, whose value is the program's."""
    (statement,) = ast.parse(part).body
    return isinstance(statement, ast.Expr)


def _has_text(value: Json) -> bool:
    if isinstance(value, dict):
        return any(map(_has_text, value.values()))
    return any(map(_has_text, value)) if isinstance(value, list) else isinstance(value, str)


def _own_words(session: MontySession) -> None:
    """Ask the worker whether the texts of the value are texts: what has no form outside comes out as what it is called.

    Raises: ValueError.
    """
    from pydantic_monty import MontyRuntimeError

    try:
        session.feed_run(_ASK)
    except MontyRuntimeError as fault:
        kind, _, words = fault.display("type-msg").partition(": ")
        if kind == "ValueError":
            raise ValueError("it holds itself") from None
        of = words.removeprefix("Object of type ").removesuffix(" is not JSON serializable")
        if kind == "TypeError" and of not in _WRITTEN:
            raise ValueError(f"a {of} has no JSON form") from None


def _judged(fault: Any, calls: Calls, scope: Scope, limits: Limits, ran: int, of: int, line: int) -> Stopped:
    """What a raise inside the worker comes to. Raises: OutOfTime."""
    if calls.ended is not None:
        return _at(calls.ended, ran, of)
    kind, _, words = fault.display("type-msg").partition(": ")
    if kind == "TimeoutError" and not fault.traceback():
        raise OutOfTime("A program", limits.seconds)
    if kind == "MemoryError":
        output = not fault.traceback() and f"> {limits.output_bytes} bytes" in words
        told = f"{limits.output_bytes} bytes of output" if output else f"{limits.memory_bytes} bytes of memory"
        return Stopped("limit", {"limit": told}, ran, of)
    if kind == "NotImplementedError" and words.startswith(UNSUPPORTED):
        told_of = f"{words.removeprefix(UNSUPPORTED).rstrip('.')} are no part of the language"
        return Stopped("parse", {"line": line + _line(fault) - 1, "message": told_of}, ran, of)
    if kind == "RecursionError":
        return Stopped("limit", {"limit": f"{limits.depth} calls within calls"}, ran, of)
    if kind == "NameError" and (name := _named(words)) is not None:
        return Stopped("call", {"name": name, "nearest": nearest(name, list(scope))}, ran, of)
    return Stopped("raised", {"message": _message(fault)}, ran, of)


def _at(stopped: Stopped, ran: int, of: int) -> Stopped:
    return Stopped(stopped.kind, stopped.told, ran, of)


def _named(words: str) -> str | None:
    """The name in "name 'x' is not defined"."""
    parts = words.split("'")
    return parts[1] if words.startswith("name '") and len(parts) == 3 else None


def _line(fault: Any) -> int:
    frames = fault.traceback()
    return int(frames[-1].line) if frames else 1


def _message(fault: Any) -> str:
    told: str = fault.display("type-msg") if hasattr(fault, "display") else str(fault)
    return told.replace(INTERNAL, "").strip().rstrip(".")
