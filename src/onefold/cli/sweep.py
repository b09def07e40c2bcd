"""cli.sweep - take away what need not be kept: replies, ended runs, and facts behind a snapshot.

For: `onefold sweep` and `onefold prune`.
Never: takes a fact with a sweep, or anything that neither the flags nor the settings name.
Was wrong once: one command for both. A reply that is gone is an inconvenience, a fact is history.
"""

from __future__ import annotations

from typing import Any

import click

from onefold.cli.line import Line
from onefold.cli.options import give, spoken


@click.command("sweep")
@click.option("--runs", metavar="DURATION", help="Runs that ended so long ago. Their keys stay taken.")
@click.option("--replies", metavar="DURATION", help="Replies of modules, so old. A repeat is still none: AlreadyDone.")
@click.option("--reflex-runs", metavar="DURATION", help="Reflex runs that settled so long ago, with their tasks.")
@click.option("--intake", metavar="DURATION", help="Facts that were delivered, so old. Their dedupe keys stay taken.")
@click.option("--dry-run", is_flag=True, help="Only say how much would go.")
@spoken
def sweep(
    line: Line,
    runs: str | None,
    replies: str | None,
    reflex_runs: str | None,
    intake: str | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Take away what is older than this, or than `retention` in onefold.toml."""
    from onefold.terms.codec import canonical

    said = {"runs": runs, "replies": replies, "reflex_runs": reflex_runs, "intake": intake}
    body = {name: value for name, value in said.items() if value is not None}
    give(line.post("sweep", body=canonical({**body, "dry_run": dry_run})), as_json, _swept)


def _swept(told: dict[str, Any]) -> None:
    word = "would go" if told["dry_run"] else "are gone"
    click.echo(f"{told['runs']} runs and {told['replies']} replies {word}.")
    if told.get("reflex_runs") or told.get("intake"):
        click.echo(f"{told['reflex_runs']} reflex runs and {told['intake']} facts {word}.")


@click.command("prune")
@click.argument("module")
@click.argument("key")
@spoken
def prune(line: Line, module: str, key: str, as_json: bool) -> None:
    """Take away an actor's facts behind its latest snapshot. Its ids, replies and owed keys stay."""
    give(line.post("modules", module, key, "prune"), as_json, _pruned)


def _pruned(told: dict[str, Any]) -> None:
    click.echo(f"{told['facts']} facts are gone; the history begins at number {told['begins']}.")
