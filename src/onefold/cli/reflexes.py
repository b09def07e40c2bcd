"""cli.reflexes - automations by hand: tried out, fired, filled up, looked into, drawn.

For: `onefold preview | fire | backfill | explain | reflex-runs | release | graph`.
Never: arms anything; what is armed is a file's to say.
Was wrong once: a preview that printed the inputs alone. Nobody saw that the eleven rows were last month's.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from onefold.cli import show
from onefold.cli.line import Line
from onefold.cli.options import give, json_option, spoken, target_of

RUNS = ("id", "reflex", "cause", "state", "total", "done", "failed", "at", "note")
LATE = ("reflex", "what", "due", "late_seconds")
CHAIN = ("at", "kind", "id", "detail")
TASKS = ("unit", "shows", "input", "error")
SHOWN = ("intent", "reflex", "effect", "unit", "cause", "subject", "state", "by", "note", "error")


def _json(text: str, what: str) -> Any:
    """Raises: click.BadParameter for what is no JSON."""
    from onefold.terms.codec import parse
    from onefold.terms.errors import BadArguments

    try:
        return parse(text.encode(), what)
    except BadArguments as fault:
        raise click.BadParameter(str(fault.faults[0])) from None


def _body(**fields: Any) -> bytes:
    from onefold.terms.codec import canonical

    return canonical({name: value for name, value in fields.items() if value is not None})


@click.command("preview")
@click.argument("reflex")
@click.option("--fact", metavar="JSON", help='Upon this fact: {"kind": "signal", "name": …, "payload": …}.')
@click.option("--at", metavar="INSTANT", help="At this instant instead of now: 2026-09-14T09:00:00Z.")
@click.option("--next", "count", type=click.IntRange(0, 100), help="How many of its next occurrences to show.")
@spoken
def preview(line: Line, reflex: str, fact: str | None, at: str | None, count: int | None, as_json: bool) -> None:
    """Show what a reflex would do now, to which rows, with which inputs. Nothing is done or written."""
    body = _body(fact=None if fact is None else _json(fact, "--fact"), at=at, next=count)
    give(line.post("reflexes", reflex, "preview", body=body), as_json, _preview)


def _preview(seen: dict[str, Any]) -> None:
    show.facts([("reflex", seen["reflex"]), ("cause", seen["cause"]), ("rows", len(seen["rows"]))])
    tasks = [{**task, "input": show.compact(task["input"]) if "input" in task else ""} for task in seen["tasks"]]
    show.table(tasks, TASKS, empty="There would be no task.")
    for instant in seen["next_occurrences"]:
        show.facts([("next", instant)])


@click.command("fire")
@click.argument("reflex")
@click.option("--input", "given", metavar="JSON", help="What templates see as fact.payload.")
@click.option("--by", metavar="WHO", help="Who fires it; kept with the fact.")
@spoken
def fire(line: Line, reflex: str, given: str | None, by: str | None, as_json: bool) -> None:
    """Fire a reflex now, armed or not."""
    body = _body(input=None if given is None else _json(given, "--input"), by=by)
    give(line.post("reflexes", reflex, "fire", body=body), as_json, _fired)


def _fired(told: dict[str, Any]) -> None:
    click.echo(f"It is fired: {show.plain(told['id'])}.")


@click.command("backfill")
@click.argument("reflex")
@click.option("--since", required=True, metavar="INSTANT", help="The first instant whose occurrence counts.")
@click.option("--until", required=True, metavar="INSTANT", help="The last one.")
@spoken
def backfill(line: Line, reflex: str, since: str, until: str, as_json: bool) -> None:
    """Make runs of past occurrences, once each."""
    answer = line.post("reflexes", reflex, "backfill", body=_body(since=since, until=until))
    give(answer, as_json, _filled)


def _filled(told: dict[str, Any]) -> None:
    made = told["count"]
    none = "No run was made: each occurrence between them has one, or had one, or there is none."
    click.echo(none if made == 0 else f"{made} {'run was' if made == 1 else 'runs were'} made.")


@click.command("explain")
@click.argument("row", metavar="ID")
@spoken
def explain(line: Line, row: str, as_json: bool) -> None:
    """Walk from a fact, a reflex run or a task (fact_3, reflex_run_7, task_12) to its first cause."""
    give(line.get("reflexes", "explain", row), as_json, _chain)


def _chain(page: dict[str, Any]) -> None:
    links = [{**link, "detail": _said(link["detail"])} for link in page["items"]]
    show.table(links, CHAIN, empty="Nothing is known of it.")


def _said(detail: dict[str, Any]) -> str:
    return " ".join(f"{name}={show.plain(str(detail[name]))}" for name in SHOWN if detail.get(name) is not None)


@click.command("reflex-runs")
@click.argument("reflex", required=False)
@click.option("--overdue", is_flag=True, help="What should have happened by now and did not.")
@click.option("--tasks", "of", metavar="RUN", help="The tasks of one run (reflex_run_7) instead.")
@click.option("--limit", type=click.IntRange(1, 1000), default=100, show_default=True)
@click.option("--after", help="Go on where `next` of an earlier list says.")
@spoken
def reflex_runs(
    line: Line, reflex: str | None, overdue: bool, of: str | None, limit: int, after: str | None, as_json: bool
) -> None:
    """List reflex runs, newest first: of one reflex, or of all."""
    if overdue + (of is not None) + (reflex is not None) > 1:
        raise click.UsageError(
            "Only one of them: a REFLEX, --overdue or --tasks RUN. Without any it lists the runs of all."
        )
    if overdue:
        give(line.get("reflexes", "overdue"), as_json, lambda page: _list(page, LATE, "Nothing is overdue."))
    elif of is not None:
        told = line.get("reflexes", "runs", of, "tasks", limit=limit, after=after)
        columns = ("id", "unit", "state", "attempt", "due", "output", "error")
        give(told, as_json, lambda page: _list(page, columns, "It has no tasks."))
    else:
        where = ("reflexes", "runs") if reflex is None else ("reflexes", reflex, "runs")
        give(line.get(*where, limit=limit, after=after), as_json, lambda page: _list(page, RUNS, "There are no runs."))


def _list(page: dict[str, Any], columns: Sequence[str], empty: str) -> None:
    rows = [{**row, "output": show.compact(row["output"])} if "output" in row else row for row in page["items"]]
    show.table(rows, columns, empty=empty)
    if page.get("next"):
        click.echo(f"More: --after {show.plain(page['next'])}")


@click.command("release")
@click.argument("fact", metavar="FACT")
@spoken
def release(line: Line, fact: str, as_json: bool) -> None:
    """Let a parked fact (fact_3) pass although its chain is too long. That it was let is kept."""
    give(line.post("facts", fact, "release"), as_json, _released)


def _released(told: dict[str, Any]) -> None:
    click.echo("It is let pass." if told["released"] else "Nothing was done: it is not parked.")


@click.command("graph")
@click.argument("target", required=False)
@click.option("--dot", "form", flag_value="dot", help="As DOT, for a drawing.")
@click.option("--text", "form", flag_value="text", default="text", help="As lines. The default.")
@json_option
def graph(target: str | None, form: str, as_json: bool) -> None:
    """Draw which reflex of TARGET wakes which, and tell of loops and blind edges. Opens no store."""
    from onefold.app import App
    from onefold.host.drawing import drawn
    from onefold.host.target import load

    start = Path.cwd()
    found = load(target_of(target, start), App, start)
    told = drawn(found.app.parts if found.app is not None else found.parts)
    if as_json:
        from onefold.serve.reflex_json import drawn_json

        show.raw(show.compact(drawn_json(told)).encode())
        return
    click.echo(told.dot if form == "dot" else told.text)
    for finding in told.findings:
        click.echo(show.plain(str(finding)), err=True)
