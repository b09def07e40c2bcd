"""cli.timers - schedules: look at them, begin one, change it, end it, acknowledge its tick.

For: `onefold timers [list | create | supersede | end | ack]`; bare, it lists.
Never: decides. Each command is one event for the app's module of schedules, and says what it answered.
Was wrong once: an instant without a zone taken as the machine's. The same line, typed on a server, rang at another
hour; such an instant now needs --tz, or an offset of its own.
"""

from __future__ import annotations

import secrets  # noqa: TID251 - the door: an event's id is minted where a person typed the command
from collections.abc import Callable
from typing import Any, TypeVar

import click

from onefold.cli import show
from onefold.cli.answers import DONE, NOT_FOUND, REFUSED, Answer
from onefold.cli.line import Line
from onefold.cli.options import Listing, spoken

F = TypeVar("F", bound=Callable[..., Any])
COLUMNS = ("schedule", "owner", "name", "generation", "trigger", "next_due", "held", "ended")
ROOM = "timers"


@click.group("timers", cls=Listing)
def timers() -> None:
    """Schedules: look at them, begin, change or end one, acknowledge its tick."""


# --- options ---------------------------------------------------------------------------------------

_module = click.option("--module", help="The app's module of schedules; needed where it has several.")
_owner = click.option("--owner", help="Whose it is.")
_name = click.option("--name", help="What its owner calls it.")
_key = click.option("--key", help="The same key with the same content is said once.")
_which = click.argument("schedule", required=False, metavar="[SCHEDULE]")


def _trigger(command: F) -> F:
    """--at | --cron --tz, --payload, --ends-at."""
    for option in (
        click.option("--ends-at", metavar="INSTANT", help="No tick after it."),
        click.option("--payload", metavar="JSON", help="What each tick brings. Default: null."),
        click.option("--tz", metavar="ZONE", help="The zone of --cron, or of an --at without an offset."),
        click.option("--cron", metavar="TEXT", help='Five fields: "0 9 * * mon-fri".'),
        click.option("--at", metavar="INSTANT", help="Once: 2026-12-01T09:00:00Z, or a local time with --tz."),
    ):
        command = option(command)
    return command


# --- commands --------------------------------------------------------------------------------------


@timers.command("list")
@_owner
@click.option("--limit", type=click.IntRange(1, 1000), default=100, show_default=True)
@click.option("--after", help="Go on where `next` of an earlier list says.")
@_module
@spoken
def list_timers(
    line: Line, owner: str | None, limit: int, after: str | None, module: str | None, as_json: bool
) -> None:
    """List schedules; with --owner, one owner's."""
    from onefold.timers.words import owner_part

    name = _named(line, module)
    prefix = None if owner is None else owner_part(owner)
    page = line.get("modules", name, prefix=prefix, limit=limit, after=after).json
    items = [line.get("modules", name, item["key"]).json for item in page["items"]]
    items = [item for item in items if item["view"] is not None and owner in (None, item["view"]["owner"])]
    if as_json:
        from onefold.terms.codec import canonical

        show.raw(canonical({"items": items, "next": page["next"]}))
        return
    show.table([_row(item["view"]) for item in items], COLUMNS, empty="There are no such schedules.")
    if page["next"]:
        click.echo(f"More: --after {show.plain(page['next'])}")


@timers.command("create")
@_owner
@_name
@_trigger
@_key
@_module
@spoken
def create(
    line: Line, owner: str | None, name: str | None, key: str | None, module: str | None, as_json: bool, **when: Any
) -> None:
    """Begin a schedule. The same again changes nothing; anything else under its owner and name is refused."""
    if owner is None or name is None:
        raise click.UsageError("Say whose it is and what it is called: --owner and --name.")
    _say(line, module, {"type": "Create", "owner": owner, "key": name, **_content(**when)}, key, as_json)


@timers.command("supersede")
@_which
@_owner
@_name
@_trigger
@_key
@_module
@spoken
def supersede(
    line: Line,
    schedule: str | None,
    owner: str | None,
    name: str | None,
    key: str | None,
    module: str | None,
    as_json: bool,
    **when: Any,
) -> None:
    """Change a schedule: trigger, payload and end are replaced. A tick that has not been sent is void."""
    event = {"type": "Supersede", "schedule": _schedule(schedule, owner, name), **_content(**when)}
    _say(line, module, event, key, as_json)


@timers.command("end")
@_which
@_owner
@_name
@_key
@_module
@spoken
def end(
    line: Line,
    schedule: str | None,
    owner: str | None,
    name: str | None,
    key: str | None,
    module: str | None,
    as_json: bool,
) -> None:
    """End a schedule for good."""
    _say(line, module, {"type": "End", "schedule": _schedule(schedule, owner, name)}, key, as_json)


@timers.command("ack")
@click.argument("tick", required=False, metavar="[SCHEDULE | TICK]")
@_owner
@_name
@_key
@_module
@spoken
def ack(
    line: Line,
    tick: str | None,
    owner: str | None,
    name: str | None,
    key: str | None,
    module: str | None,
    as_json: bool,
) -> None:
    """Acknowledge the tick that a schedule holds, or one named as schedule/generation/instant."""
    whole = tick is not None and "/" in tick
    found = _tick(tick or "") if whole else _held(line, module, _schedule(tick, owner, name))
    if found is None:
        click.echo("It holds no tick.")
        return
    _say(line, module, {"type": "Ack", "tick": found}, key, as_json)


