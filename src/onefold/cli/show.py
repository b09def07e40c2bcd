"""cli.show - how answers look in a terminal.

For: JSON as it came or made readable, rows as columns, instants short.
Never: lets a text from outside steer the terminal; cuts an id; decides what is shown.
Was wrong once: a message printed as it came. A refund's `order_id` held an escape sequence, and the
manager's terminal showed another amount.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import click

from onefold.cli.answers import Problem

WIDEST = 60  # characters of one cell; what is longer ends in an ellipsis (ids are shorter)
LAST = 400  # of a cell that nothing stands behind


def plain(value: Any) -> str:
    """A value on one line, with what could steer the terminal made visible."""
    text = "" if value is None else value if isinstance(value, str) else compact(value)
    return "".join(c if c.isprintable() else " " if c.isspace() else "\N{REPLACEMENT CHARACTER}" for c in text)


def compact(value: Any) -> str:
    from onefold.terms.codec import canonical

    return canonical(value).decode()


def pretty(value: Any) -> str:
    """JSON over several lines. Its own escapes keep control characters harmless."""
    import msgspec

    from onefold.terms.codec import canonical

    return _visible(msgspec.json.format(canonical(value), indent=2).decode())


def _visible(text: str) -> str:
    return "".join(c if c.isprintable() or c == "\n" else f"\\u{ord(c):04x}" for c in text)


def raw(body: bytes) -> None:
    """The body as it came, alone on stdout: what --json promises."""
    click.echo(body.rstrip(b"\n"))


def value(found: Any) -> None:
    """A result or a receipt."""
    click.echo(pretty(found))


def table(rows: Sequence[Mapping[str, Any]], columns: Sequence[str], *, empty: str) -> None:
    """Rows under their column names; `empty` when there are none. What stands last is cut late: it is what tells why."""
    if not rows:
        click.echo(empty)
        return
    *_, last = columns
    cells = [[_cut(plain(row.get(name)), LAST if name == last else WIDEST) for name in columns] for row in rows]
    widths = [max(map(len, column)) for column in zip(columns, *cells, strict=True)]
    for line in (columns, *cells):
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def _cut(text: str, widest: int = WIDEST) -> str:
    return text if len(text) <= widest else f"{text[: widest - 1]}…"


def facts(pairs: Iterable[tuple[str, Any]]) -> None:
    """Names and values, one a line; None is left out."""
    for name, found in pairs:
        if found is not None:
            click.echo(f"{name:<11} {plain(found)}")


def problem(found: Problem) -> None:
    """A refusal in words, on stderr: its sentence, then a line for each field or finding."""
    told = found.told
    errors, findings = told.get("errors"), told.get("findings")
    nothing = plain(told.get("detail")).partition(". ")[0]
    if isinstance(errors, list) and errors:
        click.echo(f"{nothing}.", err=True)
        for one in errors:
            click.echo(f"- {_fault(one)}", err=True)
        return
    if isinstance(findings, list) and findings:
        click.echo(f"{nothing}.", err=True)
        for one in findings:
            click.echo(f"{plain(one.get('where'))}: {plain(one.get('problem'))}", err=True)
        return
    click.echo(plain(told.get("detail") or told.get("title") or told), err=True)


def _fault(one: Mapping[str, Any]) -> str:
    where = f"{plain(one.get('field'))}: " if one.get("field") else ""
    sent = f"; sent {_cut(plain(one['got']))}" if "got" in one else ""
    return f"{where}{plain(one.get('problem'))}{sent}"
