"""cli.approve - the approval inbox, and a person's yes or no.

For: `onefold approve` lists what waits for somebody; `onefold approve RUN NAME --yes | --no` decides.
Never: decides without being told which way; decides twice.
Was wrong once: yes by default. Somebody pressed the arrow key once too often.
"""

from __future__ import annotations

import getpass
from typing import Any
from urllib.parse import quote

import click

from onefold.cli import show
from onefold.cli.answers import REFUSED
from onefold.cli.line import Line
from onefold.cli.options import give, spoken

PAGE = 1000
COLUMNS = ("run_id", "program", "name", "message", "since", "until")


@click.command("approve", short_help="List what waits for approval, or decide it.")
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
        _inbox(_waiting(line), as_json)
        return
    if name is None or approve is None:
        raise click.UsageError("Say which approval and which way: onefold approve RUN NAME --yes, or --no.")
    said = {"approve": approve} | ({"comment" if approve else "reason": reason} if reason else {})
    headers = {"onefold-by": quote(by or getpass.getuser(), safe="")}
    answer = line.post("runs", run_id, "approvals", name, body=canonical(said), headers=headers)
    give(answer, as_json, _verdict)
    if answer.json["outcome"] != "decided":
        click.get_current_context().exit(REFUSED)


def _waiting(line: Line) -> list[dict[str, Any]]:
    """Every open approval, oldest first, out of the runs that wait."""
    found: list[dict[str, Any]] = []
    after = None
    while True:
        page = line.get("runs", status="waiting", limit=PAGE, after=after).json
        for run in page["items"]:
            for wait in run.get("waits", ()):
                if wait["kind"] == "approval":
                    found.append({"run_id": run["run_id"], "program": run["program"], **wait})
        after = page.get("next")
        if after is None:
            return sorted(found, key=lambda one: str(one.get("since")))


def _inbox(waiting: list[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        show.raw(show.compact({"items": waiting, "next": None}).encode())
    else:
        show.table(waiting, COLUMNS, empty="Nothing waits for anybody.")


def _verdict(verdict: dict[str, Any]) -> None:
    by = verdict.get("by")
    who = ", ".join(by) if isinstance(by, list) else by
    match verdict["outcome"]:
        case "decided":
            click.echo(f"{show.plain(verdict.get('way') or 'decided').capitalize()} by {show.plain(who)}.")
        case "already_decided":
            way = show.plain(verdict.get("way") or "decided")
            click.echo(f"{show.plain(who)} had already {way} at {verdict.get('at')}. Nothing was changed.")
        case other:
            click.echo(f"Nothing was decided: the approval is {show.plain(other)}.")
