"""testing.store_suite.tables - the tables that the checks write to: one of each kind the contract knows.

For: a chain, a table with a unique and an indexed key, one with a key of two columns, owners, a table of every
kind of cell; two that a world of one database has once for all its spaces.
Never: a table of a room. Theirs change with their room, and the suite with nobody.
"""

from __future__ import annotations

from onefold.store.contract import Chain, Column, Create, Migration, Row, Schema, Space, Table

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
OWNER = Table(
    "owner",
    (Column("name", "text"), Column("node", "text", null=True), Column("epoch", "int")),
    key=("name",),
)
MAIL = Table(
    "mail",
    (Column("n", "int"), Column("text", "text", null=True), Column("raw", "bytes", null=True)),
    key=("n",),
    serial=True,
    unique=(("text", "raw"),),
)
REIGN = Table(
    "reign",
    (Column("name", "text"), Column("node", "text", null=True), Column("epoch", "int")),
    key=("name",),
    everywhere=True,
)
DEED = Table("deed", (Column("n", "int"), Column("text", "text")), key=("n",), serial=True, everywhere=True)
TABLES = (TURN, TASK, SENT, OWNER, MAIL)
SCHEMA = Schema("room", TABLES, (Migration(1, oldest=1, steps=tuple(map(Create, TABLES))),))

SHARED = Schema("world", (REIGN, DEED), (Migration(1, oldest=1, steps=(Create(REIGN), Create(DEED))),))


class Histories:
    """Turn rows as a room writes them: numbers from the space, each linked to its history's newest."""

    def __init__(self, space: Space) -> None:
        self.space = space
        self.heads: dict[int, int] = {}

    def row(self, actor: int, event: str, facts: bytes | None = None) -> Row:
        n = self.space.mint(TURN)
        row: Row = (n, actor, self.heads.get(actor), event, facts)
        self.heads[actor] = n
        return row


def task(id: int, *, kind: str = "a", baton: str | None = None, ready: int | None = 0, tries: int | None = 0) -> Row:
    return (id, kind, baton, ready, tries)
