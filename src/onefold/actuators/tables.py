"""actuators.tables - one row a run, so that runs can be found without waking any.

For: listing runs by status and key, and meeting the unfinished run of an agreeing call.
Never: says what a run decided; its facts do. A row that differs from them is wrong, not they.
Was wrong once: listing by reading every run's history. A page of ten cost ten thousand reads.

The row is written in the commit of the facts that change it. `dedupe` is the digest of the fields
of `dedupe_by` while the run is unfinished, and None afterwards: its unique key is the promise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from onefold.actuators.state import GOING, State
from onefold.actuators.words import Started, StepAgain, StepDone, StepFell
from onefold.kernel.fold import Base
from onefold.store.contract import AddColumn, AddIndex, Append, Column, Create, Migration, Put, Row, Schema, Table
from onefold.terms.ids import principal_text

RUN = Table(
    "run",
    (
        Column("actor", "int"),
        Column("run", "text"),
        Column("program", "text"),
        Column("principal", "text"),
        Column("key", "text", null=True),
        Column("dedupe", "text", null=True),
        Column("status", "text"),
        Column("started_at", "int"),
        Column("updated_at", "int"),
        Column(
            "asks", "int", null=True
        ),  # open approvals that can be decided now; None: not known, as before there were
    ),
    key=("actor",),
    unique=(("run",), ("program", "principal", "dedupe")),
    index=(("status", "actor"), ("asks", "status", "actor")),
)
_FIRST_RUN = replace(RUN, columns=RUN.columns[:-1], index=RUN.index[:1])

RUNS = Schema(
    "actuators",
    (RUN,),
    (
        Migration(1, oldest=1, steps=(Create(_FIRST_RUN),)),
        # Code that does not count would leave the count of whatever it folds as it was.
        Migration(2, oldest=2, steps=(AddColumn("run", RUN.columns[-1]), AddIndex("run", RUN.index[-1]))),
    ),
)

QUIET = frozenset({StepDone, StepFell, StepAgain})  # facts that leave the row as it is while the run goes on
UNFINISHED = frozenset({"running", "waiting", "parked"})


def beside(base: Base, facts: Sequence[Any]) -> Sequence[Append | Put]:
    """The rows of RUN that go with these facts of one run; `base` stands after them."""
    state: State = base.state
    if any(type(fact) is Started for fact in facts):
        return (Append(RUN, [_row(base, state)]),)
    if all(type(fact) in QUIET for fact in facts):
        return ()
    return (Put(RUN, [_row(base, state)]),)


def _row(base: Base, state: State) -> Row:
    return (
        base.actor,
        state.run,
        state.program,
        principal_text(base.principal),
        state.key,
        state.dedupe if state.status in UNFINISHED else None,
        state.status,
        state.started_at,
        state.updated_at,
        sum(wait.kind == "approval" for wait in state.open.values()) if state.status in GOING else 0,
    )
