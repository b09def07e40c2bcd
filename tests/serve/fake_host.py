"""A small stand-in for the opened application, held to `serve.door.Host` by mypy.

Real actuators (their schemas and checks are what the doors must pass on), made-up outcomes: a test says
what a run comes to, and ends it when it likes. Nothing here is durable; the real host has its own tests.
"""

from __future__ import annotations

import asyncio
import hashlib
import io
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

import msgspec
from msgspec import Raw

from onefold.actuators.declare import Actuator
from onefold.actuators.receipt import Receipt
from onefold.host.caller import Caller
from onefold.host.modules import Delivered
from onefold.host.parked import ParkedDetail
from onefold.host.sweep import Swept
from onefold.kernel.prune import Pruned
from onefold.ports.callback import refusal
from onefold.terms.codec import canonical, digest, parse
from onefold.terms.errors import BadArguments, Fault, KeyConflict, NotFound, UnknownName
from onefold.terms.instant import moment
from tests.serve.fake_reflexes import FakeReflexes
from tests.serve.fake_values import (
    RESULTS,
    Catalog,
    Clock,
    Config,
    Happening,
    JournalRow,
    LinkPage,
    OpenApproval,
    Outcome,
    Page,
    ParkedItem,
    Started,
    Verdict,
    Version,
    nightly,
    paid,
    refund_order,
    slow_report,
)

if TYPE_CHECKING:
    from onefold.serve import door


@dataclass
class FakeRun:
    receipt: Receipt
    principal: str | None
    digest: bytes
    changed: asyncio.Event = field(default_factory=asyncio.Event)


class NoCells:
    """An app whose cells are all gone. What they do is asked of the real host."""

    def __getattr__(self, verb: str) -> Any:
        async def gone(shape: str, *rest: Any, **more: Any) -> Any:
            raise NotFound(shape, "lobby")

        return gone


