"""cli.replay - would this code go on with the runs there are?

For: `onefold replay FILE --history PATH`: reading histories, running FILE's functions over them, showing what differs.
Never: opens a store; asks an app; runs a step. The file's top level runs, as it does for `serve`.
Was wrong once: the first difference as the end. Twelve runs would have parked, and a person mended one a day.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from onefold.cli import show
from onefold.cli.answers import DONE, FAILED
from onefold.cli.options import json_option

if TYPE_CHECKING:
    from onefold.actuators import Actuator
    from onefold.actuators.carried import PassEnded

INSTEAD = (
    "Keep the calls that were made as they were, in their order and with their arguments, or let these runs end first."
)
HOW = "onefold runs show ID --journal --json > history.json"


@click.command("replay")
@click.argument("target", metavar="FILE")
@click.option(
    "--history",
    "paths",
    metavar="PATH",
    multiple=True,
    required=True,
    type=click.Path(exists=True, path_type=Path),
    help=f"What `{HOW.partition(' >')[0]}` prints: one or more in a file, or a folder of them; may be repeated.",
)
@json_option
def replay(target: str, paths: tuple[Path, ...], as_json: bool) -> None:
    """Run the functions of FILE over what runs have journaled, and say which of these runs would not go on.

    No step is run and nothing is sent. A finding is a run that would park as `diverged`, or fail, where FILE takes over.
    """
    histories = [(path, told) for path in _files(paths) for told in _read(path)]
    if not histories:
        raise click.UsageError(f"There is no history in {', '.join(map(str, paths))}. One is made by: {HOW}")
    with contextlib.redirect_stdout(sys.stderr):  # what FILE prints is no finding
        actuators = _actuators(target)
        known = [one for one in histories if _program(one) in actuators]
        if not known:
            named = ", ".join(sorted({repr(_program(one)) for one in histories}))
            raise click.UsageError(
                f"These are histories of {named}, and {target} holds {', '.join(sorted(actuators))}."
            )
        found = [row for one in known for row in _findings(target, actuators[_program(one)], *one)]
    _print(found, len(known), len(histories) - len(known), as_json)
    click.get_current_context().exit(FAILED if found else DONE)


def _actuators(target: str) -> dict[str, Actuator[Any, Any]]:
    """Raises: LoadRefused."""
    from onefold.actuators import Actuator
    from onefold.app import App
    from onefold.host.target import load

    loaded = load(target, App, Path.cwd())
    parts: Sequence[object] = loaded.app.parts if loaded.app is not None else loaded.parts
    return {part.name: part for part in parts if isinstance(part, Actuator)}


# --- histories ------------------------------------------------------------------------------------------


def _files(paths: Sequence[Path]) -> list[Path]:
    """Each file once. Below a folder, what is called .json or .jsonl."""
    found: dict[Path, None] = {}
    for path in paths:
        below = sorted(one for kind in ("*.json", "*.jsonl") for one in path.rglob(kind)) if path.is_dir() else [path]
        found.update(dict.fromkeys(below))
    return list(found)


def _read(path: Path) -> Iterator[dict[str, Any]]:
    """The histories of a file: one body, or one a line. Raises: click.UsageError."""
    from onefold.terms.codec import parse
    from onefold.terms.errors import BadArguments

    try:
        raw = path.read_bytes()
    except OSError as fault:
        raise click.UsageError(f"{path} cannot be read: {fault.strerror}.") from None
    try:
        bodies = [parse(raw, "the file")]
    except BadArguments:
        try:
            bodies = [parse(line, "the line") for line in raw.splitlines() if line.strip()]
        except BadArguments as fault:
            raise click.UsageError(f"{path} is no JSON, and has not one history a line: {fault.faults[0]}") from None
    for body in bodies:
        history = body.get("history") if isinstance(body, dict) else None
        if not isinstance(history, dict) or not isinstance(body.get("items"), list):
            raise click.UsageError(f"{path} is no history of a run. One is made by: {HOW}")
        yield body


def _program(one: tuple[Path, dict[str, Any]]) -> str:
    return str(one[1]["history"].get("program"))


# --- findings -------------------------------------------------------------------------------------------


def _findings(target: str, actuator: Actuator[Any, Any], path: Path, told: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """What is wrong with one run under this code: nothing, or one finding. Raises: click.UsageError."""
    from onefold.actuators.history import state_of
    from onefold.actuators.replay import replayed
    from onefold.terms.errors import BadArguments

    history = told["history"]
    try:
        state = state_of(history, told["items"])
    except BadArguments as fault:
        raise click.UsageError(f"{path}: {fault.faults[0]}. Take it again: {HOW}") from None
    ended = asyncio.run(replayed(state, actuator))
    wrong = _wrong(ended, history, len(told["items"]))
    if wrong is not None:
        code = actuator.function.__code__
        where = {"file": target.partition(":")[0], "line": code.co_firstlineno}
        run = {"run_id": history["run_id"], "program": actuator.name, "history": str(path)}
        yield {**where, **wrong, **run}


def _wrong(ended: PassEnded | None, history: dict[str, Any], acts: int) -> dict[str, Any] | None:
    from onefold.actuators.carried import Diverged, Raised, Stuck

    run, status = history["run_id"], history["status"]
    match ended:
        case Diverged(seen=seen, expected=expected, found=found):
            problem = f"{run} ({status}) would park: after {seen} of {acts} acts its journal has {expected}, and here is {found}"
            return {
                "rule": "diverged",
                "problem": problem,
                "instead": INSTEAD,
                "expected": expected,
                "found": found,
                "seen": seen,
            }
        case Raised(trouble=trouble) if status != "failed":
            at = f" at {trouble.place}" if trouble.place else ""
            problem = f"{run} ({status}) would fail: {trouble.kind}: {trouble.message}{at}"
            return {"rule": "raised", "problem": problem, "instead": "Mend it, or have it end as it did before."}
        case Stuck(tasks=tasks):
            problem = f"{run} ({status}) would park: the tasks {', '.join(tasks)} wait for each other"
            return {"rule": "stuck", "problem": problem, "instead": "Let one of them wait for something that comes."}
        case _:
            return None


def _print(found: Sequence[dict[str, Any]], replayed: int, skipped: int, as_json: bool) -> None:
    if as_json:
        show.raw(show.compact({"findings": list(found), "replayed": replayed, "skipped": skipped}).encode())
        return
    for one in found:
        click.echo(f"{show.plain(one['file'])}:{one['line']}: {one['rule']}: {show.plain(one['problem'])}")
        click.echo(f"    {show.plain(one['instead'])}")
    runs = "1 run" if replayed == 1 else f"{replayed} runs"
    other = f", {skipped} of other programs left out" if skipped else ""
    told = "all of them would go on" if not found else f"{len(found)} would not go on"
    click.echo(f"{runs} replayed{other}: {told}.", err=True)
