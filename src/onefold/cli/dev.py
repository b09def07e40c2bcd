"""cli.dev - an app while somebody writes it.

For: `onefold dev TARGET`: serves it, prints where, reloads on a change, shows what happens.
Never: keeps anything that `serve` would not; two ways to run an app would be two apps.
Was wrong once: reloading modules in place. The old classes lived on in what was already decoded, and
an approval was not an Approved any more; each change now gets a fresh process.
"""

from __future__ import annotations

import asyncio
import itertools
import signal
import socket
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from onefold.cli.options import target_of

if TYPE_CHECKING:
    from onefold.cli.child import Handed
    from onefold.cli.stage import Staged
    from onefold.host.host import Host

LOOK_EVERY_S = 0.4  # how soon a change is seen; a look at a hundred files takes a millisecond


@click.command("dev", short_help="Serve an app, reload it on changes, show what happens.")
@click.argument("target", required=False)
@click.option("--listen", metavar="HOST:PORT", help="Where to listen; by default 127.0.0.1:8600.")
@click.option("--store", help="The store: a folder, postgres://…, or memory: for one that ends with the process.")
@click.option("--no-reload", is_flag=True, help="Serve in this process, and leave changes alone.")
@click.option("--handed", hidden=True, help="Sockets of the process that keeps this one.")
def dev(target: str | None, listen: str | None, store: str | None, no_reload: bool, handed: str | None) -> None:
    """Serve TARGET (file.py, file.py:name or package.module:name), reload on changes, show what happens."""
    start = Path.cwd()
    where = target_of(target, start)
    if no_reload:
        _serve_here(where, {"listen": listen, "store": store}, start, handed)
    else:
        code = _keep(where, listen, store, start)
        click.get_current_context().exit(code)


# --- this process serves ---------------------------------------------------------------------------


def _serve_here(target: str, flags: dict[str, Any], start: Path, handed: str | None) -> None:
    from onefold.cli import stage
    from onefold.cli.child import Handed

    kept = Handed(handed) if handed else None
    if kept is not None:  # Ctrl-C reaches the whole group; the process that keeps this one hears it and says when
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    staged = stage.stage(target, flags, start, dev=True)
    stage.fit_to_serve(staged.config)
    stage.fit_to_load(staged.parts)
    if kept is not None and not kept.ready():
        return
    listening = kept.socket if kept is not None else stage.bound(staged.config.listen)
    staged = staged.on(listening)
    stage.run(
        stage.serve(
            staged,
            listening,
            serving=lambda host: _greet(host, staged, listening, kept),
            live=_show,
            until=kept.until_gone if kept is not None else None,
            signals=(signal.SIGTERM,) if kept is not None else stage.SIGNALS,
        )
    )


def _greet(host: Host, staged: Staged, listening: socket.socket, kept: Handed | None) -> None:
    import os

    from onefold.cli.welcome import addresses, parts

    name, port = listening.getsockname()[:2]
    url = f"http://{f'[{name}]' if ':' in name else name}:{port}"
    click.echo(f"onefold dev serves {staged.title} on {url} (store: {staged.config.shown}, process {os.getpid()})")
    if kept is not None and kept.again:
        kept.serving()
        return
    tools = {each.name: each.input_schema for each in host.catalog.actuators.values()}
    for line in addresses(staged.title, url, tools, keyed=bool(staged.config.keys)):
        click.echo(line)
    for line in parts(url, _named(host)):
        click.echo(line)
    if kept is not None:
        kept.serving()


def _named(host: Host) -> dict[str, list[str]]:
    """What the app has beside its tools: kind -> names."""
    modules = host.catalog.modules.values()
    hooks = [name for name, one in host.catalog.actuators.items() if one.webhook or name in host.config.hooks]
    return {
        "modules": [each.name for each in modules if each.room != "timers"],
        "timers": [each.name for each in modules if each.room == "timers"],
        "cells": list(host.catalog.cells),
        "reflexes": [name if on else f"{name} (disabled)" for name, on in host.armed],
        "hooks": hooks,
        "signals": list(host.config.signals),
    }


def _show(happening: Any) -> None:
    from onefold.cli.welcome import happened

    click.echo(happened(happening))


# --- another process serves, and this one keeps it ---------------------------------------------------


def _keep(target: str, listen: str | None, store: str | None, start: Path) -> int:
    """Bind once, then keep a child on the socket. Gives the exit code."""
    import os

    from onefold.cli.stage import bound
    from onefold.host.config import find, settle
    from onefold.host.target import file_of

    file = file_of(target, start)
    config_file = find(file, start=start)
    environ = os.environ  # noqa: TID251 - the door: handed to host's config, which reads it
    config = settle(flags={"listen": listen, "store": store}, environ=environ, file=config_file)
    with bound(config.listen) as listening:
        host, port = config.listen[0], listening.getsockname()[1]
        arguments = [target, "--listen", f"[{host}]:{port}" if ":" in host else f"{host}:{port}"]
        arguments += ["--store", store] if store is not None else []
        folders = [one.parent for one in (file, config_file) if one is not None] or [start]
        return asyncio.run(_kept(arguments, listening, folders))


async def _kept(arguments: Sequence[str], listening: socket.socket, folders: Sequence[Path]) -> int:
    from onefold.cli.child import Process
    from onefold.cli.files import Looking
    from onefold.cli.reload import keep_serving

    spawned = itertools.count()
    keeping = asyncio.create_task(
        keep_serving(
            spawn=lambda: Process.spawn(arguments, listening, again=next(spawned) > 0),
            look=Looking(folders),
            pause=_pause,
            say=lambda text: click.echo(f"onefold dev: {text}", err=True),
        )
    )
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, keeping.cancel)
    with suppress(asyncio.CancelledError):
        return await keeping
    return 0


async def _pause(child: Any) -> None:
    """A little while, or until the child ends."""
    if child is None:
        await asyncio.sleep(LOOK_EVERY_S)
        return
    with suppress(TimeoutError):
        async with asyncio.timeout(LOOK_EVERY_S):
            await child.ended()
