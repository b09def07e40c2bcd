"""cell.module - how a cell decides: one event, one draft, and the fields that changed. Pure.

For: the module behind a shape: decide, evolve, view, snapshot, and fields of older types read as today's.
Never: runs an interpreted program: its verdict and its changes come in as an event, on the record they were made on.
Was wrong once: programs run inside the decision. One that looped held every cell of the process for a second.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from onefold.cell.numbers import Numbered
from onefold.cell.shape import Cell, Shape
from onefold.cell.words import (
    Began,
    Call,
    Capture,
    Ended,
    Event,
    Fact,
    Json,
    Kept,
    Record,
    Retire,
    Retired,
    Set,
    Spawn,
    Told,
)
from onefold.kernel.module import Module
from onefold.kernel.words import Decision
from onefold.program.calling import call, raised
from onefold.program.handles import Handles
from onefold.program.words import LIMITS, OneCall, Stopped, Verdict
from onefold.terms.errors import BadArguments, Contended, Fault, NotFound

BEGIN = "Check the id, or let it exist first: spawn(), or PUT /cells/{shape}/{id}."
"""What to do about a cell that is not there."""

SNAPSHOT_EVERY = 200
"""Facts between two snapshots. A fact is the changed fields alone, a snapshot all of them: 200 keep both small."""


class Cells(Module[Record, Event, Fact, Told, Record]):
    """The module of one shape: its kind is the shape's name, a key is a cell's id."""

    room = "cells"

    def __init__(self, shape: Shape, numbered: Numbered | None = None) -> None:
        """`numbered`: the shape's number in its store; whoever opens the store sets it before the first turn."""
        self.numbered = numbered or Numbered(1, {})

        def decide(record: Record, event: Event, now: datetime) -> Decision[Fact, Told]:
            return decision(shape, self.numbered.number, record, event, now)

        def evolve(record: Record, fact: Fact) -> Record:
            return evolved(shape, self.numbered.since, record, fact)

        def snapshot(record: Record) -> Kept:
            return Kept(record.exists, dict(record.fields), self.numbered.number, record.changes)

        super().__init__(
            "cell",
            initial=Record(),
            key=_cell,
            decide=decide,
            evolve=evolve,
            view=_view,
            snapshot=snapshot,
            snapshot_every=SNAPSHOT_EVERY,
        )
        self.name = shape.name
        self.shape = shape

    def knows(self, event: Event) -> None:
        """That this code has the method, and the arguments by these names. Raises: NotFound, BadArguments."""
        if isinstance(event, Call):
            strange = event.arguments.keys() - set(self.shape.method(event.method).parameters)
            if strange:
                raise BadArguments([Fault(name, "is no argument of it") for name in sorted(strange)])


def decision(shape: Shape, number: int, record: Record, event: Event, now: datetime) -> Decision[Fact, Told]:
    """One event on the record. A turn of a cell that is not there is refused; nothing begins by accident.

    Raises: NotFound, Contended for a capture or a program that another turn went ahead of.
    """
    match event:
        case Spawn():
            if record.exists:
                return Decision(reply=Told("resident"))
            return Decision(facts=[Began()], reply=Told("spawned"))
        case Retire():
            if not record.exists:
                raise NotFound(shape.name, event.cell, BEGIN)
            return Decision(facts=[Retired()], reply=Told("retired"))
        case _ if not record.exists and not shape.on_demand:
            raise NotFound(shape.name, event.cell, BEGIN)
        case Call(method=method, arguments=arguments):
            return _called(shape, number, record, method, arguments, now)
        case Capture(base=int(base)) | Ended(base=base) if base != record.changes:
            raise Contended(f"{shape.name} {event.cell}")  # refused: its id is free for the next try
        case Capture(set=fields):
            return _keeping(record, fields, number, Told("captured"))
        case Ended(set=fields, told=told):
            return _keeping(record, fields, number, told)


def evolved(shape: Shape, since: Mapping[str, int], record: Record, fact: Fact) -> Record:
    """The record after a fact. A value of an older type goes through the field's upgrade."""
    changes = record.changes + 1
    match fact:
        case Began():
            return Record(True, {}, changes)
        case Retired():
            return Record(False, {}, changes)
        case Set(fields=fields, shape=written):
            return Record(True, {**record.fields, **upgraded(shape, since, fields, written)}, changes)
        case Kept(exists=exists, fields=fields, shape=written, changes=kept):
            return Record(exists, upgraded(shape, since, fields, written), kept)


def upgraded(shape: Shape, since: Mapping[str, int], fields: Mapping[str, Json], written: int) -> Mapping[str, Json]:
    """The fields as today's types write them. Raises: whatever an upgrade raises; BadArguments for what it gives."""
    old = [name for name in fields if written < since.get(name, 0) and name in shape.upgrades]
    if not old:
        return fields
    return {**fields, **{n: shape.fields[n].codec.to_json(shape.upgrades[n](fields[n])) for n in old}}


def _called(
    shape: Shape, number: int, record: Record, name: str, arguments: Mapping[str, Json], now: datetime
) -> Decision[Fact, Told]:
    draft = shape.draft(record, now)
    verdict = call(OneCall(name, arguments), shape.scope(draft, Handles()), LIMITS)
    if isinstance(verdict, Stopped):
        return Decision(reply=refused(verdict))
    try:
        fields = shape.changed(draft, record)
    except BadArguments as bad:
        return Decision(reply=refused(raised(bad, 1, 1)))
    return _keeping(record, fields, number, Told("done", verdict.value, 1))


def ended(shape: Shape, draft: Cell, record: Record, id: str, cell: str, verdict: Verdict) -> Ended:
    """What an interpreted program came to on a draft of this record, as the event that keeps it."""
    if isinstance(verdict, Stopped):
        return Ended(id, cell, record.changes, {}, refused(verdict))
    try:
        fields = shape.changed(draft, record)
    except BadArguments as bad:
        return Ended(id, cell, record.changes, {}, refused(raised(bad, verdict.ran, verdict.ran)))
    return Ended(id, cell, record.changes, fields, Told("done", verdict.value, verdict.ran))


def refused(stopped: Stopped) -> Told:
    """A verdict as the reply that is stored."""
    record = {"kind": stopped.kind, **stopped.told, "ran": stopped.ran, "of": stopped.of}
    return Told("failed", None, stopped.ran, record)


def checked(shape: Shape, fields: Mapping[str, Json]) -> dict[str, Json]:
    """Fields that somebody sent, of their types. Raises: Undeclared, BadArguments with one fault a field."""
    faults: list[Fault] = []
    told: dict[str, Json] = {}
    for name, json in fields.items():
        field = shape.field(name)
        try:
            told[name] = field.codec.to_json(field.read(json))
        except BadArguments as bad:
            faults += bad.faults
    if faults:
        raise BadArguments(faults, nothing_was="kept")
    return told


def _keeping(record: Record, fields: Mapping[str, Json], number: int, told: Told) -> Decision[Fact, Told]:
    if told.outcome == "failed":
        return Decision(reply=told)
    facts: list[Fact] = [] if record.exists else [Began()]
    if fields:
        facts.append(Set(dict(fields), number))
    return Decision(facts=facts, reply=told)


def _cell(event: Event) -> str:
    return event.cell


def _view(record: Record) -> Record:
    return record


def everything(record: Record, shape: Shape) -> dict[str, Any]:
    """Every declared field as JSON, those nobody set by their default."""
    return {name: record.fields.get(name, field.default) for name, field in shape.fields.items()}
