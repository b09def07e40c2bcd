"""The command line with a fuse: what it serves is served as ever, until the k-th time that a named point is met.

    python tests/example/killed.py [POINT HIT] -- serve examples/refund.py …

For: dying by SIGKILL, as a machine dies, between any two things that must hold together.
Never: changes what is served; dies of anything but its fuse.
Was wrong once: a fuse that raised. What it interrupted cleaned up after itself, and a kill does not.

The points are those of the store (before-commit, after-commit, statement), of the host (before-send,
after-send, step-returned, before-reply) and of the socket (before-answer, after-answer). The fuse is laid
at the start, or later by a line on stdin: `arm POINT HIT` is answered with `armed`; `met` with `met N`, how
often the point was met, once nothing moves any more. `grace SECONDS`, answered with `granted`, is how long what is
on its way may take at a stop.
"""

from __future__ import annotations

import asyncio
import functools
import os
import signal
import sys
import threading
from typing import Any

import onefold.serve
from onefold.cli import main
from onefold.host import opening

QUIET = 5  # looks in a row, a millisecond apart, at which nothing moved
SOON_MS = 5_000  # what is due so soon counts as moving: a row whose sender died is sent anew after a second


class Fuse:
    """Counts one point; ends the process at its k-th hit, in the middle of whatever it does."""

    def __init__(self) -> None:
        self.point, self.hit, self.met = "", 0, 0

    def arm(self, point: str, hit: int) -> None:
        self.point, self.hit, self.met = point, hit, 0

    def __call__(self, point: str) -> None:
        if point == self.point:
            self.met += 1
            if self.met == self.hit:
                os.kill(os.getpid(), signal.SIGKILL)


class Fused:
    """The ASGI application, with a point before each answer's first byte and one after its last."""

    def __init__(self, front: Any, fuse: Fuse) -> None:
        self._front = front
        self._fuse = fuse

    def __getattr__(self, name: str) -> Any:
        return getattr(self._front, name)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        async def fused(message: Any) -> None:
            if message["type"] == "http.response.start":
                self._fuse("before-answer")
            await send(message)
            if message["type"] == "http.response.body" and not message.get("more_body"):
                self._fuse("after-answer")

        await self._front(scope, receive, fused)


def lay(fuse: Fuse) -> None:
    """Open every host and serve every application with this fuse in it, and listen to stdin."""
    open_host, asgi_app = opening.open_host, onefold.serve.asgi_app

    async def opened(*values: Any, **more: Any) -> Any:
        host = await open_host(*values, **more, failpoint=fuse)
        loop = asyncio.get_running_loop()
        threading.Thread(target=obey, args=(fuse, host, loop), daemon=True).start()
        return host

    def served(host: Any) -> Any:
        return Fused(asgi_app(host), fuse)

    setattr(opening, "open_host", opened)  # noqa: B010 - the one place where a test reaches into the serving process
    setattr(onefold.serve, "asgi_app", served)  # noqa: B010 - as above


def obey(fuse: Fuse, host: Any, loop: asyncio.AbstractEventLoop) -> None:
    for line in sys.stdin:
        word, *rest = line.split()
        if word == "arm":
            fuse.arm(rest[0], int(rest[1]))
            tell("armed")
        elif word == "grace":
            host.close = functools.partial(host.close, float(rest[0]))
            tell("granted")
        else:
            asyncio.run_coroutine_threadsafe(at_rest(host), loop).result()
            tell(f"met {fuse.met}")


def tell(line: str) -> None:
    os.write(1, f"{line}\n".encode())


async def at_rest(host: Any) -> None:
    quiet = 0
    while quiet < QUIET:
        await asyncio.sleep(0.001)
        soon = host.clock.now() + SOON_MS
        due = [at for at in host._core.driver._next.values() if at is not None and at < soon]
        quiet = quiet + 1 if host.quiet and not due else 0


if __name__ == "__main__":
    split = sys.argv.index("--")
    fuse = Fuse()
    if split == 3:
        fuse.arm(sys.argv[1], int(sys.argv[2]))
    lay(fuse)
    sys.argv = ["onefold", *sys.argv[split + 1 :]]
    main()
