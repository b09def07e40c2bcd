"""cli.call - start a tool, wait a little, print its result or its receipt.

For: `onefold call TOOL [JSON | field=value …]`.
Never: checks an argument (the app does, in the same words everywhere); starts twice.
Was wrong once: `amount=040` guessed into a number. A field takes text as it was typed wherever its
schema allows text, and is read as JSON only where it does not.
"""

from __future__ import annotations

from typing import Any

import click

from onefold.cli import show
from onefold.cli.answers import DONE, FAILED, NOT_FINISHED, Answer, Problem, Unanswered
from onefold.cli.line import Line
from onefold.cli.options import Seconds, key_header, spoken

DEFAULT_S, MOST_S = 20, 25  # what one answer over HTTP may wait; a longer --wait asks again
ENDED = ("done", "failed", "cancelled", "parked")


@click.command("call", short_help="Start a tool; print its result or its receipt.")
@click.argument("tool")
@click.argument("arguments", nargs=-1, metavar="[JSON | FIELD=VALUE ...]")
@click.option(
    "-f", "--file", "file", type=click.Path(allow_dash=True, dir_okay=False), help="Arguments as JSON; - is stdin."
)
@click.option("--wait", type=Seconds(), help="Wait so long for the end. Default: 20s, or until it waits for somebody.")
@click.option("--key", help="The same key with the same arguments is the same run.")
@spoken
def call(
    line: Line,
    tool: str,
    arguments: tuple[str, ...],
    file: str | None,
    wait: float | None,
    key: str | None,
    as_json: bool,
) -> None:
    """Start TOOL and print its result, or its receipt when it is not finished in time (exit 5)."""
    from onefold.terms.codec import canonical

    body = _typed(file, arguments)
    if body is None:
        typed = pairs(arguments)
        body = canonical(fields(typed, _schema(line, tool)))
    until = line.time() + (wait or 0)
    headers = {"prefer": f"wait={DEFAULT_S if wait is None else min(int(wait), MOST_S)}"} | key_header(key)
    answer = line.post("tools", tool, body=body, headers=headers)
    try:
        answer = ended_by(line, answer, until)
    except (Problem, Unanswered):  # told by whoever ends the command; what was started must not be lost with it
        click.echo(f"The run was started: {show.plain(answer.json['run_id'])}. Asking for its end failed:", err=True)
        raise
    click.get_current_context().exit(_end(answer, as_json))


def _typed(file: str | None, arguments: tuple[str, ...]) -> bytes | None:
    """The body where it was given as JSON; None where it comes as fields."""
    if file is not None:
        if arguments:
            raise click.UsageError("Give the arguments in a file or on the line, not both.")
        with click.open_file(file, "rb") as given:
            read: bytes = given.read()
        return read
    if len(arguments) == 1 and arguments[0].lstrip()[:1] == "{":
        return arguments[0].encode()
    return None if arguments else b"{}"


def _schema(line: Line, tool: str) -> dict[str, Any]:
    """The tool's input schema, from the document of the app; empty where it lists no such tool."""
    document = line.get("openapi.json").json
    try:
        operation = document["paths"][f"/tools/{tool}"]["post"]
        found = operation["requestBody"]["content"]["application/json"]["schema"]
    except (KeyError, TypeError):
        return {}
    return _resolved(found, document)


def _resolved(schema: Any, document: dict[str, Any]) -> dict[str, Any]:
    """Follow a reference within the document."""
    while isinstance(schema, dict) and isinstance(schema.get("$ref"), str) and schema["$ref"].startswith("#/"):
        found: Any = document
        for part in schema["$ref"][2:].split("/"):
            found = found.get(part, {}) if isinstance(found, dict) else {}
        schema = found
    return schema if isinstance(schema, dict) else {}


def pairs(arguments: tuple[str, ...]) -> dict[str, str]:
    """`field=value` as typed. Raises: click.UsageError for what is no pair, or a field twice."""
    found: dict[str, str] = {}
    for pair in arguments:
        name, equals, text = pair.partition("=")
        if not equals or not name:
            raise click.UsageError(f"{pair!r} is neither FIELD=VALUE nor a JSON object.")
        if name in found:
            raise click.UsageError(f"{name!r} is given twice.")
        found[name] = text
    return found


def fields(typed: dict[str, str], schema: dict[str, Any]) -> dict[str, Any]:
    """The pairs as a JSON object, each value read as its schema wants it."""
    properties = schema.get("properties", {})
    return {name: text if _takes_text(properties.get(name)) else _read(text) for name, text in typed.items()}


def _takes_text(schema: Any) -> bool:
    """Whether text is among what the field allows. An unknown field keeps its text."""
    if not isinstance(schema, dict) or not schema:
        return True
    kinds = schema.get("type", [])
    if "string" in ([kinds] if isinstance(kinds, str) else kinds):
        return True
    if any(isinstance(value, str) for value in (*schema.get("enum", ()), schema.get("const"))):
        return True
    return any(_takes_text(one) for word in ("anyOf", "oneOf") for one in schema.get(word, ()))


def _read(text: str) -> Any:
    from onefold.terms.codec import parse
    from onefold.terms.errors import BadArguments

    try:
        return parse(text.encode())
    except BadArguments:
        return text  # the app says what is wrong with it


def ended_by(line: Line, answer: Answer, until: float) -> Answer:
    """Ask again until the run ended or the line's clock says `until`; a second at least between two looks."""
    while answer.json["status"] not in ENDED and (left := until - line.time()) > 0:
        line.pause(min(left, 1.0))
        answer = line.get("runs", answer.json["run_id"], wait=max(0, min(int(until - line.time()), MOST_S)))
    return answer


def _end(answer: Answer, as_json: bool) -> int:
    """Print what became of the call, and give its exit code."""
    receipt = answer.json
    status = receipt["status"]
    if as_json:
        show.raw(answer.body)
    elif status == "done":
        show.value(receipt.get("result"))
    else:
        show.value(receipt)
    return DONE if status == "done" else FAILED if status in ENDED else NOT_FINISHED
