"""cli.new - a folder to start from.

For: `onefold new NAME --template …`: a few files that run as they are.
Never: writes into a folder that holds something; asks questions; installs anything.
Was wrong once: templates as format strings. A brace in somebody's SQL ended the command; a template
is now a file, copied as it is.
"""

from __future__ import annotations

import shlex
from importlib.resources import files
from pathlib import Path

import click

TEMPLATES = ("refund", "approval-inbox", "nightly-report", "agent-memory", "github-triage")
SUFFIX = ".txt"  # so that no tool takes a template for a part of this package
IGNORED = "onefold-data/\n__pycache__/\n.venv/\n"  # the store holds customers' data and the signing secret


@click.command("new")
@click.argument("name", type=click.Path(path_type=Path))
@click.option("--template", type=click.Choice(TEMPLATES), default="refund", show_default=True)
def new(name: Path, template: str) -> None:
    """Make the folder NAME with a first app in it."""
    if name.exists() and (not name.is_dir() or any(name.iterdir())):
        raise click.UsageError(f"{name} is there already and not empty. Nothing was written.")
    name.mkdir(parents=True, exist_ok=True)
    for source in sorted(files("onefold.cli").joinpath("templates", template).iterdir(), key=lambda one: one.name):
        (name / source.name.removesuffix(SUFFIX)).write_bytes(source.read_bytes())
    (name / ".gitignore").write_text(IGNORED, encoding="utf-8")
    click.echo(f"Made {name} from the template {template}. Next:\n\n    cd {shlex.quote(str(name))}\n    cat README.md")
