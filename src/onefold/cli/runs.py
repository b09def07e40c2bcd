"""cli.runs - look at runs, and say something to one.

For: `onefold runs [list | show | cancel | retry | fork | send]`; bare, it lists.
Never: waits without being told to; hides why a run stands still.
Was wrong once: a list without what each run waits for. Everybody opened every waiting run.
"""

from __future__ import annotations

import shlex
from typing import Any

import click

from onefold.cli import show
from onefold.cli.answers import Answer
from onefold.cli.call import ended_by
from onefold.cli.line import Line
from onefold.cli.options import Listing, Seconds, give, key_header, spoken

COLUMNS = ("run_id", "program", "status", "waits", "key", "updated_at")
JOURNAL = ("seq", "at", "path", "step", "kind", "attempt", "outcome")


@click.group("runs", cls=Listing)
def runs() -> None:
    """Look at runs, cancel one, try one again, send one an event."""


@runs.command("list")
@click.option("--program", help="Only runs of this tool.")
@click.option("--status", help="running, waiting, done, failed, cancelled or parked.")
@click.option("--key", help="The run that was started with this key.")
@click.option("--limit", type=click.IntRange(1, 1000), default=100, show_default=True)
@click.option("--after", help="Go on where `next` of an earlier list says.")
@spoken
def list_runs(
    line: Line, program: str | None, status: str | None, key: str | None, limit: int, after: str | None, as_json: bool
) -> None:
    """List runs, newest first."""
    answer = line.get("runs", program=program, status=status, key=key, limit=limit, after=after)
    give(answer, as_json, _list)


def _list(page: dict[str, Any]) -> None:
    rows = [item | {"waits": "; ".join(_wait(wait) for wait in item.get("waits", ()))} for item in page["items"]]
    show.table(rows, COLUMNS, empty="There are no such runs.")
    if page.get("next"):
        click.echo(f"More: --after {show.plain(page['next'])}")


def _wait(wait: dict[str, Any]) -> str:
    until = f" until {wait['until']}" if wait.get("until") else ""
    name = f' "{wait["name"]}"' if wait.get("name") else ""
    return f"{wait['kind']}{name}{until}"


@runs.command("show")
@click.argument("run_id", metavar="ID")
@click.option("--journal", is_flag=True, help="Every journaled act instead of the receipt.")
@click.option("--wait", type=Seconds(), help="Wait so long for the end.")
@spoken
def show_run(line: Line, run_id: str, journal: bool, wait: float | None, as_json: bool) -> None:
    """Show one run."""
    until = line.time() + (wait or 0)
    answer = line.get("runs", run_id)
    if wait is not None:
        answer = ended_by(line, answer, until)
    if journal:
        give(line.get("runs", run_id, "journal"), as_json, _journal)
    else:
        give(answer, as_json, _receipt)


def _receipt(receipt: dict[str, Any]) -> None:
    error = receipt.get("error") or {}
    why = f"{error.get('code')}: {error.get('message')}" if error else None
    if error.get("step"):
        why = f"{why} (step {error['step']}, {error.get('attempts', 1)} attempts)"
    names = ("run_id", "program", "status", "key", "started_at", "updated_at")
    show.facts([*((name, receipt.get(name)) for name in names), ("error", why)])
    for wait in receipt.get("waits", ()):
        show.facts([("waits for", f"{_wait(wait)} {wait.get('message') or ''}".rstrip())])
    if receipt["status"] == "done":
        show.value(receipt.get("result"))


def _journal(page: dict[str, Any]) -> None:
    rows = [item | {"outcome": item["error"] if "error" in item else item.get("result")} for item in page["items"]]
    show.table(rows, JOURNAL, empty="Nothing was journaled yet.")


@runs.command("cancel")
@click.argument("run_id", metavar="ID")
@click.option("--reason", help="Kept with the run.")
@spoken
def cancel(line: Line, run_id: str, reason: str | None, as_json: bool) -> None:
    """End a run for good. A second time changes nothing; one that is done or failed stays so, and that is said."""
    from onefold.terms.codec import canonical

    body = canonical({} if reason is None else {"reason": reason})
    answer = line.post("runs", run_id, "cancel", body=body)
    give(answer, as_json, _receipt)
    if (status := answer.json["status"]) in ("done", "failed"):
        click.echo(f"Nothing was cancelled: the run had ended before, and is {status}.", err=True)


@runs.command("retry")
@click.argument("run_id", metavar="ID")
@spoken
def retry(line: Line, run_id: str, as_json: bool) -> None:
    """Try a failed or parked run again. What its steps did is kept. Any other stays as it is, and that is said."""
    before = line.get("runs", run_id).json["status"]
    give(line.post("runs", run_id, "retry"), as_json, _receipt)
    if before not in ("failed", "parked"):
        click.echo(
            f"Nothing was tried again: only what is failed or parked can be, and the run was {before}.", err=True
        )


@runs.command("fork")
@click.argument("run_id", metavar="ID")
@click.option(
    "--from", "step", required=True, help="The step to go on from: its name, or its path as the journal has it."
)
@click.option("--key", help="The same key is the same run.")
@spoken
def fork(line: Line, run_id: str, step: str, key: str | None, as_json: bool) -> None:
    """Begin a run that has what the steps before one gave, and does that one and all after it anew."""
    from onefold.terms.codec import canonical

    answer = line.post("runs", run_id, "fork", body=canonical({"from": step}), headers=key_header(key))
    give(answer, as_json, _receipt)


@runs.command("send")
@click.argument("run_id", metavar="ID")
@click.argument("event")
@click.argument("body", metavar="JSON", default="{}")
@click.option("--key", help="The same key is the same event.")
@spoken
def send(line: Line, run_id: str, event: str, body: str, key: str | None, as_json: bool) -> None:
    """Send a run the EVENT it waits for, or will wait for. EVENT is the name of the event's class."""
    if "=" in body and body.lstrip()[:1] != "{":
        name, _, text = body.partition("=")
        written = shlex.quote(show.compact({name: text}))
        raise click.UsageError(
            f"An event is sent as JSON, since nothing here knows its fields: onefold runs send {run_id} {event} {written}"
        )
    answer: Answer = line.post("runs", run_id, "events", event, body=body.encode(), headers=key_header(key))
    give(answer, as_json, _receipt)
