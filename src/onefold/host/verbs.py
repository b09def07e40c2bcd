"""host.verbs - `app.runs`, `app.approvals`, `app.parked`, `app.blobs`: the verbs of one kind of thing.

For: the host's verbs as a program calls them, under its app's principal.
Never: checks anything itself; what is asked here goes through the same verbs as at every other door.

Any of them raises what any verb of an `App` does; what it raises beside that stands with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onefold.actuators.receipt import Receipt as Shown
from onefold.host.approvals import OpenApproval, Verdict
from onefold.host.automations import Opened
from onefold.host.caller import Caller
from onefold.host.host import Host
from onefold.host.modules import Page
from onefold.host.parked import ParkedDetail, ParkedItem
from onefold.host.receipts import Receipt, held
from onefold.host.runs import JournalRow


class _Verbs:
    """On an app, and under its principal."""

    def __init__(self, app: Opened) -> None:
        self._app = app

    @property
    def _host(self) -> Host:
        return self._app.host

    @property
    def _caller(self) -> Caller:
        return self._app.caller


class Runs(_Verbs):
    """`app.runs`."""

    async def list(
        self,
        program: str | None = None,
        status: str | None = None,
        key: str | None = None,
        limit: int = 100,
        after: str | None = None,
    ) -> Page[Receipt[Any]]:
        """Receipts, newest first; `after` is the `next` of the page before. Raises: UnknownName, NotFound for a page."""
        page = await self._host.runs_list(
            program=program, status=status, key=key, limit=limit, after=after, caller=self._caller
        )
        return Page([self._held(shown) for shown in page.items], page.next)

    async def journal(self, id: str) -> Sequence[JournalRow]:
        """What the run has done, in the order in which it was committed. Raises: NotFound."""
        return await self._host.run_journal(id, caller=self._caller)

    async def cancel(self, id: str, reason: str | None = None) -> Receipt[Any]:
        """End the run where it stands; its receipt. One that has ended stays as it is. Raises: NotFound."""
        return self._held(await self._host.run_cancel(id, reason, caller=self._caller))

    async def retry(self, id: str) -> Receipt[Any]:
        """Open a failed or parked run again; its receipt. What succeeded is kept. Raises: NotFound."""
        return self._held(await self._host.run_retry(id, caller=self._caller))

    async def fork(self, id: str, from_step: str, *, key: str | None = None) -> Receipt[Any]:
        """A new run that has what the steps before `from_step` gave, and goes on from there; its receipt.

        Raises: NotFound, BadArguments, KeyConflict.
        """
        return self._held(await self._host.run_fork(id, from_step, key=key, caller=self._caller))

    def _held(self, shown: Shown) -> Receipt[Any]:
        return held(shown, self._host, self._caller, self._host.catalog.actuator(shown.program))


class Approvals(_Verbs):
    """`app.approvals`."""

    async def list(self) -> Sequence[OpenApproval]:
        """Every approval that somebody is waited for, oldest first."""
        return await self._host.approvals_list(caller=self._caller)

    async def approve(self, run_id: str, name: str, by: str, comment: str | None = None, value: Any = None) -> Verdict:
        """Say yes; a second decision, or one too late, changes nothing and says so. `value`: the offer as edited.

        Raises: NotFound, BadArguments where `by` may not decide or `value` is not to be had.
        """
        return await self._host.approvals_decide(
            run_id, name, approve=True, by=by, comment=comment, value=value, caller=self._caller
        )

    async def reject(self, run_id: str, name: str, by: str, reason: str | None = None) -> Verdict:
        """Say no; otherwise as `approve`. Raises: NotFound, BadArguments."""
        return await self._host.approvals_decide(run_id, name, approve=False, by=by, reason=reason, caller=self._caller)


class Parked(_Verbs):
    """`app.parked`."""

    async def list(self) -> Sequence[ParkedItem]:
        """What has stopped and waits for a person, oldest first."""
        return await self._host.parked_list(caller=self._caller)

    async def show(self, id: str) -> ParkedDetail:
        """One item, what is known of it, and what a retry and a drop would do. Raises: NotFound."""
        return await self._host.parked_show(id, caller=self._caller)

    async def retry(self, id: str) -> None:
        """Try it again, with a fresh count. Raises: NotFound, also for what is parked no longer."""
        await self._host.parked_retry(id, caller=self._caller)

    async def drop(self, id: str, reason: str) -> None:
        """Give up on it. What was owed comes back to its actor as an answer, if it hears drops. Raises: NotFound."""
        await self._host.parked_drop(id, reason=reason, caller=self._caller)


class Blobs(_Verbs):
    """`app.blobs`: bytes too large for an event, kept under their digest, each principal's its own."""

    async def put(self, data: bytes) -> str:
        """Durable when it answers. The same bytes give the same digest. Raises: BadArguments, TooLarge."""
        return await self._host.blobs_put(data, caller=self._caller)

    async def get(self, digest: str) -> bytes:
        """The bytes, checked against their digest. Raises: NotFound, BlobDamaged."""
        return await self._host.blobs_get(digest, caller=self._caller)
