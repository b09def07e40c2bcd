"""node.resident - one actor in memory: a durable state, a head, what it owes, when it wakes.

For: what a turn needs without reading a row.
Never: is the truth. All of it is read again from the rows after an eviction or a failed commit.
Was wrong once: one state, changed when a turn was decided. A read then showed what a failed
commit took back.
"""

from __future__ import annotations

from asyncio import Future
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from onefold.kernel.alarm import Alarm
from onefold.kernel.blob import Spiller, pointed
from onefold.kernel.fold import Base, Folded, Outstanding
from onefold.kernel.module import Module
from onefold.kernel.words import Decision
from onefold.node.brought import Brought
from onefold.node.owning import Hold
from onefold.terms.errors import AlreadyDone, BadArguments, OnefoldError, StoreUnavailable
from onefold.terms.ids import ActorId
from onefold.terms.typed import Codec

Watch = Callable[[Sequence[Any]], None]


class ReadAnew(StoreUnavailable):
    """The actor was dropped from memory, and whoever worked on it begins again from its rows, at once: nothing fell."""

    code = "store_unavailable"

    def __init__(self, what: str) -> None:
        super().__init__(what, "the actor was dropped from memory after a commit that came to nothing")


class Resident:
    """`base` is the head: turns decide on it. `durable` is what reads show.

    pending: turns queued or committing. owed: outstanding rows, by number, as committed; coming: rows that
    are decided and not committed yet. alarm: the row as committed.
    failed_wake: the wake instant (ms) whose fold failed; it counts from the row's retry. hold: what the node has it by,
    in a fleet.
    """

    __slots__ = (
        "alarm",
        "at",
        "base",
        "coming",
        "durable",
        "durable_seq",
        "failed_wake",
        "fresh",
        "gone",
        "hold",
        "module",
        "owed",
        "pending",
        "sending",
        "watchers",
    )

    def __init__(self, module: Module[Any, Any, Any, Any, Any], base: Base, alarm: Alarm, *, fresh: bool) -> None:
        self.module = module
        self.at = ActorId(base.kind, base.principal, base.key)
        self.base = base
        self.durable: Any = base.state
        self.durable_seq = base.seq
        self.alarm = alarm
        self.owed: dict[int, Outstanding] = {}
        self.coming: dict[int, Outstanding] = {}
        self.fresh = fresh  # its actor row is not committed yet
        self.pending = 0
        self.sending = 0
        self.gone = False
        self.failed_wake: int | None = None
        self.watchers: list[Watch] = []
        self.hold: Hold | None = None

    @property
    def idle(self) -> bool:
        """Whether it may be evicted: nothing queued, nothing on its way out, nobody watching."""
        return not (self.pending or self.sending or self.watchers)

    def arrived(self, item: Outstanding) -> None:
        """What was coming is committed. A later change of the same row may still be on its way."""
        if self.coming.get(item.n) is item:
            del self.coming[item.n]


class Turn:
    """One thing for an actor to fold, and what becomes of it once its batch is durable.

    event: its row text, or None for an alarm. digest: of its payload; empty for ids only the kernel
    mints. decide: (state, now) to Decision, or None for rows without a fold. probe: whether the id may
    have been folded before. removes: the owed row that this confirms. change: the owed row after a try.
    alarm: the alarm row as a person wants it. reads: the codec of a reply that is not the module's own.
    takes: what brought it, whose row goes with its commit, a repeat's too.

    folded, fault, stored (the first reply's bytes) or first (the turn of the same id in this batch):
    at most one is set, when the batch is decided.
    """

    __slots__ = (
        "alarm",
        "change",
        "decide",
        "digest",
        "event",
        "fault",
        "first",
        "folded",
        "future",
        "probe",
        "reads",
        "removes",
        "replies",
        "resident",
        "stored",
        "takes",
    )

    def __init__(
        self,
        resident: Resident,
        event: str | None,
        digest: bytes,
        decide: Callable[[Any, datetime], Decision[Any, Any]] | None,
        future: Future[Any],
        replies: bool = True,
        probe: bool = True,
        removes: int | None = None,
        change: Outstanding | None = None,
        alarm: Alarm | None = None,
        reads: Codec[Any] | None = None,
        takes: Brought | None = None,
    ) -> None:
        self.resident = resident
        self.reads = reads
        self.takes = takes
        self.event = event
        self.digest = digest
        self.decide = decide if takes is None else takes.handed(self, decide)
        self.future = future
        self.replies = replies
        self.probe = probe
        self.removes = removes
        self.change = change
        self.alarm = alarm
        self.folded: Folded | None = None
        self.fault: OnefoldError | None = None
        self.stored: bytes | None = None
        self.first: Turn | None = None

    @property
    def repeats(self) -> bool:
        """Whether its id may have been folded before."""
        return self.probe and self.event is not None and not self.resident.fresh

    def answer(self, blobs: Spiller) -> None:
        """Tell whoever waits the reply or the fault, after the commit; one that `blobs` hold, once it is read."""
        if self.folded is not None:
            self.landed(self.folded.reply, None)
        elif self.first is not None:
            first = self.first
            self.landed(first.folded.reply if first.folded is not None else None, first.fault)
        elif self.stored is not None and pointed(self.stored) is not None:
            blobs.answer(self)
        elif self.stored is not None:
            self.answer_again(self.stored)
        else:
            self.landed(None, self.fault)

    def answer_again(self, stored: bytes) -> None:
        """The first reply, as it was stored; that it is done, where this code cannot read it any more.

        Was wrong once: what reading it raised. It took the whole batch's answers along, and nobody was told.
        """
        try:
            reply = (self.reads or self.resident.module.codecs.reply).decode(stored)
        except BadArguments:
            self.landed(None, AlreadyDone((self.event or "")[2:]))
        else:
            self.landed(reply, None)

    def landed(self, reply: Any, fault: OnefoldError | None) -> None:
        """Answer the future; nobody waits for it once its caller was cancelled."""
        future = self.future
        if future.done():
            return
        if fault is None:
            future.set_result(reply)
        else:
            future.set_exception(fault)