class FakeHost(FakeReflexes):
    """Verbs in memory. `acted` counts what had an effect, so that a test can say: once."""

    cells = NoCells()
    fleet = None
    signing = (b"a secret of these tests",)

    def __init__(self, config: Config | None = None, actuators: Sequence[Actuator[Any, Any]] = ()) -> None:
        super().__init__()
        given = actuators or (refund_order, slow_report, nightly, paid)
        self.catalog = Catalog(
            "Shop tools", {one.name: one for one in given}, {"counter": SimpleNamespace(room="modules")}
        )
        self.config = config or Config()
        self.clock = Clock()
        self.outcomes: dict[str, Callable[[Any], Outcome]] = {}
        self.runs: dict[str, FakeRun] = {}
        self.exported: BinaryIO = io.BytesIO()
        self.acted: list[tuple[Any, ...]] = []
        self.callbacks: dict[str, str | None] = {}
        self.journals: dict[str, list[JournalRow]] = {}
        self.approvals: dict[tuple[str, str], OpenApproval] = {}
        self.links: dict[str, LinkPage] = {}
        self.parked: dict[str, ParkedItem] = {}
        self.counters: dict[tuple[str | None, str], list[dict[str, Any]]] = {}
        self.happenings: asyncio.Queue[Happening] = asyncio.Queue()
        self.waiting = 0
        self.waited = asyncio.Event()
        self.is_ready = True

    # --- runs ----------------------------------------------------------------------------------

    async def start(
        self, name: str, arguments: Any, *, key: str | None = None, caller: Caller, callback: str | None = None
    ) -> Started:
        if callback is not None and (why := refusal(callback, here=not self.config.keys)) is not None:
            raise BadArguments([Fault("Onefold-Callback", why)])
        one = self.catalog.actuators.get(name)
        if one is None:
            raise UnknownName("tool", name, "refund_order")
        checked = one.check(arguments)
        known = digest(one.written(checked))
        made = f"{caller.principal}\0{name}\0{key if key is not None else len(self.runs)}"
        run_id = f"run_{hashlib.sha256(made.encode()).hexdigest()[:20]}"
        if run_id in self.runs:
            if self.runs[run_id].digest != known:
                raise KeyConflict(key or run_id)
            return Started(self.runs[run_id].receipt, True)
        outcome = self.outcomes.get(name, lambda _: Outcome(result=RESULTS.get(name)))(checked)
        now = moment(self.clock.now())
        output = Raw(msgspec.json.encode(outcome.result)) if outcome.status == "done" else None
        receipt = Receipt(run_id, name, outcome.status, outcome.waits, outcome.error, key, now, now, output)
        self.runs[run_id] = FakeRun(receipt, caller.principal, known)
        self.acted.append(("start", name, key, caller))
        self.callbacks[run_id] = callback
        return Started(receipt, False)

    def end(self, run_id: str, result: Any) -> None:
        """What the run was working on is done."""
        run = self.runs[run_id]
        self._put(run, status="done", waits=(), output=Raw(msgspec.json.encode(result)))

    def _put(self, run: FakeRun, **changes: Any) -> None:
        run.receipt = replace(run.receipt, updated_at=moment(self.clock.now()), **changes)
        run.changed.set()

    def _run(self, run_id: str, caller: Caller) -> FakeRun:
        run = self.runs.get(run_id)
        if run is None or not caller.sees(run.principal):
            raise NotFound("run", run_id)
        return run

    async def receipt(self, run_id: str, *, wait_ms: int = 0, seen: Any = None, caller: Caller) -> Receipt:
        run = self._run(run_id, caller)
        if wait_ms and run.receipt.status in ("running", "waiting"):
            self.waiting += 1
            self.waited.set()
            try:
                await asyncio.wait_for(run.changed.wait(), wait_ms / 1000)
            except TimeoutError:
                pass
            finally:
                self.waiting -= 1
        return run.receipt

    async def runs_list(
        self,
        *,
        program: str | None = None,
        status: str | None = None,
        key: str | None = None,
        limit: int = 100,
        after: str | None = None,
        caller: Caller,
    ) -> Page:
        found = [
            run.receipt
            for run in reversed(self.runs.values())
            if caller.sees(run.principal)
            and program in (None, run.receipt.program)
            and status in (None, run.receipt.status)
            and key in (None, run.receipt.key)
        ]
        if after is not None and not (after.isascii() and after.isdigit()):
            raise NotFound("page", after)
        start = int(after or 0)
        return Page(found[start : start + limit], str(start + limit) if len(found) > start + limit else None)

    async def run_journal(self, run_id: str, *, caller: Caller) -> list[JournalRow]:
        self._run(run_id, caller)
        return self.journals.get(run_id, [])

    async def run_history(self, run_id: str, *, caller: Caller) -> tuple[list[JournalRow], dict[str, Any]]:
        return await self.run_journal(run_id, caller=caller), {"run_id": run_id}

    async def run_send(self, run_id: str, event: str, body: Any, *, key: str | None = None, caller: Caller) -> Receipt:
        run = self._run(run_id, caller)
        self.acted.append(("send", run_id, event, body, key))
        return run.receipt

    async def run_cancel(self, run_id: str, reason: str | None = None, *, caller: Caller) -> Receipt:
        run = self._run(run_id, caller)
        if run.receipt.status in ("running", "waiting", "parked"):
            self.acted.append(("cancel", run_id, reason))
            self._put(run, status="cancelled", waits=(), error=None)
        return run.receipt

    async def run_fork(self, run: str, from_step: str, *, key: str | None, caller: Caller) -> Receipt:
        self.acted.append(("run_fork", run, from_step, key))
        return await self.receipt(run, caller=caller)

    async def run_retry(self, run_id: str, *, caller: Caller) -> Receipt:
        run = self._run(run_id, caller)
        self.acted.append(("retry", run_id))
        return run.receipt

    # --- approvals -------------------------------------------------------------------------------

    async def approvals_list(self, *, caller: Caller) -> list[OpenApproval]:
        return list(self.approvals.values())

    async def approvals_decide(
        self,
        run_id: str,
        name: str,
        *,
        approve: bool,
        by: str,
        reason: str | None = None,
        comment: str | None = None,
        value: Any = None,
        caller: Caller,
    ) -> Verdict:
        caller.need("operate", "deciding an approval")
        if (run_id, name) not in self.approvals:
            if ("decided", run_id, name) in [one[:3] for one in self.acted]:
                return Verdict("already_decided", "somebody", moment(self.clock.now()))
            raise NotFound("approval", name)
        del self.approvals[run_id, name]
        self.acted.append(("decided", run_id, name, approve, by, reason, comment, value))
        return Verdict("decided", by, moment(self.clock.now()))

    async def link_page(self, token: str) -> LinkPage:
        return self.links.get(token, LinkPage("unknown"))

    async def link_decide(
        self, token: str, *, choice: Literal["approve", "reject"], reason: str | None, by: str | None = None
    ) -> LinkPage:
        page = self.links.get(token, LinkPage("unknown"))
        if page.state != "open":
            return page
        done = {"approve": "approved", "reject": "rejected"}[choice]
        after = replace(page, state="decided", by="whoever held the link", at=moment(self.clock.now()), outcome=done)
        for other, known in self.links.items():
            if known.run_id == page.run_id:
                self.links[other] = replace(after, choice=known.choice)
        self.acted.append(("link", page.run_id, choice, reason))
        return replace(after, outcome="decided")

    # --- modules -----------------------------------------------------------------------------------

    async def deliver_raw(self, module: str, raw: bytes, *, caller: Caller) -> Delivered:
        if module not in self.catalog.modules:
            raise UnknownName("module", module, "counter")
        event = parse(raw, "event")
        if not isinstance(event, dict) or not isinstance(event.get("id"), str):
            raise BadArguments([Fault("id", "is missing")], nothing_was="stored")
        facts = self.counters.setdefault((caller.principal, str(event["counter"])), [])
        replayed = event["id"] in [fact["id"] for fact in facts]
        if not replayed:
            facts.append({"type": "Added", "id": event["id"]})
        return Delivered(canonical({"type": "Counted", "total": len(facts)}), replayed)

    async def read_json(self, module: str, key: str, *, caller: Caller) -> dict[str, Any]:
        return {"key": key, "view": {"total": len(self.counters.get((caller.principal, key), []))}}

    async def facts(self, module: str, key: str, *, after: int = 0, limit: int = 100, caller: Caller) -> Page:
        known = self.counters.get((caller.principal, key))
        if known is None:
            raise NotFound(module, key)
        at = "2026-05-28T20:26:40Z"
        rows = [{"seq": seq, "at": at, "fact": fact} for seq, fact in enumerate(known, 1) if seq > after]
        return Page(rows[:limit], str(after + limit) if len(rows) > limit else None)

    async def prune_named(self, module: str, key: str, *, caller: Caller) -> Pruned:
        self.acted.append(("prune", module, key))
        return Pruned(facts=4, begins=5)

    async def sweep(
        self,
        *,
        runs: int | None = None,
        replies: int | None = None,
        reflex_runs: int | None = None,
        intake: int | None = None,
        dry_run: bool = False,
        caller: Caller,
    ) -> Swept:
        self.acted.append(("sweep", runs, replies, reflex_runs, intake, dry_run))
        return Swept(replies=2, runs=3, reflex_runs=4, intake=5)

    async def actors(
        self, module: str, *, prefix: str = "", limit: int = 100, after: str | None = None, caller: Caller
    ) -> Page:
        keys = sorted(key for who, key in self.counters if who == caller.principal and key.startswith(prefix))
        return Page([{"key": key} for key in keys][:limit])

    # --- the rest ----------------------------------------------------------------------------------

    async def parked_list(self, *, caller: Caller) -> list[ParkedItem]:
        return list(self.parked.values())

    async def parked_show(self, id: str, *, caller: Caller) -> ParkedDetail:
        if id not in self.parked:
            raise NotFound("parked item", id)
        item = self.parked[id]
        told = ParkedDetail(item.id, item.kind, item.program, item.cause, item.since, "sends it again", "gives it up")
        return replace(told, key="order-7", port="pay", body={"amount": 7})

    async def parked_retry(self, id: str, *, caller: Caller) -> None:
        if self.parked.pop(id, None) is None:
            raise NotFound("parked item", id)
        self.acted.append(("parked_retry", id))

    async def parked_drop(self, id: str, *, reason: str, caller: Caller) -> None:
        if self.parked.pop(id, None) is None:
            raise NotFound("parked item", id)
        self.acted.append(("parked_drop", id, reason))

    async def tables(self, name: str, *, caller: Caller) -> list[str]:
        return ["refunds"]

    async def table_rows(
        self, name: str, table: str, *, limit: int = 100, after: str | None = None, caller: Caller
    ) -> tuple[list[str], list[list[Any]], str | None]:
        if table != "refunds":
            raise NotFound("table", table)
        rows: list[list[Any]] = [["7", "40"], ['=HYPERLINK("http://evil.test")', None]]
        return ["order_id", "amount"], rows[:limit], None

    async def export(self, name: str, *, sql: bool, caller: Caller) -> BinaryIO:
        if name not in self.catalog.actuators:
            raise UnknownName("tool", name, "refund_order")
        self.exported = io.BytesIO(b"COMMIT;\n" if sql else b"SQLite format 3\0")
        return self.exported

    async def deployed_list(self, *, caller: Caller) -> list[Version]:
        return [Version("refund")]

    async def deployed_versions(self, file: str, *, caller: Caller) -> list[Version]:
        if file != "refund":
            raise NotFound("deployed file", file)
        return [Version(file)]

    async def deploy(self, file: str, source: str, *, caller: Caller) -> tuple[Version, bool]:
        self.acted.append(("deploy", file, source))
        return Version(file), True

    async def deployed_remove(self, file: str, *, caller: Caller) -> tuple[Version, bool]:
        if file != "refund":
            raise NotFound("deployed file", file)
        return Version(file, digest="", tools=()), True

    async def rollback(self, file: str, version: int, *, caller: Caller) -> tuple[Version, bool]:
        if version != 1:
            raise NotFound(f"version of {file}", str(version))
        return Version(file, back_to=1), False

    async def ready(self) -> dict[str, Any]:
        return {"ready": self.is_ready, "store": "ok", "oldest_overdue_seconds": 1.5, "parked": len(self.parked)}

    async def watch(self) -> AsyncIterator[Happening]:
        while True:
            yield await self.happenings.get()


def _held_to_the_protocol(host: FakeHost) -> door.Host:
    """Does not run: mypy compares every verb with what the doors may call."""
    return host
