"""ports.sandbox.inside - the worker: the process that a deployed file is loaded into.

For: its own limits first, then the file, then passes and checks as the host asks for them.
Never: opens a store; knows a secret but the variables that the file declares.
Was wrong once: limits set by who starts it, between fork and exec. A thread of the host held a lock there, and the
worker never began.
"""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import socket
import sys
import threading
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, Final

from msgspec import Raw

from onefold.actuators.declare import Actuator
from onefold.actuators.state import Journal
from onefold.ports.sandbox.acting import Boxed, Remote, cut
from onefold.ports.sandbox.box import EGRESS, PROXY
from onefold.ports.sandbox.described import described
from onefold.ports.sandbox.words import (
    HEAD,
    Broke,
    Came,
    Check,
    Checked,
    Ended,
    Go,
    Load,
    No,
    Ping,
    Pong,
    Ready,
    Stop,
    ToHost,
    ToWorker,
    Unready,
    Wrong,
    Yes,
    framed,
    to_worker,
)
from onefold.terms.codec import parse, shown
from onefold.terms.errors import BadArguments, LoadRefused
from onefold.terms.faults import says
from onefold.terms.places import place_of

NAME: Final = "deployed"
LIMITS: Final[Mapping[int, int]] = {
    resource.RLIMIT_AS: 1 << 30,
    resource.RLIMIT_CPU: 3_600,
    resource.RLIMIT_FSIZE: 64 << 20,
    resource.RLIMIT_NOFILE: 256,
    resource.RLIMIT_NPROC: 256,  # threads, where the host is not root; processes there are none
    resource.RLIMIT_CORE: 0,
}
NICE: Final = 5
"""The host comes first where both want the processor."""
PIECE: Final = 64 << 10
WHY: Final = 500  # characters of what a broken pass says


def main(pipe: int) -> None:
    """Load the file that comes first through the pipe, and serve until the pipe ends."""
    os.nice(NICE)
    for limit, most in LIMITS.items():
        resource.setrlimit(limit, (most, most))
    if os.path.exists(EGRESS):
        _forward()
    with socket.socket(fileno=pipe) as line:
        signal.signal(signal.SIGALRM, cut)
        load = _next(line)
        assert isinstance(load, Load), "a file comes first"
        try:
            actuators = loaded(load.source, load.name)
        except LoadRefused as refused:
            wrong = tuple(Wrong(finding.where, finding.problem) for finding in refused.findings)
            line.sendall(framed(Unready(wrong)))
            return
        line.sendall(framed(Ready(tuple(described(actuator) for actuator in actuators.values()))))
        asyncio.run(_serve(line, actuators))


def loaded(source: str, name: str) -> dict[str, Actuator[Any, Any]]:
    """The actuators that a file itself defines, by name. Raises: LoadRefused for whatever its top level raises."""
    from onefold.terms.errors import Finding

    module = ModuleType(NAME)
    module.__file__ = name
    sys.modules[NAME] = module
    try:
        exec(compile(source, name, "exec"), module.__dict__)  # noqa: S102 - what this process is for
    except LoadRefused:
        raise
    except BaseException as fault:  # noqa: BLE001 - the door: whatever the file raises refuses it
        line = getattr(fault, "lineno", None) if isinstance(fault, SyntaxError) else None
        place = place_of(fault) or (f"{name}:{line}" if line else name)
        problem = f"its top level raised {type(fault).__name__}: {says(fault)[:WHY]}"
        raise LoadRefused([Finding(place, problem)]) from None
    own = [one for one in vars(module).values() if isinstance(one, Actuator) and one.function.__module__ == NAME]
    if not own:
        raise LoadRefused([Finding(name, "holds no actuator of its own. Add one")])
    return {actuator.name: actuator for actuator in own}


def _next(line: socket.socket) -> ToWorker:
    def exactly(size: int) -> bytes:
        got = bytearray()
        while len(got) < size:
            piece = line.recv(min(size - len(got), 1 << 20))
            if not piece:
                raise SystemExit(0)
            got += piece
        return bytes(got)

    return to_worker(exactly(HEAD.unpack(exactly(HEAD.size))[0]))


