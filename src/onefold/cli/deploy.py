"""cli.deploy - a file sent to an app, whose actuators become its tools; and an earlier version made the newest again.

For: `onefold deploy FILE --to URL`, `--rollback [VERSION]`, `--remove`.
Never: opens a store; sends a file to anywhere but the address that was named; runs or loads the file here.
Was wrong once: a rollback that asked for "the one before". Sent twice, it undid itself: the number is looked up first.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from onefold.cli import show
from onefold.cli.answers import Answer
from onefold.cli.line import Line
from onefold.cli.options import address, give, json_option
from onefold.terms.errors import Finding, LoadRefused

BEFORE = "the one before"
LARGEST = 1 << 20  # bytes that are read of a file; the app says how many it takes


@click.command("deploy", short_help="Send a file to an app, as tools of it.")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--to",
    "url",
    metavar="URL",
    required=True,
    callback=address,
    help="The app's address. Its key, which must have `deploy`, is read from the variable ONEFOLD_KEY.",
)
@click.option(
    "--rollback",
    metavar="[VERSION]",
    is_flag=False,
    flag_value=BEFORE,
    help="Make this version of FILE the newest again; by default the one before.",
)
@click.option("--remove", is_flag=True, help="Take FILE away: its tools are none any more. --rollback brings it back.")
@json_option
def deploy(file: Path, url: str, rollback: str | None, remove: bool, as_json: bool) -> None:
    """Send FILE, whose actuators become tools of the app at URL at once, in a sandbox.

    The app checks it first as `onefold check` does. Runs that were begun under an earlier version go on with this one.
    """
    if remove and rollback is not None:
        raise click.UsageError("Say one of --rollback and --remove.")
    with Line(url, None) as line:
        if remove:
            told = line.delete("deployed", file.stem)
        elif rollback is None:
            told = line.put("deployed", file.stem, body=show.compact({"source": _source(file)}).encode())
        else:
            number = _before(line, file.stem) if rollback == BEFORE else _number(rollback)
            told = line.post("deployed", file.stem, "rollback", body=show.compact({"version": number}).encode())
        give(told, as_json, lambda version: _show(version, url))


def _source(file: Path) -> str:
    """Raises: LoadRefused for what is no text; UsageError for what cannot be read."""
    try:
        with file.open("rb") as opened:
            return opened.read(LARGEST + 1).decode("utf-8")
    except UnicodeDecodeError as wrong:
        raise LoadRefused([Finding(str(file), f"is no UTF-8 at byte {wrong.start}")]) from None
    except OSError as fault:
        raise click.UsageError(f"{file} cannot be read: {fault.strerror}.") from None


def _number(version: str) -> int:
    if version.isascii() and version.isdigit() and 0 < len(version) < 16:
        return int(version)
    raise click.BadParameter(f"{version!r} is no number of a version.", param_hint="--rollback")


def _before(line: Line, file: str) -> int:
    """The version before the newest. Raises: UsageError where there is none."""
    known: Answer = line.get("deployed", file, limit=2)
    versions = [int(one["version"]) for one in known.json["items"]]
    if len(versions) < 2:
        raise click.UsageError(f"{file} has one version, and none before it.")
    return versions[1]


def _show(told: dict[str, Any], url: str) -> None:
    named = f"version {told['version']} of {show.plain(told['file'])}"
    back = f" (version {told['back_to']} again)" if "back_to" in told else ""
    if told["outcome"] == "removed":
        click.echo(f"Took {show.plain(told['file'])} away from {url}, as version {told['version']}.")
    elif told["outcome"] == "unchanged":
        click.echo(f"Nothing changed: {named}{back} is just that.")
    else:
        click.echo(f"Deployed {named}{back} to {url}.")
    for name in told["tools"]:
        click.echo(f"  {url.rstrip('/')}/tools/{show.plain(name)}")
