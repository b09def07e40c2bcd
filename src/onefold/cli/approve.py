"""cli.approve - the approval inbox, and a person's yes or no.

For: `onefold approve` lists what waits for somebody; `onefold approve RUN NAME --yes | --no` decides.
Never: decides without being told which way; decides twice.
Was wrong once: yes by default. Somebody pressed the arrow key once too often.
"""

from __future__ import annotations

import getpass
from typing import Any

import click

from onefold.cli import show
from onefold.cli.answers import REFUSED
from onefold.cli.line import Line
from onefold.cli.options import give, spoken

COLUMNS = ("run_id", "program", "name", "message", "since", "until")


@click.command("approve")
@click.argument("run_id", metavar="[RUN", required=False)
@click.argument("name", metavar="NAME]", required=False)
@click.option("--yes/--no", "approve", default=None, help="What is decided.")
@click.option("--reason", help="Why not, or a comment to a yes. The run gets to see it.")
@click.option("--by", metavar="WHO", help="Who decides; by default the name you are logged in with.")
@spoken
def approve(
    line: Line,
    run_id: str | None,
    name: str | None,
    approve: bool | None,
    reason: str | None,
    by: str | None,
    as_json: bool,
) -> None:
    """Bare: the inbox. With RUN, NAME and --yes or --no: decide."""
    from onefold.terms.codec import canonical

    if run_id is None:
        if approve is not None:
            raise click.UsageError("Say what is decided: onefold approve RUN NAME --yes.")
        give(line.get("approve", accept="application/json"), as_json, _inbox)
        return
    if name is None or approve is None:
        raise click.UsageError("Say which approval and which way: onefold approve RUN NAME --yes, or --no.")
    said = {"approve": approve} | ({"comment" if approve else "reason": reason} if reason else {})
    headers = {"onefold-by": by or getpass.getuser()}
    answer = line.post("runs", run_id, "approvals", name, body=canonical(said), headers=headers)
    give(answer, as_json, _verdict)
    if answer.json["outcome"] != "decided":
        click.get_current_context().exit(REFUSED)


def _inbox(page: dict[str, Any]) -> None:
    show.table(page["items"], COLUMNS, empty="Nothing waits for anybody.")


def _verdict(verdict: dict[str, Any]) -> None:
    by = verdict.get("by")
    who = ", ".join(by) if isinstance(by, list) else by
    match verdict["outcome"]:
        case "decided":
            click.echo(f"Decided by {show.plain(who)}.")
        case "already_decided":
            click.echo(f"{show.plain(who)} had already decided at {verdict.get('at')}. Nothing was changed.")
        case other:
            click.echo(f"Nothing was decided: the approval is {show.plain(other)}.")