# --- what is said ----------------------------------------------------------------------------------


def _say(line: Line, module: str | None, event: dict[str, Any], key: str | None, as_json: bool) -> None:
    """One event; its reply printed, and the exit code it stands for."""
    from onefold.terms.codec import canonical

    body = canonical({**event, "id": key if key is not None else f"cli-{secrets.token_hex(12)}"})
    answer = line.post("modules", _named(line, module), "events", body=body)
    if as_json:
        show.raw(answer.body)
    else:
        _tell(answer.json["reply"])
    click.get_current_context().exit(_exit(answer, event["type"]))


def _tell(reply: dict[str, Any]) -> None:
    match reply["type"]:
        case "Scheduled":
            due = reply["next_due"]
            coming = f"next due {show.plain(due)}" if due else "a tick is held"
            click.echo(
                f"Scheduled; {coming} (schedule {show.plain(reply['schedule'])}, generation {reply['generation']})"
            )
        case "Conflict":
            field = show.plain(reply["field"])
            problem = (
                f"There is another schedule under this owner and name; it differs in {field}. Nothing was changed."
            )
            click.echo(f"{problem} Change it with: onefold timers supersede {show.plain(reply['schedule'])}", err=True)
        case "Ended":
            click.echo("Ended: no further tick.")
        case "Acked":
            click.echo("Acknowledged.")
        case _:
            click.echo("There is no such schedule or tick; nothing was changed.", err=True)


def _exit(answer: Answer, said: str) -> int:
    """An acknowledgement never fails: an owner that cannot tell would try for ever."""
    match answer.json["reply"]["type"]:
        case "Conflict":
            return REFUSED
        case "Unknown":
            return DONE if said == "Ack" else NOT_FOUND
        case _:
            return DONE


def _named(line: Line, module: str | None) -> str:
    """The module of schedules: the one named, or the only one the app has."""
    if module is not None:
        return module
    rooms = line.get("openapi.json").json.get("x-onefold-modules", {})
    found = [name for name, room in rooms.items() if room == ROOM]
    if len(found) != 1:
        told = f"has several modules of schedules: {', '.join(found)}" if found else "has no module of schedules"
        raise click.UsageError(f"The app {told}; name one with --module.")
    return str(found[0])


def _schedule(schedule: str | None, owner: str | None, name: str | None) -> str:
    if schedule is not None and owner is None and name is None:
        return schedule
    if schedule is None and owner is not None and name is not None:
        from onefold.timers import schedule_id

        return schedule_id(owner, name)
    raise click.UsageError("Say which: a SCHEDULE, or --owner and --name.")


def _held(line: Line, module: str | None, schedule: str) -> dict[str, Any] | None:
    view = line.get("modules", _named(line, module), schedule).json["view"]
    return None if view is None else view["held"]


def _tick(text: str) -> dict[str, Any]:
    """A tick by its text, which is also what it is owed under."""
    parts = text.split("/")
    if len(parts) != 3 or not (parts[1].isascii() and parts[1].isdigit()):
        raise click.UsageError("A tick is written schedule/generation/instant.")
    return {"schedule": parts[0], "generation": int(parts[1]), "due_at": parts[2]}


def _content(
    at: str | None, cron: str | None, tz: str | None, payload: str | None, ends_at: str | None
) -> dict[str, Any]:
    """Trigger, payload and end as an event has them."""
    from onefold.terms.codec import parse

    if (at is None) == (cron is None) or (cron is not None and tz is None):
        raise click.UsageError("Say when: --at INSTANT, or --cron TEXT with --tz ZONE.")
    trigger = {"type": "Every", "cron": cron, "tz": tz} if at is None else {"type": "At", "instant": _instant(at, tz)}
    content: dict[str, Any] = {"trigger": trigger}
    if payload is not None:
        content["payload"] = parse(payload.encode(), "--payload")
    if ends_at is not None:
        content["ends_at"] = _instant(ends_at, tz)
    return content


def _instant(typed: str, tz: str | None) -> str:
    """An instant as JSON has it. A local time is read on the clocks of `tz`, by the rules of the calendar."""
    from datetime import datetime

    from onefold.almanac import START, clock_rule
    from onefold.terms.instant import text, up

    try:
        given = datetime.fromisoformat(typed)
    except ValueError:
        raise click.UsageError(f"{typed!r} is no instant; write it as 2026-12-01T09:00:00Z.") from None
    if given.utcoffset() is not None:
        return text(up(given))
    if tz is None:
        raise click.UsageError(f"{typed!r} has no zone; add Z, an offset such as +01:00, or --tz.")
    found = clock_rule({"at": typed, "tz": tz}).next(START)
    assert found is not None
    return text(found.at)


def _row(view: dict[str, Any]) -> dict[str, Any]:
    trigger, held = view["trigger"], view["held"]
    said = trigger["instant"] if trigger["type"] == "At" else f"{trigger['cron']} {trigger['tz']}"
    due = None if held is None else held["due_at"]
    return {**view, "name": view["key"], "trigger": said, "held": due, "ended": "yes" if view["ended"] else None}
