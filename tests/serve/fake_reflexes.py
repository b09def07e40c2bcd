"""The verbs of reflexes for the fake host: facts kept in a list, two reflexes, one run with one task.

What the engine does has tests of its own; the doors are tried over the real one in test_reflexes.py. This is what the
document, the fuzzer and the console need to be answered.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from onefold.host.caller import Caller
from onefold.reflex.words import (
    Cause,
    Draft,
    Drawn,
    Fired,
    Ingested,
    IntakeRow,
    Loaded,
    Overdue,
    Preview,
    PreviewTask,
    ReflexRow,
    RunRow,
    Signal,
    TaskRow,
    Write,
    fact_id,
)
from onefold.terms.errors import BadArguments, Fault, Finding, NotFound, UnknownName
from onefold.terms.ids import check_text
from onefold.terms.instant import moment
from tests.serve.fake_values import NOW, Page

AT = moment(NOW)
DEFINITION = {"id": "shop.greet", "intent": "Greet.", "on": {"fact": {"signal": "shop"}}, "effect": {"name": "greet"}}
REFLEX = ReflexRow("shop.greet", "Greet.", None, "ab" * 32, True, "signal shop", "greet", DEFINITION, AT, None)
RUN = RunRow("reflex_run_1", "shop.greet", "fact:1", None, "ab" * 32, "settled", None, 1, 0, 1, AT, AT, None)
TASK = TaskRow("task_1", "reflex_run_1", "shop.greet", "unit", "failed", 3, None, None, "ValueError: nobody")


class FakeReflexes:
    """What a host has of reflexes."""

    def __init__(self) -> None:
        self.facts_in: list[IntakeRow] = []
        self.fired: list[tuple[str, Any, str | None, Caller]] = []

    async def ingest(self, fact: Write | Signal, *, caller: Caller) -> Ingested:
        kind, subject = ("write", fact.entity) if isinstance(fact, Write) else ("signal", fact.name)
        key = (caller.principal, kind, subject, fact.dedupe_key)
        for row in self.facts_in:
            known = (row.principal, row.kind, row.subject, row.body.get("dedupeKey"))
            if fact.dedupe_key is not None and known == key:
                return Ingested(row.id, True)
        own = {"row": fact.row} if isinstance(fact, Write) else {"payload": fact.payload}
        body = {**own, "dedupeKey": fact.dedupe_key}
        op = fact.op if isinstance(fact, Write) else None
        id = fact_id(len(self.facts_in) + 1)
        told = IntakeRow(
            id, "write" if op else "signal", subject, op, "waiting", caller.principal, AT, AT, 0, None, None, body
        )
        self.facts_in.append(told)
        return Ingested(id, False)

    async def facts_list(
        self,
        *,
        kind: str | None = None,
        subject: str | None = None,
        state: str | None = None,
        limit: int = 100,
        after: str | None = None,
        caller: Caller,
    ) -> Page:
        return Page(self.facts_in[::-1][:limit])

    async def fact_release(self, id: str, *, caller: Caller) -> bool:
        if id not in {row.id for row in self.facts_in}:
            raise NotFound("fact", id)
        return False

    async def reflexes_load(self, definitions: Sequence[Any] | None = None, *, caller: Caller) -> Loaded:
        return Loaded(("shop.greet",), ())

    async def reflex_draft(self, definition: Any, *, caller: Caller) -> Draft:
        told = definition if isinstance(definition, dict) else {}
        return Draft(told, (Finding("reflexes", "is a draft only", "warning"),))

    async def reflexes_list(self, *, caller: Caller) -> list[ReflexRow]:
        return [REFLEX]

    async def reflex_show(self, id: str, *, caller: Caller) -> ReflexRow:
        if id != REFLEX.id:
            raise UnknownName("reflex", id)
        return REFLEX

    async def reflex_graph(self, *, caller: Caller) -> Drawn:
        return Drawn("shop.greet", "digraph {}", ())

    async def reflex_preview(
        self, id: str, *, fact: Any = None, at: datetime | None = None, next: int | None = None, caller: Caller
    ) -> Preview:
        await self.reflex_show(id, caller=caller)
        return Preview(id, "fact", ({"who": "you"},), (PreviewTask("you", {"who": "you"}, "greet you"),), (AT,))

    async def reflex_fire(self, id: str, *, input: Any = None, by: str | None = None, caller: Caller) -> Fired:
        await self.reflex_show(id, caller=caller)
        if by is not None:
            check_text(by, "by")
        self.fired.append((id, input, by, caller))
        return Fired("fact_9")

    async def reflex_backfill(self, id: str, *, since: datetime, until: datetime, caller: Caller) -> int:
        await self.reflex_show(id, caller=caller)
        if until < since:
            raise BadArguments([Fault("until", "is before since")], nothing_was="backfilled")
        return 3

    async def reflex_retry(self, id: str, *, caller: Caller) -> TaskRow:
        if id != TASK.id:
            raise NotFound("task", id)
        return TASK

    async def reflex_runs(
        self, reflex: str | None = None, *, limit: int = 100, after: str | None = None, caller: Caller
    ) -> Page:
        return Page([RUN] if reflex in (None, RUN.reflex) else [])

    async def reflex_run(self, id: str, *, caller: Caller) -> RunRow:
        if id != RUN.id:
            raise NotFound("reflex run", id)
        return RUN

    async def reflex_tasks(self, run: str, *, limit: int = 100, after: str | None = None, caller: Caller) -> Page:
        await self.reflex_run(run, caller=caller)
        return Page([TASK])

    async def reflex_explain(self, id: str, *, caller: Caller) -> list[Cause]:
        if id not in (RUN.id, TASK.id):
            raise NotFound("fact, run or task", id)
        return [
            Cause("run", RUN.id, AT, None, {"reflex": RUN.reflex}),
            Cause("fact", "fact_1", AT, None, {"by": "you"}),
        ]

    async def reflex_overdue(self, *, caller: Caller) -> list[Overdue]:
        return [Overdue("shop.greet", "an occurrence", AT - timedelta(hours=1), 3600.0)]
