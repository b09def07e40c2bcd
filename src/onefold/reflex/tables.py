"""reflex.tables - the ledger: four tables, and the texts they speak of.

For: the rows of facts in, runs, tasks and where each reflex has got to, by declaration.
Never: a table for a noun. Each is here for a promise that no other can make.
Was wrong once: seven tables, with deliveries, attempts and windows of their own. They grew faster than the work and
disagreed with it.

    intake       a fact is durable before anything interprets it; (principal, dedupe) counts a repeat once
    reflex_run   (reflex, cause) is unique: one activation for each cause, whatever the trigger
    task         (run, unit) is unique and written before the effect; (baton) lets one serial task at a time be ready
    state        where a reflex has got to, one row each; the row "" holds the generation of the loaded set
    reflex_text  a definition under the hash of its content: not a table of the ledger but its blobs, never changed

`due_at`, `ready_at` and `next_at` are the only columns that anybody scans: None when there is nothing to do, so that
settled rows cost an advance nothing. A principal is written by `principal_text`.
"""

from __future__ import annotations

from dataclasses import replace

from onefold.store.contract import AddColumn, Column, Create, Migration, Schema, Table

INTAKE = Table(
    "intake",
    (
        Column("n", "int"),
        Column("principal", "text"),
        Column("dedupe", "text", null=True),  # kind, subject and key, as canonical JSON
        Column("due_at", "int", null=True),  # when it is to be matched; None: it was, or it is parked
        Column("state", "text"),  # waiting, delivered, parked; swept: its content is gone, its key and its cause stay
        Column("kind", "text"),
        Column("subject", "text"),
        Column("op", "text", null=True),
        Column("body", "bytes"),
        Column("at", "int"),
        Column("depth", "int"),
        Column("released", "int"),  # 1: a person let it pass although its chain is too long
        Column("cause", "text", null=True),  # "task:<n>" where an effect emitted it, "run:<n>" where a run settled
        Column("note", "text", null=True),
    ),
    key=("n",),
    serial=True,
    unique=(("principal", "dedupe"),),
    index=(("due_at", "n"), ("state", "at"), ("cause",)),  # to match; to sweep; what a task or a run led to
)

REFLEX_RUN = Table(
    "reflex_run",
    (
        Column("n", "int"),
        Column("reflex", "text"),
        Column("cause", "text"),  # "occurrence:<key>", "fact:<n>"
        Column("principal", "text"),
        Column("version", "text"),
        Column("state", "text"),  # pending, fanned, settled, skipped
        Column("note", "text", null=True),
        Column("due_at", "int", null=True),  # when fan-out is to be tried; None: it is no longer pending
        Column("tries", "int"),
        Column("open", "text", null=True),  # the reflex while it is pending or fanned: what overlap asks
        Column("occurred_at", "int"),  # the occurrence's instant, or the fact's `at`
        Column("fact", "int", null=True),
        Column("env", "bytes"),  # what its templates see besides rows, pinned: occurrence or fact
        Column("depth", "int"),
        Column("total", "int"),
        Column("done", "int"),
        Column("failed", "int"),
        Column("drained", "int"),  # 1: its settling was announced; it is never announced again
        Column("at", "int"),
        Column("settled_at", "int", null=True),  # when it was settled or skipped: what a sweep goes by
        Column("tz", "text", null=True),  # the zone data's version, where a clock was the cause
    ),
    key=("n",),
    serial=True,
    unique=(("reflex", "cause"),),
    index=(("due_at", "n"), ("open", "n"), ("fact",), ("settled_at",)),
)

TASK = Table(
    "task",
    (
        Column("n", "int"),
        Column("run", "int"),
        Column("unit", "text"),
        Column("reflex", "text"),
        Column("effect", "text"),  # only engines that know it claim it
        Column("version", "text"),
        Column("principal", "text"),
        Column("state", "text"),  # queued, ready, claimed, done, failed, parked
        Column("baton", "text", null=True),  # the reflex, on the one serial task that may run
        Column("queue", "text", null=True),  # the reflex, on serial tasks that wait for the baton; "!" on parked ones
        Column("ready_at", "int", null=True),  # due time, backoff and lease in one
        Column("token", "int", null=True),
        Column("claims", "int"),  # since it last answered: a task that kills its process is parked by it
        Column("attempt", "int"),
        Column("depth", "int"),
        Column("row", "bytes", null=True),  # the unit's own: one row (each), a list of rows (batch), None
        Column("output", "bytes", null=True),
        Column("error", "text", null=True),
        Column("at", "int"),
        Column("ended_at", "int", null=True),
        Column("holder", "text", null=True),  # of a claim in a fleet: its token, and which life of which node made it
    ),
    key=("n",),
    serial=True,
    unique=(("run", "unit"), ("baton",)),
    index=(
        ("ready_at", "n"),
        ("effect", "ready_at", "n"),  # a claim looks effect by effect: the backlog of others costs it nothing
        ("queue", "n"),
    ),
)

STATE = Table(
    "state",
    (
        Column("reflex", "text"),  # "" is the set itself
        Column("principal", "text"),
        Column("version", "text"),
        Column("enabled", "int"),
        Column("armed_at", "int"),  # facts before it belong to a world without this reflex
        Column(
            "watermark", "text", null=True
        ),  # the newest occurrence key that was passed, almanac's START where none was; None: no clock
        Column("next_at", "int", null=True),  # when the clock's next key falls; None: no clock, or its end
        Column("gen", "int"),  # the generation that loaded it; a reflex that left the set keeps its old one
        Column("swept_at", "int", null=True),  # the instant of its newest occurrence whose run was swept: none up to it
        # is ever made again
    ),
    key=("reflex",),
    index=(("next_at", "reflex"),),  # in the order in which they are asked for: a thousand may share a midnight
)

REFLEX_TEXT = Table("reflex_text", (Column("version", "text"), Column("body", "bytes")), key=("version",))

_FIRST_TASK = replace(TASK, columns=TASK.columns[:-1])

LEDGER = Schema(
    "reflex",
    (INTAKE, REFLEX_RUN, TASK, STATE, REFLEX_TEXT),
    (
        Migration(
            1,
            oldest=1,
            steps=(Create(INTAKE), Create(REFLEX_RUN), Create(_FIRST_TASK), Create(STATE), Create(REFLEX_TEXT)),
        ),
        # A claim of code that names nobody has another token than the holder says: it is left to lapse.
        Migration(2, oldest=1, steps=(AddColumn("task", TASK.columns[-1]),)),
    ),
)
