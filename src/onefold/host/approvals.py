"""host.approvals - who is asked, what was decided, and what a link leads to.

For: open approvals, a person's decision as one event of the run, and the page behind a link.
Never: decides by being looked at; decides twice; approves for whoever only may call.
Was wrong once: a row of its own for each decision. The row said yes while the run had expired.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal

import msgspec

from onefold.actuators.approving import refusal
from onefold.actuators.carried import Ask
from onefold.actuators.state import State
from onefold.actuators.tables import RUN
from onefold.actuators.words import Decided
from onefold.actuators.words import Verdict as Judged
from onefold.host.caller import Caller
from onefold.host.core import Core
from onefold.host.links import Bound, Choice, make, read
from onefold.kernel.blob import plain
from onefold.kernel.port import Port, Step, dedupes
from onefold.store.contract import Query
from onefold.terms.codec import digest
from onefold.terms.errors import Contended, NotFound
from onefold.terms.ids import ActorId, principal_of, principal_text
from onefold.terms.instant import moment

LinkState = Literal["open", "decided", "expired", "cancelled", "unknown", "changed"]
Way = Literal["approved", "rejected"]
LISTED = 500  # open approvals of one program in a list
PAGE = 200  # unfinished runs looked at before others have a turn


@dataclass(frozen=True, slots=True)
class OpenApproval:
    """An approval somebody is waited for. `shown`: the arguments of the run, as JSON."""

    run_id: str
    program: str
    name: str
    message: str
    since: datetime
    until: datetime | None
    shown: Any


@dataclass(frozen=True, slots=True)
class Verdict:
    """What deciding came to. `by`, `at` and `way`: who decided, when and which way, whoever it was."""

    outcome: Literal["decided", "already_decided", "expired", "cancelled"]
    by: str | None
    at: datetime | None
    way: Way | None = None


@dataclass(frozen=True, slots=True)
class LinkPage:
    """What a link leads to. Of an unknown link only `state` means anything."""

    state: LinkState
    choice: Choice = "approve"
    run_id: str = ""
    program: str = ""
    name: str = ""
    message: str = ""
    shown: Any = None
    since: datetime | None = None
    until: datetime | None = None
    by: str | None = None
    at: datetime | None = None
    outcome: str | None = None


class ApprovalVerbs:
    """Verbs on approvals. `_secrets` sign links (the first) and check them (all)."""

    _core: Core
    _secrets: Sequence[bytes]
    _chance: Callable[[int], bytes]

    _actor: Callable[[str, Caller], Awaitable[ActorId]]
    _find: Callable[[str], Awaitable[ActorId | None]]
    _tell: Callable[[ActorId, str, bytes, Any], Awaitable[Any]]

    def link(self, ask: Ask, choice: Choice) -> str:
        """The token of the link that a notice carries."""
        return make(self._secrets[0], Bound(ask.program, ask.run, ask.call, choice, digest(bytes(ask.shown)).hex()))

    async def approvals_list(self, *, caller: Caller) -> list[OpenApproval]:
        """Every open approval that the caller may see, oldest first."""
        found: list[OpenApproval] = []
        for name in sorted(self._core.catalog.actuators):
            where: list[tuple[str, Any, Any]] = [("status", "in", ("waiting", "running"))]
            if "operate" not in caller.rights:
                where.append(("principal", "=", principal_text(caller.principal)))
            for asks in (("asks", ">", 0), ("asks", "null", True)):
                found.extend(await self._asking(name, (asks, *where)))
        return sorted(found, key=lambda each: each.since)

    async def _asking(self, name: str, where: tuple[Any, ...]) -> list[OpenApproval]:
        """The open approvals of the runs that these conditions find; those that only sleep are not looked at."""
        space = await self._core.space(name)
        found: list[OpenApproval] = []
        last: Any = 0
        while last is not None and len(found) < LISTED:
            page = Query(RUN, where=(*where, ("actor", ">", last)), order=("actor",), limit=PAGE)
            (rows,) = await space.look(page)
            for row in rows:
                at = ActorId(name, principal_of(str(row[RUN.at["principal"]])), str(row[RUN.at["run"]]))
                found.extend(_open(await self._whole(at)))
            last = rows[-1][0] if len(rows) == PAGE else None
            await asyncio.sleep(0)  # many runs may wait here, and others want their turn
        return found

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
        """Decide the open approval `name` of a run. A second decision, or one too late, changes nothing and says so.

        Raises: Forbidden, NotFound, BadArguments, Contended where the approval changed meanwhile.
        """
        caller.need("operate", "deciding an approval")
        at = await self._actor(run_id, caller)
        return await self._decide_as(at, name, approve, by, reason, comment, value, None)

    async def link_page(self, token: str) -> LinkPage:
        """What the link leads to now. Decides nothing."""
        bound, at = await self._bound(token)
        if bound is None or at is None:
            return LinkPage("unknown")
        return _page(bound, await self._whole(at))

    async def link_decide(self, token: str, *, choice: Choice, reason: str | None, by: str | None = None) -> LinkPage:
        """Decide through a link: one event, so the first tap counts and every other shows what was decided."""
        bound, at = await self._bound(token)
        if bound is None or at is None:
            return LinkPage("unknown")
        page = _page(bound, await self._whole(at))
        if page.state != "open":
            return page
        if choice != bound.choice:
            return LinkPage("unknown")
        verdict = await self._decide_as(
            at, page.name, choice == "approve", by or "whoever held the link", reason, None, None, bound.call
        )
        after = _page(bound, await self._whole(at))
        return replace(after, outcome="decided") if verdict.outcome == "decided" else after

    async def _whole(self, at: ActorId) -> State:
        """The run with its input, wherever that is kept: what was asked about is shown in full."""
        state: State = await self._core.whole(at, await self._core.node.read(at))
        return state

    async def _bound(self, token: str) -> tuple[Bound | None, ActorId | None]:
        bound = read(self._secrets, token)
        return bound, None if bound is None else await self._find(bound.run)

    async def _decide_as(
        self,
        at: ActorId,
        name: str,
        approve: bool,
        by: str,
        reason: str | None,
        comment: str | None,
        value: Any,
        wait: str | None,
    ) -> Verdict:
        id = self._chance(16).hex()
        word = Decided(
            id,
            at.key,
            name,
            approve,
            by,
            comment=comment,
            value=msgspec.Raw(plain(msgspec.json.encode(value))),
            reason=reason,
            wait=wait,
        )
        fault = refusal(await self._core.node.read(at), word)
        if fault is not None:
            raise fault
        verdict: Judged = await self._tell(at, f"decide/{id}", b"", word)
        if verdict.outcome == "unknown":
            raise NotFound("approval", name)
        if verdict.outcome == "refused":  # the approval changed between the look and the fold
            raise refusal(await self._core.node.read(at), word) or Contended(f"the approval {name!r}")
        way: Way | None = "approved" if approve else "rejected"
        if verdict.outcome != "decided":
            way = _way(await self._core.node.read(at), name, wait)
        return Verdict(verdict.outcome, verdict.by, None if verdict.at is None else moment(verdict.at), way)


def asking(core: Core, notify: Port[Ask, None]) -> Port[Ask, None]:
    """The port `notify`, told in full what it shows: its row only points at a long input."""

    @dedupes("notify")
    async def whole(step: Step, ask: Ask) -> None:
        told: Ask = await core.whole(ActorId(ask.program, ask.principal, ask.run), ask)
        answer = notify.function(step, told)
        if isinstance(answer, Awaitable):
            await answer

    return whole


def _way(state: State, name: str, wait: str | None) -> Way | None:
    """Which way an approval was decided before: the one of this call, else the latest of this name."""
    found = [one for call, one in state.closed.items() if one.name == name and wait in (None, call)]
    latest = max(found, key=lambda one: one.at, default=None)
    if latest is None or latest.outcome in _ENDS:
        return None
    return "approved" if latest.outcome.startswith("approve") else "rejected"


_ENDS: dict[str, LinkState] = {"expired": "expired", "cancelled": "cancelled"}


def _open(state: State) -> list[OpenApproval]:
    return [
        OpenApproval(
            state.run,
            state.program,
            wait.name,
            wait.message,
            moment(wait.since),
            None if wait.until is None else moment(wait.until),
            msgspec.json.decode(state.input),
        )
        for wait in state.open.values()
        if wait.kind == "approval"
    ]


def _page(bound: Bound, state: State) -> LinkPage:
    page = LinkPage("changed", bound.choice, state.run, state.program)
    if digest(bytes(state.input)).hex() != bound.shown:
        return page
    page = replace(page, shown=msgspec.json.decode(state.input))
    wait = state.open.get(bound.call)
    if wait is not None and state.status in ("waiting", "running"):
        until = None if wait.until is None else moment(wait.until)
        return replace(page, state="open", name=wait.name, message=wait.message, since=moment(wait.since), until=until)
    closed = state.closed.get(bound.call)
    if closed is None:
        return replace(page, state="cancelled")
    how, at = _ENDS.get(closed.outcome, "decided"), moment(closed.at)
    page = replace(page, state=how, name=closed.name, message=closed.message, outcome=closed.outcome)
    return replace(page, until=at) if how == "expired" else replace(page, by=closed.by, at=at)
