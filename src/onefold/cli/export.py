"""cli.export - a tool's own tables, taken out.

For: `onefold export TOOL --csv TABLE -o PATH`; without --csv, the names of its tables.
Never: leaves half a file: the new one is put in place when it is whole.
Was wrong once: one page of a thousand rows taken for the table.
"""

from __future__ import annotations

import os
from pathlib import Path

import click

from onefold.cli import show
from onefold.cli.line import Line
from onefold.cli.options import give, spoken

PAGE = 1000


@click.command("export")
@click.argument("tool")
@click.option("--csv", "table", metavar="TABLE", help="The table to write as CSV.")
@click.option(
    "-o", "--output", type=click.Path(allow_dash=True, dir_okay=False), default="-", help="A file; - is stdout."
)
@spoken
def export(line: Line, tool: str, table: str | None, output: str, as_json: bool) -> None:
    """Write a TABLE of TOOL as CSV, or list its tables."""
    from onefold.serve.tools import csv_of

    if table is None:
        give(line.get("tools", tool, "tables"), as_json, lambda names: click.echo("\n".join(map(show.plain, names))))
        return
    page = line.get("tools", tool, "tables", table, limit=PAGE)
    if as_json:
        show.raw(page.body)
        return
    rows = list(page.json["rows"])
    while (after := page.json.get("next")) is not None:
        page = line.get("tools", tool, "tables", table, limit=PAGE, after=after)
        rows += page.json["rows"]
    _write(output, csv_of(page.json["columns"], rows))


def _write(output: str, body: bytes) -> None:
    if output == "-":
        click.echo(body, nl=False)
        return
    path = Path(output)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.write_bytes(body)
    draft.replace(path)
    click.echo(f"Wrote {output}.", err=True)
