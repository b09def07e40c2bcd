"""cli.child - the process that `onefold dev` keeps an app in.

For: starting it with the listening socket and a control channel handed down, and its four words:
`loaded` and `serving` from it, `go` to it, and the channel's end, which means stop.
Never: shares memory with the app; leaves a child behind when this process is killed (the channel
ends, and the child stops by itself).
Was wrong once: a fresh socket for every child. Calls that came during a reload were refused; now
they wait in the one socket that stays.
"""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Self

GRACE_S = 20.0  # longer than the grace in which the app drains what it accepted
LOADED, SERVING, GO = b"loaded\n", b"serving\n", b"go\n"
START = "from onefold.cli import main; main()"


@dataclass
class Process:
    """A child process. Satisfies cli.reload.Child."""

    process: asyncio.subprocess.Process
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    served: bool = False
    _said: asyncio.Task[None] | None = field(default=None, repr=False)

    @classmethod
    async def spawn(cls, arguments: Sequence[str], listening: socket.socket, *, again: bool) -> Self:
        """Start `onefold dev ARGUMENTS` as a child that is handed the socket and a control channel.

        again: the addresses were printed before.
        """
        ours, theirs = socket.socketpair()
        with theirs:
            handed = f"{listening.fileno()},{theirs.fileno()},{int(again)}"
            command = (sys.executable, "-c", START, "dev", *arguments, "--no-reload", "--handed", handed)
            process = await asyncio.create_subprocess_exec(*command, pass_fds=(listening.fileno(), theirs.fileno()))
        reader, writer = await asyncio.open_connection(sock=ours)
        return cls(process, reader, writer)

    @property
    def code(self) -> int | None:
        return self.process.returncode

    async def loaded(self) -> bool:
        if await self.reader.readline() == LOADED:
            self._said = asyncio.create_task(self._listen())
            return True
        await self._gone()
        return False

    def go(self) -> None:
        self.writer.write(GO)

    async def _listen(self) -> None:
        self.served = await self.reader.readline() == SERVING

    async def ended(self) -> None:
        """Wait for its end, and for its last word."""
        await self.process.wait()
        if self._said is not None:
            await asyncio.wait((self._said,))

    async def stop(self) -> None:
        with suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGTERM)
        await self._gone()

    async def _gone(self) -> None:
        """Wait for its end, and end it when it does not within the grace."""
        try:
            async with asyncio.timeout(GRACE_S):
                await self.process.wait()
        except TimeoutError:
            with suppress(ProcessLookupError):
                self.process.kill()
            await self.process.wait()
        finally:
            if self._said is not None:
                self._said.cancel()
            self.writer.close()


class Handed:
    """The child's side: what it was handed, and the words it exchanges."""

    def __init__(self, handed: str) -> None:
        listening, control, again = handed.split(",")
        self.again = again == "1"
        self.socket = socket.socket(fileno=int(listening))
        self._control = socket.socket(fileno=int(control))

    def ready(self) -> bool:
        """Say that the app is loaded, and wait for `go`. False: stop instead."""
        self._control.sendall(LOADED)
        return self._control.recv(len(GO)) == GO

    def serving(self) -> None:
        with suppress(OSError):
            self._control.sendall(SERVING)

    async def until_gone(self) -> None:
        """Returns when the process that keeps this one is gone."""
        self._control.setblocking(False)
        while await asyncio.get_running_loop().sock_recv(self._control, 64):
            pass