async def _serve(line: socket.socket, actuators: Mapping[str, Actuator[Any, Any]]) -> None:
    reader, writer = await asyncio.open_unix_connection(sock=line)
    loop, here = asyncio.get_running_loop(), threading.get_ident()

    def post(word: ToHost) -> None:
        raw = framed(word)
        if threading.get_ident() == here:
            writer.write(raw)
        else:
            loop.call_soon_threadsafe(writer.write, raw)

    talk = Talk(actuators, post)
    while True:
        try:
            (size,) = HEAD.unpack(await reader.readexactly(HEAD.size))
            word = to_worker(await reader.readexactly(size))
        except (asyncio.IncompleteReadError, ConnectionError):
            os._exit(0)  # the host is gone, and whatever still runs here goes with it
        talk.heard(word)


class Talk:
    """What the host asks of this process."""

    def __init__(self, actuators: Mapping[str, Actuator[Any, Any]], post: Callable[[ToHost], None]) -> None:
        self._actuators = actuators
        self._post = post
        self._actors: dict[int, Remote] = {}
        self._passes: dict[int, asyncio.Task[None]] = {}

    def heard(self, word: ToWorker) -> None:
        match word:
            case Ping():
                self._post(Pong())
            case Check():
                self._post(_checked(self._actuators[word.actuator], word))
            case Go():
                word.state.journal = Journal(list(word.entries), len(word.entries))
                self._actors[word.run] = actor = Remote(word.run, word.state, self._post)
                making = self._pass(actor, self._actuators[word.actuator])
                self._passes[word.run] = asyncio.get_running_loop().create_task(making)
            case Came() if word.run in self._actors:
                self._actors[word.run].came(word.facts)
            case Yes() | No() if word.run in self._actors:
                self._actors[word.run].answered(word)
            case Stop() if word.run in self._passes:
                self._passes[word.run].cancel()
            case _:
                pass  # about a pass that is over

    async def _pass(self, actor: Remote, actuator: Actuator[Any, Any]) -> None:
        word: ToHost
        try:
            word = Ended(actor.run, await Boxed(actor, actuator, {}).whole())
        except asyncio.CancelledError:
            return
        except BaseException as fault:  # noqa: BLE001 - the door: the host runs the pass again
            word = Broke(actor.run, f"{type(fault).__name__}: {says(fault)}"[:WHY])
        finally:
            del self._actors[actor.run], self._passes[actor.run]
        self._post(word)


def _checked(actuator: Actuator[Any, Any], asked: Check) -> Checked:
    try:
        return Checked(asked.n, Raw(actuator.written(actuator.check(parse(bytes(asked.arguments))))))
    except BadArguments as bad:
        return Checked(asked.n, faults=tuple(Wrong(one.field, one.problem, shown(one.got)) for one in bad.faults))
    except Exception as fault:  # noqa: BLE001 - the door: a validator of the file's own may raise anything
        return Checked(asked.n, faults=(Wrong("", f"cannot be checked: {type(fault).__name__}: {says(fault)[:WHY]}"),))


# --- the way out ------------------------------------------------------------------------------------------


def _forward() -> None:
    """Lead this box's loopback to the egress proxy outside: HTTPS_PROXY names it. In a thread and loop of its own."""
    ready = threading.Event()

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, away = await asyncio.open_unix_connection(EGRESS)
        await asyncio.gather(_pour(reader, away), _pour(there, writer), return_exceptions=True)

    async def serve() -> None:
        server = await asyncio.start_server(carry, "127.0.0.1", PROXY)
        ready.set()
        await server.serve_forever()

    threading.Thread(target=lambda: asyncio.run(serve()), name="egress", daemon=True).start()
    ready.wait()


async def _pour(source: asyncio.StreamReader, into: asyncio.StreamWriter) -> None:
    try:
        while piece := await source.read(PIECE):
            into.write(piece)
            await into.drain()
    finally:
        into.close()
