"""cli.options - the options that many commands share, and what a command does with an answer.

For: --url, --as, --json, and the pairs of arguments that become JSON.
Never: talks; a second spelling of one option.
Was wrong once: each command with its own --json. Two of them printed a note before the body.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import click

from onefold.cli import show
from onefold.cli.answers import Answer
from onefold.cli.line import Line

P = ParamSpec("P")
R = TypeVar("R")
JSON_META = "onefold.json"
ADDRESS = """The app's address; by default `listen` of onefold.toml, then the store itself. Where the app has keys,
yours is read from the variable ONEFOLD_KEY."""


class Listing(click.Group):
    """A group that lists when it is given no command: `runs --json` is `runs list --json`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args or (args[0].startswith("-") and args[0] not in ("-h", "--help")):
            args = ["list", *args]
        return super().parse_args(ctx, args)


def address(context: click.Context, parameter: click.Parameter, url: str | None) -> str | None:
    """An address as it was typed. Raises: BadParameter."""
    if url is not None and not url.startswith(("http://", "https://")):
        raise click.BadParameter(f"{url!r}: an address begins with http:// or https://, like http://127.0.0.1:8600")
    return url


def _remember_json(context: click.Context, _: click.Parameter, chosen: bool) -> bool:
    context.meta[JSON_META] = chosen
    return chosen


json_option = click.option(
    "--json", "as_json", is_flag=True, callback=_remember_json, help="Print the HTTP body, or the problem, alone."
)


def spoken(command: Callable[..., R]) -> Callable[..., R]:
    """Give a command `line` as its first argument, and --url, --as and --json."""

    @click.option("--url", help=ADDRESS, callback=address)
    @click.option("--as", "principal", metavar="PRINCIPAL", help="Act as this principal.")
    @json_option
    @functools.wraps(command)
    def speaking(*args: Any, url: str | None, principal: str | None, **values: Any) -> R:
        with Line(url, principal) as line:
            try:
                return command(line, *args, **values)
            finally:
                if not values.get("as_json") and (whom := line.whom()) is not None:
                    click.echo(show.plain(whom), err=True)

    return speaking


def give(answer: Answer, as_json: bool, shown: Callable[[Any], None]) -> None:
    """Print an answer: its body as it came, or the way this command shows it."""
    if as_json:
        show.raw(answer.body)
    else:
        shown(answer.json)


class Seconds(click.ParamType[float]):
    """A duration as people write it ("20s", "5 minutes"); as a number of seconds for the command."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        from onefold.terms.duration import duration_ms
        from onefold.terms.errors import BadArguments

        if isinstance(value, float):
            return value
        try:
            return duration_ms(value) / 1000
        except BadArguments as fault:
            self.fail(f"{value!r} {fault.faults[0].problem}", param, ctx)


def key_header(key: str | None) -> dict[str, str]:
    """The Idempotency-Key header, quoted as a structured text."""
    if key is None:
        return {}
    return {"idempotency-key": '"' + key.replace("\\", "\\\\").replace('"', '\\"') + '"'}


def target_of(typed: str | None, start: Path) -> str:
    """The target typed, or `app` of the settings. Raises: click.UsageError when neither names one."""
    if typed is not None:
        return typed
    from onefold.cli.line import settled

    config = settled()
    if config.app is None:
        raise click.UsageError("Say what to serve: a TARGET, or `app` in onefold.toml.")
    place, colon, name = config.app.partition(":")
    if place.endswith(".py") and config.file is not None:
        place = os.path.relpath(config.file.parent / place, start)
    return f"{place}{colon}{name}"
