"""cli.export - a tool's own tables, taken out.

For: `onefold export TOOL --sql | --sqlite | --csv TABLE -o PATH`; with none of the three, the names of its tables.
Never: leaves half a file: the new one is put in place when it is whole.
Was wrong once: one page of a thousand rows taken for the table.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import click

from onefold.cli import show
from onefold.cli.line import Line
from onefold.cli.options import give, spoken

PAGE = 1000  # rows that --csv --json shows


@click.command("export")
@click.argument("tool")
@click.option("--sql", is_flag=True, help="All of its tables, as the SQL that makes them again.")
@click.option("--sqlite", is_flag=True, help="All of its tables, as a SQLite file.")
@click.option("--csv", "table", metavar="TABLE", help="One table, as CSV.")
@click.option(
    "-o", "--output", type=click.Path(allow_dash=True, dir_okay=False), default="-", help="A file; - is stdout."
)
@spoken
def export(line: Line, tool: str, sql: bool, sqlite: bool, table: str | None, output: str, as_json: bool) -> None:
    """Write the tables of TOOL to a file, or one of them, or list their names."""
    if sql + sqlite + (table is not None) > 1:
        raise click.UsageError("Say one of --sql, --sqlite and --csv TABLE.")
    if table is not None and as_json:
        show.raw(line.get("tools", tool, "tables", table, limit=PAGE).body)
    elif table is not None:
        with _written(output) as out:
            line.save(out, "tools", tool, "tables", table, accept="text/csv")
    elif sql or sqlite:
        if sqlite and output == "-" and sys.stdout.isatty():
            raise click.UsageError("A SQLite file is nothing to look at in a terminal: say where it goes with -o PATH.")
        with _written(output) as out:
            line.save(out, "tools", tool, "export", **{"as": "sql" if sql else "sqlite"})
    else:
        give(line.get("tools", tool, "tables"), as_json, lambda names: click.echo("\n".join(map(show.plain, names))))


@contextlib.contextmanager
def _written(output: str) -> Iterator[BinaryIO]:
    """Where the bytes go; a file stands in its place when the block is through, or not at all."""
    if output == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    path = Path(output)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        out = draft.open("wb")
    except OSError as fault:
        raise click.UsageError(f"{output} cannot be written: {fault.strerror}.") from None
    try:
        with out:
            yield out
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    click.echo(f"Wrote {output}.", err=True)
