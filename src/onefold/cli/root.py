"""cli.root - the list of commands, and what the process ends with.

For: `onefold`, its commands by hand, and every error as one sentence and one exit code.
Never: finds commands by scanning; shows a traceback for an error that has a sentence.
Was wrong once: heavy imports at the top of a command's file. `onefold --help` then took a second;
a command imports click here and everything else when it runs.
"""

from __future__ import annotations

from typing import NoReturn

import click

from onefold.cli import show
from onefold.cli.answers import Problem
from onefold.cli.approve import approve
from onefold.cli.backup import backup, restore
from onefold.cli.call import call
from onefold.cli.check import check
from onefold.cli.deploy import deploy
from onefold.cli.dev import dev
from onefold.cli.doctor import doctor
from onefold.cli.export import export
from onefold.cli.fleet import fleet
from onefold.cli.new import new
from onefold.cli.options import JSON_META
from onefold.cli.parked import parked
from onefold.cli.reflexes import backfill, explain, fire, graph, preview, reflex_runs, release
from onefold.cli.replay import replay
from onefold.cli.runs import runs
from onefold.cli.serve import serve
from onefold.cli.sweep import prune, sweep
from onefold.cli.timers import timers
from onefold.cli.turn import turn
from onefold.terms.errors import OnefoldError

INTERRUPTED = 130
UNAUTHENTICATED = 401
KEY = "A command sends the key that is in the variable ONEFOLD_KEY, and no other."


class Root(click.Group):
    """The group that turns errors into sentences and exit codes."""

    def invoke(self, ctx: click.Context) -> None:
        try:
            super().invoke(ctx)
        except Problem as problem:
            if ctx.meta.get(JSON_META):
                show.raw(problem.body)
            else:
                show.problem(problem)
                if problem.told.get("status") == UNAUTHENTICATED:
                    click.echo(KEY, err=True)
            ctx.exit(problem.exit)
        except OnefoldError as error:
            self._tell(ctx, error)
            ctx.exit(error.exit)
        except KeyboardInterrupt:
            ctx.exit(INTERRUPTED)

    @staticmethod
    def _tell(ctx: click.Context, error: OnefoldError) -> None:
        if ctx.meta.get(JSON_META):
            from onefold.serve.problems import told

            show.raw(told(error, "onefold").body)
        else:
            click.echo("\n".join(map(show.plain, str(error).splitlines())), err=True)


def _version(context: click.Context, _: click.Parameter, asked: bool) -> None:
    if asked and not context.resilient_parsing:
        from onefold import __version__

        click.echo(f"onefold {__version__}")
        context.exit()


@click.group(
    cls=Root,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Where an app has keys, the variable ONEFOLD_KEY holds yours: ONEFOLD_KEY=... onefold runs",
)
@click.option(
    "--version", is_flag=True, expose_value=False, is_eager=True, callback=_version, help="Print the version."
)
def root() -> None:
    """Work that was accepted survives; what is retried happens once."""


COMMANDS = (
    new,
    dev,
    serve,
    check,
    deploy,
    replay,
    call,
    runs,
    approve,
    parked,
    doctor,
    backup,
    restore,
    export,
    sweep,
    prune,
    timers,
    turn,
    fleet,
)
REFLEXES = (preview, fire, explain, backfill, graph, reflex_runs, release)
for command in (*COMMANDS, *REFLEXES):
    root.add_command(command)


def main() -> NoReturn:
    """What the console script runs. Ends the process with the exit codes of the documentation."""
    root.main(prog_name="onefold")
    raise SystemExit(0)
