"""store.postgres.asking - one statement of an author at a time: what it is made of, run, answered.

For: the types of its values and columns, as the server says them; the savepoint around it; its rows and its error.
Never: begins or ends a transaction; sends an author's text but through the home's way in.
Was wrong once: a statement's error left as it was. Postgres then refuses all that follows, while on SQLite a step may
catch it and go on: each statement has a savepoint of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from onefold.store.postgres.arrays import array, small
from onefold.store.postgres.failing import AGAIN, faulty, unavailable
from onefold.store.postgres.handle import TYPES, Asked, Handle, bound, fitting, rows_of, said_type
from onefold.store.postgres.home import FETCH_AT_MOST, TOO_MUCH, Home
from onefold.store.postgres.law import Reading, read
from onefold.store.postgres.wire import Gone, Statement, Stopped, Wire, described
from onefold.terms.errors import BadStatement, Contended, OnefoldError, StepFenced

KNOWN_AT_MOST = 500  # texts whose types are remembered
_TYPELESS = {"42P18", "42725", "42P08", "42883"}  # why: what an unknown type in `:a + :b` is answered with
_CANCELLED = {"57014", "25P04"}
_TYPE = b"select format_type($1::text::oid, -1)"
_OURS = ("08", "53", "57", "58", "XX")  # classes that say nothing of the statement
_READ_AS = (
    b"select set_config('search_path', $1::text || ', pg_temp', true),"
    b" set_config('standard_conforming_strings', 'on', true)"
)


@dataclass(frozen=True, slots=True)
class Known:
    """What the server says of a statement: the types of its values, its columns with theirs."""

    types: tuple[str, ...]
    columns: tuple[tuple[str, int], ...]


class Asking:
    """What is known of the statements of one space's author."""

    def __init__(self, home: Home) -> None:
        self._schema = f'"{home.schema}"'.encode()
        self._run = f"select line, changed from {home.way}($1::text, $2::text[], $3::int4)".encode()
        self._known: dict[str, Known] = {}
        self._types: dict[int, str] = dict(TYPES)

    async def answer(self, wire: Wire, handle: Handle, asked: Asked) -> Any:
        """Run it, between savepoints. Raises: BadStatement, StepFenced, StoreUnavailable, Contended."""
        reading = read(asked.sql)
        values = _bound(reading, asked)
        try:
            known = self._known.get(asked.sql)
            if known is None:
                known = await self._learn(wire, reading, asked)
                ahead = []
            else:
                ahead = [Statement(b"savepoint author")]
            most = asked.most if known.columns else None
            way = [_placed(reading, known, asked), array("text", values), None if most is None else small(most)]
            results = await wire.send([*ahead, Statement(self._run, way), Statement(b"release savepoint author")])
        except Stopped as stopped:
            await self._take_back(wire, handle)
            raise self._said(stopped, handle, asked) from stopped
        except BadStatement:
            await self._take_back(wire, handle)
            raise
        except (Gone, OSError) as fault:
            handle.fallen = told_of(fault)
            raise handle.fallen from fault
        if reading.shapes:
            self._known.clear()
        if wire.at_rest:
            handle.fallen = BadStatement("it ended the transaction of its step, which therefore failed", asked.sql)
            raise handle.fallen
        rows = wire.rows(results[-2])
        if asked.most is None:
            return rows[0][1] if reading.changes else 0
        return rows_of([line for line, _ in rows], known.columns) if known.columns else []

    async def _learn(self, wire: Wire, reading: Reading, asked: Asked) -> Known:
        """Ask the server what the statement is made of. Leaves a savepoint behind. Raises: Stopped, Gone, BadStatement."""
        # As within the way in, whatever the author set: it is read twice, and must say the same.
        await wire.send([Statement(b"savepoint author"), Statement(_READ_AS, [self._schema])])
        said = [""] * len(reading.names)
        try:
            oids, columns = await _made_of(wire, reading.text(lambda place: f"${place + 1}"))
        except Stopped as stopped:
            if stopped.state not in _TYPELESS or not reading.names:
                raise
            await wire.send([Statement(b"rollback to savepoint author")])
            said = [said_type(asked.values[name]) for name in reading.names]
            try:
                oids, columns = await _made_of(wire, reading.text(lambda place: f"${place + 1}::{said[place]}"))
            except Stopped:
                raise stopped from None
        if len({name for name, _ in columns}) < len(columns):
            raise BadStatement("two of its columns have one name; name them apart with AS", asked.sql)
        await self._name_types(wire, oids)
        known = Known(tuple([one or self._types[oid] for one, oid in zip(said, oids, strict=True)]), tuple(columns))
        if not any(said):
            if len(self._known) >= KNOWN_AT_MOST:
                self._known.clear()
            self._known[asked.sql] = known
        return known

    async def _name_types(self, wire: Wire, oids: Sequence[int]) -> None:
        for oid in oids:
            if oid not in self._types:
                (result,) = await wire.send([Statement(_TYPE, [str(oid).encode()])])
                self._types[oid] = str(wire.rows(result)[0][0])

    async def _take_back(self, wire: Wire, handle: Handle) -> None:
        """Undo a statement that failed, so that the step may go on. Where that fails too, the step has."""
        try:
            await wire.send([Statement(b"rollback to savepoint author"), Statement(b"release savepoint author")])
        except (Gone, Stopped, OSError) as fault:
            handle.fallen = told_of(fault)

    def _said(self, stopped: Stopped, handle: Handle, asked: Asked) -> OnefoldError:
        if stopped.state in _CANCELLED:
            return StepFenced(handle.step)
        if stopped.state == TOO_MUCH:
            return BadStatement(f"its rows hold more than {FETCH_AT_MOST} bytes; fetch fewer at a time", asked.sql)
        if stopped.state in AGAIN or stopped.state[:2] in _OURS:
            return told_of(stopped)
        return BadStatement(stopped.message, asked.sql)


async def _made_of(wire: Wire, text: str) -> tuple[list[int], list[tuple[str, int]]]:
    (result,) = await wire.send([Statement(text.encode(), described=True)])
    return described(result)


def told_of(fault: Exception) -> OnefoldError:
    if isinstance(fault, Stopped):
        return Contended("the rows of a database step") if fault.state in AGAIN else faulty(fault)
    return unavailable(fault.state if isinstance(fault, Gone) else "58")


def _placed(reading: Reading, known: Known, asked: Asked) -> bytes:
    """The author's statement with their values as places in one array, each of the type that it has there."""
    types = [fitting(kind, asked.values[name]) for kind, name in zip(known.types, reading.names, strict=True)]
    return reading.text(lambda place: f"(($1)[{place + 1}]::{types[place]})").encode()


def _bound(reading: Reading, asked: Asked) -> list[str | None]:
    """The values in the order of their names. Raises: BadStatement for one too few or too many."""
    for name in reading.names:
        if name not in asked.values:
            raise BadStatement(f"no value came for :{name}", asked.sql)
    if unused := sorted(asked.values.keys() - set(reading.names)):
        raise BadStatement(f"it has no :{unused[0]}", asked.sql)
    return [bound(name, asked.values[name], asked.sql) for name in reading.names]
