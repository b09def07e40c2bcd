"""cli.backup - the store's folder taken along, and put in place again.

For: `onefold backup FOLDER`, beside an app or without one; `onefold restore FOLDER`.
Never: overwrites anything; opens the app; takes a copy for good that SQLite finds damaged.
Was wrong once: a copy made by the system's own tools beside a running app. It looked whole, and was of two instants.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from onefold.cli import show
from onefold.cli.answers import FAILED, HELD
from onefold.cli.options import json_option

PART = ".part"


@click.command("backup")
@click.argument("to", metavar="FOLDER", type=click.Path(path_type=Path))
@click.option("--store", help="The store; by default that of onefold.toml.")
@json_option
def backup(to: Path, store: str | None, as_json: bool) -> None:
    """Copy the whole store into FOLDER, as it is at one instant, also while an app has it.

    FOLDER is a store by itself: doctor checks it, and serve runs it. It holds customers' data and the signing secret.
    """
    from onefold.store.sqlite.backup import Moving
    from onefold.store.sqlite.backup import backup as copied

    source = _folder(store)
    if not any(source.glob("*.db")):
        raise click.UsageError(f"There is no store in {source}, so nothing was copied. Name it with --store.")
    with _made(to) as part:
        try:
            spaces = copied(source, part)
        except Moving:
            click.echo(
                "The store was never still for a moment, so nothing was kept. Try again, or stop the app.", err=True
            )
            click.get_current_context().exit(HELD)
        _sound(part)
    _tell(spaces, f"Copied {len(spaces)} spaces of {source} to {to}.", as_json)


@click.command("restore")
@click.argument("source", metavar="FOLDER", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--store", help="Where the store is to be; by default that of onefold.toml.")
@json_option
def restore(source: Path, store: str | None, as_json: bool) -> None:
    """Put a backup in the place of the store, which must be empty.

    What was owed then and had not left is sent when the app starts, and what came afterwards is not there: whoever was
    told that it was taken may send it again, under the same key.
    """
    spaces = sorted(path.stem for path in source.glob("*.db"))
    if not spaces:
        raise click.UsageError(f"There is no backup in {source}.")
    _sound(source)
    to = _folder(store)
    with _made(to) as part:
        shutil.copytree(source, part, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.mark", "*-wal", "*-shm"))
    _tell(spaces, f"Restored {len(spaces)} spaces to {to}.", as_json)


def _folder(store: str | None) -> Path:
    """Raises: LoadRefused, click.UsageError for a store that is no folder."""
    from onefold.cli.doctor import configured

    config = configured(store)
    if config.folder is None or config.spaces:
        raise click.UsageError(
            "Only a store that is one folder is copied so. On Postgres pg_dump and pg_restore do it; where `spaces` names "
            "another folder, copy each with --store; one in memory cannot be."
        )
    return config.folder


@contextmanager
def _made(to: Path) -> Iterator[Path]:
    """A folder that is in its place when the block is through, or not at all."""
    if to.exists() and (not to.is_dir() or any(to.iterdir())):
        raise click.UsageError(f"{to} is there already and not empty. Nothing was written.")
    part = to.with_name(f".{to.name}{PART}")
    shutil.rmtree(part, ignore_errors=True)
    try:
        part.mkdir(mode=0o700, parents=True)
        yield part
        if to.exists():
            to.rmdir()
        part.replace(to)
    except OSError as fault:
        raise click.UsageError(f"{to} cannot be written: {fault.strerror}. Nothing was kept.") from fault
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _sound(folder: Path) -> None:
    """Ends the command with 1 where SQLite finds a file damaged."""
    from onefold.kernel.tables import TURN
    from onefold.store.sqlite.checkup import checkup

    wrong = [(file.space, fault) for file in checkup(folder, TURN) for fault in file.faults]
    for space, fault in wrong:
        click.echo(f"{space}: {show.plain(fault)}", err=True)
    if wrong:
        click.echo("Nothing was kept: a damaged copy is none.", err=True)
        click.get_current_context().exit(FAILED)


def _tell(spaces: list[str], told: str, as_json: bool) -> None:
    if as_json:
        show.raw(show.compact({"spaces": spaces}).encode())
    else:
        click.echo(told)
