"""cli.turn - one turn of a cell, by a program on the line or from stdin.

For: `onefold turn SHAPE ID PROGRAM`.
Never: reads the program (the app does, and says what is wrong with it).
"""

from __future__ import annotations

import click

from onefold.cli import show
from onefold.cli.line import Line
from onefold.cli.options import key_header, spoken


@click.command("turn", short_help="Give a cell a turn: a program, atomically.")
@click.argument("shape")
@click.argument("id")
@click.argument("program")
@click.option("--key", help="The same key with the same program is the same turn.")
@click.option("--post", is_flag=True, help="Into the cell's box, without waiting for the turn. Needs --key.")
@spoken
def turn(line: Line, shape: str, id: str, program: str, key: str | None, post: bool, as_json: bool) -> None:
    """Run PROGRAM, or stdin for -, against the cell ID of SHAPE, and print the value of its last expression."""
    from onefold.terms.codec import canonical

    if post and not key:
        raise click.UsageError("--post needs --key: nobody waits for it, and the key is how to ask for it again.")

    source = program
    if program == "-":
        with click.open_file("-") as given:
            source = str(given.read())
    body = canonical({"program": source})
    headers = key_header(key) | ({"prefer": "respond-async"} if post else {})
    answer = line.post("cells", shape, id, "turns", body=body, headers=headers)
    if as_json:
        show.raw(answer.body)
    elif post:
        show.value(answer.json)
    else:
        show.value(answer.json["value"])
