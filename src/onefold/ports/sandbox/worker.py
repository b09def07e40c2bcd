"""ports.sandbox.worker - one warm process of a deployed file, from the host's side.

For: starting it, its pipe, whether it still answers, and its end.
Never: believes it; waits for it without a bound; outlives it.
Was wrong once: a worker that was closed but not ended. It slept in a step, and the next one had its name.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Raw

from onefold.actuators.carried import PassEnded
from onefold.actuators.declare import Actuator
from onefold.actuators.executing import Actor
from onefold.ports.sandbox import box
from onefold.ports.sandbox.gate import Gate
from onefold.ports.sandbox.judging import Judge, Nonsense
from onefold.ports.sandbox.serving import Serving
from onefold.ports.sandbox.words import (
    HEAD,
    MOST,
    Check,
    Checked,
    Load,
    Ping,
    Pong,
    Ready,
    ToHost,
    ToWorker,
    Unready,
    framed,
    to_host,
)
from onefold.terms.codec import Json, canonical
from onefold.terms.errors import PortFailed

log = logging.getLogger("onefold.sandbox")
START_S: Final = 30
CHECK_S: Final = 10
PULSE_S: Final = 10
"""How long its loop may stand still, and how long a check of arguments may take."""
SILENCE_S: Final = 600
"""How long a pass may say nothing while nothing is asked of the host: no step of a deployed file lasts longer."""
BEAT_S: Final = 1
THREADS: Final = 256
HEAVY: Final = 64 << 20
"""Bytes of acts that it has asked for and that are under way here."""
STRAYS: Final = 50_000
"""What words that nobody waits for may cost in a beat: ten each, and one for each KB."""
IDLE_S: Final = 600
"""How long one that is asked nothing is kept warm. The next start is a quarter of a second."""
PENDING: Final = 64 << 20
"""Bytes that wait for a worker that does not read."""


class Worker:
    """`name`: the file's. own: its actuators, by name. Made by `Worker.started`."""

    def __init__(self, name: str, line: socket.socket, process: subprocess.Popen[bytes], *, silence_s: float) -> None:
        self.name = name
        self.ended: str | None = None
        self._line = line
        self._process = process
        self._silence_s = silence_s
        self._loop = asyncio.get_running_loop()
        self._writer: asyncio.StreamWriter | None = None
        self._opening: asyncio.Future[Ready | Unready] = self._loop.create_future()
        self._serving: dict[int, Serving] = {}
        self._checks: dict[int, asyncio.Future[Checked]] = {}
        self._numbers = 0
        self._weight = self._strays = 0
        self._light = asyncio.Event()
        self._light.set()
        self._idle = asyncio.Event()
        self._idle.set()
        self._pong_at = self._asked_at = self._loop.time()
        self._tasks: list[asyncio.Task[None]] = []
        self._gate: Gate | None = None
        self._folder: str | None = None
        self._buried: asyncio.Future[int]

    @classmethod
    async def started(
        cls,
        source: str,
        name: str,
        gate: Gate | None = None,
        environment: Mapping[str, str] | None = None,
        *,
        certificates: str | None = None,
        silence_s: float = SILENCE_S,
    ) -> tuple[Worker, Ready | Unready]:
        """A worker with its file loaded, or refused. Raises: PortFailed when it cannot be started or says nothing."""
        ours, theirs = socket.socketpair()
        folder = tempfile.mkdtemp(prefix="onefold-") if gate is not None else None
        try:
            egress = None
            if gate is not None and folder is not None:
                egress = Path(folder) / "egress"
                await gate.open(egress)
            process = box.start(theirs, egress, environment or {}, certificates)
        except OSError as fault:
            ours.close()
            _gone(gate, folder)
            raise PortFailed("sandbox", name, f"its process cannot be started: {fault.strerror}") from None
        finally:
            theirs.close()
        worker = cls(name, ours, process, silence_s=silence_s)
        worker._gate, worker._folder = gate, folder
        try:
            async with asyncio.timeout(START_S):
                reader, worker._writer = await asyncio.open_unix_connection(sock=ours)
                worker._tasks.append(worker._loop.create_task(worker._read(reader)))
                worker.say(Load(name, source))
                opened = await worker._opening
        except BaseException as fault:
            await worker.aclose(why="its file was not loaded in time")
            if isinstance(fault, TimeoutError):
                raise PortFailed("sandbox", name, str(worker.ended)) from None
            raise
        watching = worker._loop.create_task(worker._watch())
        watching.add_done_callback(lambda _: worker.end("nobody watched it"))
        worker._tasks.append(watching)
        return worker, opened

    def say(self, word: ToWorker) -> None:
        if self.ended is None and self._writer is not None:
            self._writer.write(framed(word))
            if self._writer.transport.get_write_buffer_size() > PENDING:
                self.end("it does not read what it is told")

    async def run(self, actor: Actor, actuator: str, own: Mapping[str, Actuator[Any, Any]], judge: Judge) -> PassEnded:
        """One pass. Raises: PortFailed when the worker fails; HostError, OwnedElsewhere."""
        number = self._number()
        self._serving[number] = serving = Serving(number, actor, own, judge, self.say)
        serving.heard_at = self._loop.time()
        self._idle.clear()
        try:
            return await serving.whole(actuator)
        finally:
            del self._serving[number]
            if not self._serving:
                self._idle.set()

    async def checked(self, actuator: str, arguments: Json) -> Checked:
        """What the file's own model makes of these arguments. Raises: PortFailed."""
        number = self._number()
        self._checks[number] = future = self._loop.create_future()
        try:
            self.say(Check(number, actuator, Raw(canonical(arguments))))
            async with asyncio.timeout(CHECK_S):
                looked: Checked = await future
            return looked
        except TimeoutError:
            self.end(f"it looked at arguments for {CHECK_S} seconds")
            raise PortFailed("sandbox", self.name, str(self.ended)) from None
        finally:
            del self._checks[number]

    def _number(self) -> int:
        if self.ended is not None:
            raise PortFailed("sandbox", self.name, self.ended)
        self._numbers += 1
        self._asked_at = self._loop.time()
        return self._numbers

    # --- its end --------------------------------------------------------------------------------------

    def end(self, why: str) -> None:
        """End the process and whatever waits for it. Once."""
        if self.ended is not None:
            return
        self.ended = why
        self._process.kill()  # the box goes with it: all of its processes are its children's namespace
        if self._writer is None:
            self._line.close()
        else:
            self._writer.transport.abort()
        for task in self._tasks:
            task.cancel()
        fault = PortFailed("sandbox", self.name, f"the process of {self.name} ended: {why}")
        for serving in self._serving.values():
            serving.failed(fault)
        waiting: list[asyncio.Future[Any]] = [*self._checks.values(), self._opening]
        for future in waiting:
            if not future.done():
                future.set_exception(fault)
        _gone(self._gate, self._folder)
        self._buried = self._loop.run_in_executor(None, self._process.wait)

    async def aclose(self, grace_s: float = 0.0, *, why: str = "it was closed") -> None:
        """Let its passes end for so long, end it, and wait until it is gone."""
        with suppress(TimeoutError):
            async with asyncio.timeout(grace_s):
                await self._idle.wait()
        self.end(why)
        await asyncio.shield(self._buried)

    async def _watch(self) -> None:
        """End it when it stands still: its loop does not turn, or a pass says nothing for too long."""
        pause = min(BEAT_S, PULSE_S / 4, IDLE_S / 4, self._silence_s / 4)
        while True:
            await asyncio.sleep(pause)
            now = self._loop.time()
            if (found := box.threads(self._process.pid)) > THREADS:
                self.end(f"it runs {found} threads; at most {THREADS} are let")
            self._strays = 0
            if self._serving or self._checks:
                self._asked_at = now
            elif now - self._asked_at > IDLE_S:
                self.end("it had nothing to do")
            if not self._serving or not self._light.is_set():
                self._pong_at = now
                continue
            self.say(Ping())
            if now - self._pong_at > PULSE_S:
                self.end(f"it answered nothing for {PULSE_S} seconds")
            elif any(one.idle and now - one.heard_at > self._silence_s for one in self._serving.values()):
                self.end(f"a run of it did nothing for {self._silence_s:g} seconds")

    # --- what it says -----------------------------------------------------------------------------------

    async def _read(self, reader: asyncio.StreamReader) -> None:
        try:
            while True:
                (size,) = HEAD.unpack(await reader.readexactly(HEAD.size))
                if size > MOST:
                    raise Nonsense(f"a message of {size} bytes")
                self._heard(to_host(await reader.readexactly(size)), size)
                await self._light.wait()
        except (asyncio.IncompleteReadError, ConnectionError):
            self.end("it went away")
        except (Nonsense, msgspec.MsgspecError, RecursionError, UnicodeError) as fault:
            log.error("%s said what no worker says (%s): %s", self.name, type(fault).__name__, str(fault)[:200])
            self.end(f"it said what no worker says: {str(fault)[:200]}")

    def _heard(self, word: ToHost, size: int) -> None:
        match word:
            case Pong():
                self._pong_at = self._loop.time()
                self._stray(size)
            case Ready() | Unready() if not self._opening.done():
                self._opening.set_result(word)
            case Checked():
                future = self._checks.get(word.n)
                if future is not None and not future.done():
                    future.set_result(word)
                else:
                    self._stray(size)
            case Ready() | Unready():
                raise Nonsense("that it is ready, twice")
            case _:
                serving = self._serving.get(word.run)
                act = None if serving is None else serving.heard(word)
                if serving is None:  # about a pass that is over
                    self._stray(size)
                if act is not None:
                    self._weigh(size)
                    act.add_done_callback(lambda _: self._weigh(-size))

    def _weigh(self, size: int) -> None:
        """What it has asked and was not answered is kept in memory here: of too much, no more is read."""
        self._weight += size
        if self._weight > HEAVY:
            self._light.clear()
        else:
            self._light.set()

    def _stray(self, size: int) -> None:
        """A word that nobody waits for: now and then one is late. Reading them costs the host."""
        self._strays += 10 + (size >> 10)
        if self._strays > STRAYS:
            raise Nonsense("thousands of words, or many large ones, that nobody waits for")


def _gone(gate: Gate | None, folder: str | None) -> None:
    if gate is not None:
        gate.close()
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)
