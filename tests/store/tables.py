"""Tables for the store's own tests: one of each kind the contract knows."""

from __future__ import annotations

from onefold.store.contract import Chain, Column, Create, Migration, Schema, Table

TURN = Table(
    "turn",
    (
        Column("n", "int"),
        Column("actor", "int"),
        Column("prev", "int", null=True),
        Column("event", "text"),
        Column("facts", "bytes", null=True),
    ),
    key=("n",),
    serial=True,
    unique=(("actor", "event"),),
    chain=Chain(by="actor", prev="prev"),
)
TASK = Table(
    "task",
    (
        Column("id", "int"),
        Column("kind", "text"),
        Column("baton", "text", null=True),
        Column("ready", "int", null=True),
        Column("tries", "int", null=True),
    ),
    key=("id",),
    unique=(("baton",),),
    index=(("kind", "ready"),),
)
SENT = Table(
    "sent",
    (Column("actor", "int"), Column("key", "text"), Column("digest", "bytes")),
    key=("actor", "key"),
    narrow=True,
)
OWED = Table(
    "owed",
    (Column("n", "int"), Column("actor", "int"), Column("bytes", "bytes")),
    key=("n",),
    serial=True,
    index=(("actor",),),
)
TABLES = (TURN, TASK, SENT, OWED)
SCHEMA = Schema("room", TABLES, (Migration(1, 1, tuple(Create(t) for t in TABLES)),))
