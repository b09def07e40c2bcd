"""cli.stage - an app brought up: from a target and flags to an answering socket, and down again.

For: `dev`, `serve`, and commands that open the store themselves.
Never: reloads (cli.reload does); prints an address (cli.welcome does); listens where anybody could
call without a key.
Was wrong once: the server's own signal handling. It ended the process by the signal, so that a clean
stop looked like a kill to whatever had started it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from onefold.terms.errors import Finding, LoadRefused

if TYPE_CHECKING:
    from uvicorn import Server

    from onefold.host.catalog import Part
    from onefold.host.config import Config
    from onefold.host.host import Host
    from onefold.serve import Front

GRACE_MS = 5_000  # in which answers under way may end after a stop; runs have a grace of their own
BACKLOG = 2048  # calls that wait in the socket while an app is reloaded
SIGNALS = (signal.SIGINT, signal.SIGTERM)


@dataclass(frozen=True, slots=True)
class Staged:
    """An app that is loaded and not yet opened. `title` is what its file is called."""

    parts: Sequence[Part]
    config: Config
    title: str
    dev: bool = False
    accept_rollback: bool = False

    def on(self, listening: socket.socket) -> Staged:
        """The same, where it really listens: port 0 took a free one, and links must name it."""
        (host, asked), port = self.config.listen, listening.getsockname()[1]
        config = self.config
        if asked != port:
            public = config.public_url
            public = public.removesuffix(f":{asked}") + f":{port}" if public.endswith(f":{asked}") else public
            config = replace(config, listen=(host, port), public_url=public)
        if config.node.name is not None and config.node.advertise is None:
            config = replace(config, node=replace(config.node, advertise=_reached(host, port)))
        return replace(self, config=config)

    @contextlib.asynccontextmanager
    async def opened(self, say: Callable[[str], None] | None = None) -> AsyncIterator[Host]:
        """The app's host while it is open; `say` is told of notices. Raises: what opening the store raises."""
        from onefold.host.opening import open_host

        host = await open_host(
            self.config,
            self.parts,
            title=self.title,
            say=say,
            show_links=self.dev,
            twice=self.dev,
            accept_rollback=self.accept_rollback,
        )
        try:
            yield host
        finally:
            await host.close()


def stage(
    target: str, flags: Mapping[str, Any], start: Path, *, dev: bool = False, accept_rollback: bool = False
) -> Staged:
    """Load a target and settle how it is run. Raises: LoadRefused, in words, with file and line."""
    from onefold.app import App
    from onefold.host.config import find, settle
    from onefold.host.target import file_of, load

    found = load(target, App, start)
    app = found.app or App(*found.parts)
    config = settle(
        code=app.said,
        flags=flags,
        environ=os.environ,  # noqa: TID251 - the door: handed to host's config, which reads it
        file=app.file or find(file_of(target, start), start=start),
    )
    return Staged(app.parts, config, found.title, dev, accept_rollback)


def fit_to_serve(config: Config) -> None:
    """Raises: LoadRefused when anybody could call, or when a variable that a setting names holds no fit secret."""
    findings = list(config.lacking())
    if not config.loopback and not config.keys:
        problem = "is not loopback, and there are no keys: anybody could call. Add `keys`, or listen on 127.0.0.1"
        findings.append(Finding(f"listen {config.listen[0]}:{config.listen[1]}", problem))
    if findings:
        raise LoadRefused(findings)


def fit_to_load(parts: Sequence[object]) -> None:
    """Raises: LoadRefused where the automations of these parts would be refused. Opens nothing: another may be serving."""
    from onefold.reflex.part import Reflexes

    if not any(isinstance(part, Reflexes) and part.source for part in parts):
        return
    from onefold.host.drawing import drawn

    refused = [finding for finding in drawn(parts).findings if finding.level == "refused"]
    if refused:
        raise LoadRefused(refused)


def _reached(host: str, port: int) -> str:
    """Where other nodes find what listens here. Raises: LoadRefused where it listens on every address of the machine."""
    if host in ("0.0.0.0", "::"):  # noqa: S104 - compared, not bound
        told = "say where the other nodes reach this one, by --advertise URL: it listens on all addresses"
        raise LoadRefused([Finding("node.advertise", told)])
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def bound(listen: tuple[str, int]) -> socket.socket:
    """A socket that listens there. Raises: LoadRefused when the address is taken or not this machine's."""
    host, port = listen
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, port))
        made.listen(BACKLOG)
    except OSError as error:
        made.close()
        problem = (
            f"cannot be listened on: {error.strerror}. Choose another with --listen HOST:PORT; port 0 is a free one"
        )
        raise LoadRefused([Finding(f"listen {host}:{port}", problem)]) from error
    return made


async def serve(
    staged: Staged,
    listening: socket.socket,
    *,
    serving: Callable[[Host], None],
    live: Callable[[Any], None] | None = None,
    until: Callable[[], Awaitable[None]] | None = None,
    signals: Sequence[signal.Signals] = SIGNALS,
) -> None:
    """Open the app and answer on the socket until one of `signals`, or the end of `until`; then drain and close.

    serving: called once it answers. live: told each happening. Raises: what opening the store raises.
    """
    from onefold.host.notified import nobodies
    from onefold.serve import asgi_app

    async with staged.opened(_say) as host:
        for told in nobodies(host.catalog.actuators.values(), staged.config.people):
            _say(told)
        front = asgi_app(host)  # before the group: what this refuses is told as it is
        server = _server(front, staged.config.listen, lambda: serving(host), host.rest)
        async with asyncio.TaskGroup() as tasks:
            stops = _stops_on_signals(server, signals)
            beside = [tasks.create_task(_tell(host, live))] if live else []
            if until is not None:
                beside.append(tasks.create_task(_stop_after(until, server)))
            try:
                await server.serve(sockets=[listening])
            finally:
                stops()
                for task in beside:
                    task.cancel()


def _say(text: str) -> None:
    click.echo(text, err=True)


def _server(front: Front, listen: tuple[str, int], serving: Callable[[], None], stopping: Callable[[], None]) -> Server:
    """The server of `serve.run`, on a socket that is there already, with its signals left to us."""
    from uvicorn import Server

    from onefold.serve.run import settings

    class Kept(Server):
        @contextlib.contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            serving()

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            stopping()
            front.drain()
            await super().shutdown(sockets)
            if self.force_exit:  # its lifespan was left waiting, and would be cut off with a traceback
                await self.lifespan.shutdown()

    return Kept(settings(front, listen, GRACE_MS))


def _stops_on_signals(server: Server, signals: Sequence[signal.Signals]) -> Callable[[], None]:
    """Stop on one of these; a second one does not wait for requests under way. Gives the way back."""
    loop = asyncio.get_running_loop()

    def stop() -> None:
        server.force_exit = server.should_exit
        server.should_exit = True

    for number in signals:
        loop.add_signal_handler(number, stop)

    def leave() -> None:
        for number in signals:
            loop.remove_signal_handler(number)

    return leave


async def _tell(host: Host, live: Callable[[Any], None]) -> None:
    async for happening in host.watch():
        live(happening)


async def _stop_after(until: Callable[[], Awaitable[None]], server: Server) -> None:
    await until()
    server.should_exit = True


def run(serving: Coroutine[Any, Any, None]) -> None:
    """Run to the end, on the fast loop where there is one."""
    factory: Callable[[], asyncio.AbstractEventLoop] | None = None
    if sys.platform != "win32":
        import uvloop

        factory = uvloop.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(serving)
