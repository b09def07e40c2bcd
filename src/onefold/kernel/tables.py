"""kernel.tables - the rows of every actor, whatever its module.

For: the tables of the kernel, by declaration, and how they came to be.
Never: a table for one module; a journal beside `turn`; a projection of it (`event` and `fact` are views).
Was wrong once: fact, event, owed and alarm as four tables keyed by text. Each fold dirtied a
leaf in four trees, and 12,800 folds a second was the end of it; one row a fold is 40,000.

A turn row is one fold: the event that came, the facts decided, the reply, and what was owed.
Facts and processed ids are parts of it. `owed` holds only what is outstanding, `alarm` one row
an actor, `sent` the keys a module named itself, so that a name is never used for other bytes.
`swept` says how far sweeps have been, so that none looks at a turn twice.
"""

from __future__ import annotations

from dataclasses import replace

from onefold.store.contract import AddColumn, Chain, Column, Create, Migration, Schema, Table, View

ACTOR = Table(
    "actor",
    (
        Column("n", "int"),
        Column("kind", "text"),
        Column("principal", "text"),
        Column("key", "text"),
        Column("slot", "int"),
    ),
    key=("n",),
    serial=True,
    unique=(("kind", "principal", "key"),),
)

TURN = Table(
    "turn",
    (
        Column("n", "int"),
        Column("actor", "int"),
        Column("seq", "int"),  # how many facts the actor has after this turn
        Column("prev", "int", null=True),
        Column("event", "text"),
        Column("digest", "bytes"),  # empty for ids only the kernel mints
        Column("reply", "bytes", null=True),
        Column("facts", "bytes"),  # a JSON array, each with its "type"
        Column("owes", "bytes", null=True),  # a JSON array of [port, key]
        Column("at", "int"),
        Column("gen", "int"),
        Column("link", "bytes", null=True),  # see kernel.chain; None in turns from before there were links
    ),
    key=("n",),
    serial=True,
    unique=(("actor", "event"),),
    chain=Chain(by="actor", prev="prev"),
)
_FIRST_TURN = replace(TURN, columns=TURN.columns[:-1])

OWED = Table(
    "owed",
    (
        Column("n", "int"),
        Column("actor", "int"),
        Column("slot", "int"),
        Column("key", "text"),
        Column("port", "text"),
        Column("bytes", "bytes"),
        Column("tries", "int"),
        Column("next_at", "int", null=True),  # None: parked
        Column("state", "text"),  # ready, sending, parked, uncertain
        Column("error", "text", null=True),
        Column("at", "int"),  # when it was owed
    ),
    key=("n",),
    serial=True,
    index=(("actor",),),
)

SENT = Table(
    "sent",
    (Column("actor", "int"), Column("key", "text"), Column("digest", "bytes")),
    key=("actor", "key"),
)

ALARM = Table(
    "alarm",
    (
        Column("actor", "int"),
        Column("kind", "text"),
        Column("slot", "int"),
        Column("at", "int", null=True),  # None: parked, see error
        Column("tries", "int"),
        Column("error", "text", null=True),
    ),
    key=("actor",),
    index=(("kind", "at"),),
)

SWEPT = Table(
    "swept",
    (Column("what", "text"), Column("n", "int")),  # up to which turn this sweep has been
    key=("what",),
)

KERNEL = Schema(
    "kernel",
    (ACTOR, TURN, OWED, SENT, ALARM, SWEPT),
    (
        Migration(1, oldest=1, steps=(Create(ACTOR), Create(_FIRST_TURN), Create(OWED), Create(SENT), Create(ALARM))),
        Migration(2, oldest=1, steps=(Create(SWEPT),)),
        # Code that knows no links would leave a hole in the chain of whatever it folds.
        Migration(3, oldest=3, steps=(AddColumn("turn", TURN.columns[-1]),)),
    ),
    views=(
        View("event", "turn", ("n", "actor", "event", "reply", "at")),
        View("fact", "turn", ("n", "actor", "seq"), each="facts"),
    ),
)
