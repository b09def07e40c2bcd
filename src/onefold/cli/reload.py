"""cli.reload - what `onefold dev` does when a file changes or the app ends.

For: at any time one child serves; a changed one is loaded beside it, and takes over when it is ready.
Never: loads user code in this process; stops a child that works for one that does not; decides
when time passes (`pause` and `look` are handed in).
Was wrong once: stop, then load. A missing bracket took the app down, and with it every agent that
was calling; now the old one serves until the new one has been loaded.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from onefold.cli.files import Picture, changed


class Child(Protocol):
    """One process with the app: spawned, loaded, told to go, ended."""

    @property
    def code(self) -> int | None:
        """Its exit code; None while it runs."""

    @property
    def served(self) -> bool:
        """Whether it ever answered."""

    async def loaded(self) -> bool:
        """Wait until the app is loaded and waits for `go`. False: it ended instead, and has said why."""

    def go(self) -> None:
        """Open the store and serve."""

    async def stop(self) -> None:
        """Ask it to finish what it accepted and end, and wait for that. Nothing when it has ended."""


async def keep_serving(
    spawn: Callable[[], Awaitable[Child]],
    look: Callable[[], Picture],
    pause: Callable[[Child | None], Awaitable[None]],
    say: Callable[[str], None],
) -> int:
    """Serve until cancelled. Gives the exit code of a child that never served, before any other did.

    spawn: start a child. look: a picture of the files. pause: wait a little, or until the child ends.
    """
    seen = look()
    first = await _started(spawn)
    if first.code is not None:
        return first.code
    child: Child | None = first
    ever = False
    try:
        while True:
            await pause(child)
            ever = ever or (child is not None and child.served)
            if child is not None and child.code is not None:
                if not ever:
                    return child.code
                child = await _after_end(child, spawn, say)
            now = look()
            if files := changed(seen, now):
                seen = now
                child = await _renewed(child, spawn, say, ", ".join(file.name for file in files[:3]))
    finally:
        if child is not None:
            await child.stop()


async def _started(spawn: Callable[[], Awaitable[Child]]) -> Child:
    child = await spawn()
    if await child.loaded():
        child.go()
    return child


async def _after_end(child: Child, spawn: Callable[[], Awaitable[Child]], say: Callable[[str], None]) -> Child | None:
    """The app ended by itself: one that served is started again, one that could not start waits for a change."""
    if not child.served:
        say("The app did not start; waiting for a change.")
        return None
    say(f"The app ended ({ending(child.code)}); starting it again. Its runs go on where they were.")
    return await _started(spawn)


async def _renewed(
    child: Child | None, spawn: Callable[[], Awaitable[Child]], say: Callable[[str], None], names: str
) -> Child | None:
    """Load the changed app beside the one that serves, and let it take over when it is ready."""
    fresh = await spawn()
    if not await fresh.loaded():
        say(f"{names} changed and could not be loaded; " + ("the app before it goes on." if child else "waiting."))
        return child
    say(f"{names} changed; reloading.")
    if child is not None:
        await child.stop()
    fresh.go()
    return fresh


def ending(code: int | None) -> str:
    """An exit code in words: a number, or the signal that ended it."""
    return f"signal {-code}" if code is not None and code < 0 else f"exit {code}"
