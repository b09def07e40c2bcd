"""Tables for the store's own tests: three of the suite's, and one with an index alone."""

from __future__ import annotations

from onefold.store.contract import Column, Create, Migration, Schema, Table
from onefold.testing.store_suite.tables import SENT as SENT
from onefold.testing.store_suite.tables import TASK as TASK
from onefold.testing.store_suite.tables import TURN as TURN

OWED = Table(
    "owed",
    (Column("n", "int"), Column("actor", "int"), Column("bytes", "bytes")),
    key=("n",),
    serial=True,
    index=(("actor",),),
)
TABLES = (TURN, TASK, SENT, OWED)
SCHEMA = Schema("room", TABLES, (Migration(1, 1, tuple(Create(t) for t in TABLES)),))
