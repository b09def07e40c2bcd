"""cli.fleet - the nodes of the fleet, what each owns, and the mail that waits.

For: `onefold fleet`.
Never: changes who owns what: a node takes and gives by itself, and leaves by SIGTERM.
Was wrong once: a command that moved slots. The next beat moved them back.
"""

from __future__ import annotations

from typing import Any

import click

from onefold.cli import show
from onefold.cli.line import Line
from onefold.cli.options import give, spoken

COLUMNS = ("name", "state", "slots", "epochs", "until", "url")


@click.command("fleet", short_help="Show the nodes of the fleet.")
@spoken
def fleet(line: Line, as_json: bool) -> None:
    """Show the nodes, how many slots each owns under which epochs, actors owned by name, and the mail that waits."""
    give(line.get("fleet"), as_json, _show)


def _show(told: dict[str, Any]) -> None:
    rows = [{**node, "epochs": "-".join(map(str, node.get("epochs", ())))} for node in told["nodes"]]
    show.table(rows, COLUMNS, empty="No node has joined.")
    for node in told["nodes"]:
        if node.get("reached") is False and node["state"] in ("live", "leaving"):
            click.echo(
                f"{show.plain(node['name'])} is not met at {show.plain(node['url'])}: what is for it goes as letters; "
                "is its --advertise right?"
            )
        for name, epoch in sorted(node["names"].items()):
            click.echo(f"{show.plain(name)} is {show.plain(node['name'])}'s by its own name, epoch {epoch}")
    mail = told["mail"]
    show.facts([("oldest overdue", f"{told['oldest_overdue_seconds']:.1f} s")])
    show.facts([("mail waiting", mail["waiting"]), ("since", mail.get("oldest")), ("mail parked", mail["parked"])])
