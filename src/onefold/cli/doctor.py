"""cli.doctor - is the store whole, and does it hold everything that was acknowledged?

For: `onefold doctor`: each file's check, its size, its mark, the chain of each actor's facts, its blobs;
`--accept-rollback` when a file was lost for good.
Never: runs anything of the app; repairs; touches a store that an app holds.
Was wrong once: checking by starting the app. The restored backup sent its month-old mails first. And
taking the default folder for the one that the app's code names: an empty one was said to be well.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from onefold.cli import show
from onefold.cli.answers import DONE, FAILED, HELD, NOT_FOUND
from onefold.cli.options import json_option
from onefold.terms.errors import Finding, LoadRefused, OnefoldError, StoreLocked

if TYPE_CHECKING:
    from onefold.host.blob_audit import Found
    from onefold.host.config import Config
    from onefold.store.postgres.checkup import Part
    from onefold.store.sqlite.checkup import File

COLUMNS = ("space", "bytes", "wal_bytes", "turns", "blobs", "unreferenced", "state")


@click.command("doctor")
@click.option("--store", help="The store: a folder or postgres://…; by default that of onefold.toml.")
@click.option("--accept-rollback", is_flag=True, help="Go on with files that end before what was acknowledged.")
@json_option
def doctor(store: str | None, accept_rollback: bool, as_json: bool) -> None:
    """Check the store's files, that nothing acknowledged is missing, that no history was changed, and every blob."""
    from onefold.kernel.tables import TURN
    from onefold.store.sqlite.checkup import checkup

    config = configured(store)
    if config.store == "memory:":
        raise click.UsageError("This store is in memory and ends with its process; there is nothing to check.")
    files: list[File | Part] = list(checkup(config.folder, TURN)) if config.folder is not None else []
    files += _on_servers(config)
    spaces = [file.space for file in files]
    found = {file.space: _look(config, file, accept_rollback, spaces) for file in files}
    refused = {space: told for space, told in found.items() if isinstance(told, OnefoldError)}
    looked = {space: told for space, told in found.items() if told is not None and not isinstance(told, OnefoldError)}
    _print(config, files, refused, looked, as_json)
    click.get_current_context().exit(_ends_with(files, refused, looked))


def _on_servers(config: Config) -> list[Part]:
    """The spaces that are on Postgres. Raises: LoadRefused, StoreUnavailable."""
    from onefold.host.settings import on_postgres
    from onefold.kernel.tables import TURN

    wanted: dict[str, set[str]] = {config.store: set()} if on_postgres(config.store) else {}
    for name, store in config.spaces.items():
        if on_postgres(store):
            wanted.setdefault(store, set()).add(name)
    parts: list[Part] = []
    for url, names in wanted.items():
        from onefold.store.postgres.checkup import checkup

        found = asyncio.run(checkup(url, TURN, lossy=config.durability != "full"))
        parts += [part for part in found if url == config.store or part.space in names]
    return sorted(parts, key=lambda part: part.space)


def configured(store: str | None) -> Config:
    """The settings of the store to check: the one named, or that of the app in onefold.toml, whose code may say where.

    That file is read as `serve` reads it, so its top level runs; nothing is opened. Raises: LoadRefused.
    """
    from onefold.cli.line import settled
    from onefold.cli.stage import stage

    config = settled(store=store)
    if store is not None or config.app is None:
        return config
    start = Path.cwd() if config.file is None else config.file.parent
    try:
        return stage(config.app, {}, start).config
    except LoadRefused as refused:
        problem = "its code may say where the store is, and it cannot be loaded. Name the folder with --store"
        raise LoadRefused([*refused.findings, Finding(f"app {config.app}", problem)]) from refused


def _look(
    config: Config, file: File | Part, accept_rollback: bool, spaces: Sequence[str]
) -> OnefoldError | Found | None:
    """Why the space cannot be opened; where its histories break when it can. A held one was judged by the
    process that opened it, and its histories and blobs are not read while it grows."""
    if file.holder is not None:
        return StoreLocked(file.space, file.holder) if accept_rollback else None
    if file.faults and not accept_rollback:
        return None
    try:
        return asyncio.run(_open(config, file.space, accept_rollback, spaces))
    except OnefoldError as error:
        return error


async def _open(config: Config, space: str, accept_rollback: bool, spaces: Sequence[str]) -> Found:
    """Open one space as the app would, follow its histories, read its blobs, and close it again."""
    from onefold.actuators.tables import RUNS
    from onefold.host.audit import audit
    from onefold.host.blob_audit import blob_audit
    from onefold.host.clock import WallClock
    from onefold.host.core import MAIN, asking, files_of
    from onefold.host.opening import make_world
    from onefold.kernel.blob import BLOBS
    from onefold.kernel.tables import KERNEL
    from onefold.node.blobs import Blobs

    world = make_world(config, WallClock(), accept_rollback=accept_rollback)
    try:
        opened = await world.open(space, (KERNEL, BLOBS) if space == MAIN else (KERNEL, BLOBS, RUNS))
        broken = await audit(opened)
        others = [asking(world, other) for other in spaces if other != space] if space == MAIN else []
        found = await blob_audit(Blobs(opened, WallClock().now, files_of(config, space)), others)
        found.faults[:0] = broken
        return found
    finally:
        await world.close()


def _print(
    config: Config,
    files: Sequence[File | Part],
    refused: dict[str, OnefoldError],
    looked: dict[str, Found],
    as_json: bool,
) -> None:
    rows: list[dict[str, Any]] = []
    for file in files:
        error = refused.get(file.space)
        found = looked.get(file.space)
        broken = found.faults if found is not None else ()
        state = "; ".join((*file.faults, *([str(error)] if error else ()), *broken)) or "ok"
        held = {"holder": file.holder} if file.holder else {}
        sizes = {name: getattr(file, name) for name in COLUMNS[:4] if hasattr(file, name)}
        counts = {} if found is None else {"blobs": found.blobs, "unreferenced": found.unreferenced}
        rows.append({**sizes, **counts, "state": state, **held})
    if as_json:
        show.raw(show.compact({"store": config.shown, "items": rows}).encode())
        return
    click.echo(f"store {config.shown}")
    columns = [name for name in COLUMNS[:-1] if any(name in row for row in rows)]
    show.table(rows, columns, empty="There is no store, so nothing was checked. Name it with --store.")
    for row in rows:
        holder = ""
        if "holder" in row:
            holder = f" (held by {row['holder']}; its histories and blobs are read when nobody holds it)"
        click.echo(f"{row['space']}: {show.plain(row['state'])}{holder}")


def _ends_with(files: Sequence[File | Part], refused: dict[str, OnefoldError], looked: dict[str, Found]) -> int:
    if not files:
        return NOT_FOUND
    if any(error.exit == HELD for error in refused.values()):
        return HELD
    broken = any(found.faults for found in looked.values())
    return FAILED if refused or broken or any(file.faults for file in files) else DONE
