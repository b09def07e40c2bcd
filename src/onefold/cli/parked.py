"""cli.parked - what stopped and waits for a person.

For: `onefold parked [list | show | retry | drop]`; bare, it lists.
Never: drops without a reason.
Was wrong once: `drop` without asking why. A month later nobody knew whether a customer had been paid.
"""

from __future__ import annotations

from typing import Any

import click

from onefold.cli import show
from onefold.cli.line import Line
from onefold.cli.options import Listing, give, spoken

COLUMNS = ("id", "kind", "program", "since", "cause")


@click.group("parked", cls=Listing)
def parked() -> None:
    """What stopped and waits for a person: look, try again, or drop."""


@parked.command("list")
@click.option("--limit", type=click.IntRange(1, 1000), default=100, show_default=True)
@click.option("--after", help="Go on where `next` of an earlier list says.")
@spoken
def list_parked(line: Line, limit: int, after: str | None, as_json: bool) -> None:
    """List what is parked, and why; what waits longest comes first."""
    give(line.get("parked", limit=limit, after=after), as_json, _list)


def _list(page: dict[str, Any]) -> None:
    show.table(page["items"], COLUMNS, empty="Nothing is parked.")
    if page["next"]:
        click.echo(f"More: --after {show.plain(page['next'])}")


@parked.command("show")
@click.argument("item", metavar="ID")
@spoken
def show_item(line: Line, item: str, as_json: bool) -> None:
    """Show one item: whose it is, what it holds, and what retry and drop would do."""
    give(line.get("parked", item), as_json, _show)


def _show(item: dict[str, Any]) -> None:
    body = show.compact(item["body"]) if "body" in item else None
    names = ("id", "kind", "program", "key", "principal", "since", "cause", "port", "owed", "tries", "next_at")
    show.facts([*((name, item.get(name)) for name in names), ("body", body)])
    show.facts([("retry", item["retry"]), ("drop", item["drop"])])


@parked.command("retry")
@click.argument("item", metavar="ID")
@spoken
def retry(line: Line, item: str, as_json: bool) -> None:
    """Try it again."""
    give(line.post("parked", item, "retry"), as_json, lambda _: click.echo("It is tried again."))


@parked.command("drop")
@click.argument("item", metavar="ID")
@click.option("--reason", required=True, help="Why it is given up. It is kept, and the actor is told.")
@spoken
def drop(line: Line, item: str, reason: str, as_json: bool) -> None:
    """Give it up, for a reason."""
    from onefold.terms.codec import canonical

    answer = line.post("parked", item, "drop", body=canonical({"reason": reason}))
    give(answer, as_json, lambda _: click.echo("It is dropped."))
