"""actuators.receipt - a run as people and agents see it.

For: the picture a read of a run gives, and the receipt: the one JSON answer of every door.
Never: waits, refreshes or sends; host gives the receipt its verbs.
Was wrong once: absent fields as null. Agents read `"result": null` as a finished run with no result.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec
from msgspec import Raw, Struct

from onefold.actuators.parts import NULL
from onefold.actuators.state import Open, State
from onefold.kernel.blob import raw_pointed
from onefold.terms.instant import moment, text

POLL_WAITING, POLL_RUNNING = 20, 2
"""Seconds. A needless look costs an agent a whole turn; a door holds a look open for 25 at most."""


class Trouble(Struct, frozen=True, omit_defaults=True):
    """Why a run failed or is parked, as a receipt shows it."""

    code: str
    message: str
    step: str | None = None
    attempts: int | None = None


class WaitShown(Struct, frozen=True, omit_defaults=True):
    """One wait: kind is `approval`, `event`, `sleep`, `retry` or `child`; instants are milliseconds. `call` binds a decision."""

    kind: str
    name: str
    since: int
    call: str
    until: int | None = None
    message: str = ""
    notify: tuple[str, ...] = ()


class ProgressShown(Struct, frozen=True, omit_defaults=True):
    """The last that the function told of how far it is; at: when (ms)."""

    message: str
    at: int
    done: int | float | None = None
    of: int | float | None = None


class Picture(Struct, frozen=True, omit_defaults=True):
    """What a read of a run shows. `status` is "" where no run exists; instants are milliseconds."""

    status: str
    run: str
    program: str
    key: str | None = None
    principal: str | None = None
    started_at: int = 0
    updated_at: int = 0
    waits: tuple[WaitShown, ...] = ()
    trouble: Trouble | None = None
    reason: str | None = None
    result: Raw = NULL
    progress: ProgressShown | None = None


@dataclass(frozen=True)
class Receipt:
    """A frozen picture of a run. `output` is the finished run's result as JSON; host's subclass decodes it."""

    run_id: str
    program: str
    status: str
    waits: tuple[WaitShown, ...]
    error: Trouble | None
    key: str | None
    started_at: datetime
    updated_at: datetime
    output: Raw | None = None
    progress: ProgressShown | None = None

    def to_json(self) -> dict[str, Any]:
        """As every door shows it: absent fields left out, instants in RFC 3339."""
        told: dict[str, Any] = {"run_id": self.run_id, "program": self.program, "status": self.status}
        if self.key is not None:
            told["key"] = self.key
        told["started_at"] = _told(self.started_at)
        told["updated_at"] = _told(self.updated_at)
        if self.status in ("waiting", "running"):
            told["poll_after_seconds"] = POLL_WAITING if self.status == "waiting" else POLL_RUNNING
        if self.waits:
            told["waits"] = [_wait(wait) for wait in self.waits]
        if self.progress is not None:
            told["progress"] = {**msgspec.to_builtins(self.progress), "at": text(self.progress.at)}
        if self.error is not None:
            told["error"] = msgspec.to_builtins(self.error)
        if self.output is not None:
            told["result"] = msgspec.json.decode(self.output)
        return told


def receipt_of(picture: Picture) -> Receipt:
    return Receipt(
        run_id=picture.run,
        program=picture.program,
        status=picture.status,
        waits=picture.waits,
        error=picture.trouble,
        key=picture.key,
        started_at=moment(picture.started_at),
        updated_at=moment(picture.updated_at),
        output=picture.result if picture.status == "done" and raw_pointed(picture.result) is None else None,
        progress=picture.progress,
    )


def picture(state: State) -> Picture:
    going = state.status in ("running", "waiting", "parked")
    return Picture(
        status=state.status,
        run=state.run,
        program=state.program,
        key=state.key,
        principal=state.principal,
        started_at=state.started_at,
        updated_at=state.updated_at,
        waits=tuple(_shown(wait) for wait in state.open.values()) if going else (),
        trouble=_trouble(state),
        reason=state.reason,
        result=state.result,
        progress=_progress(state) if going else None,
    )


def _progress(state: State) -> ProgressShown | None:
    last = state.progress
    return None if last is None else ProgressShown(last.message, last.at, last.done, last.of)


def _shown(wait: Open) -> WaitShown:
    notify = wait.asking.notify if wait.asking is not None else ()
    return WaitShown(wait.kind, wait.name, wait.since, wait.call, wait.until, wait.message, notify)


def _trouble(state: State) -> Trouble | None:
    trouble = state.trouble
    if trouble is None or state.status not in ("failed", "parked"):
        return None
    if state.status == "parked":
        return Trouble(trouble.kind, trouble.message)
    code = "step_failed" if trouble.step else "run_failed"
    return Trouble(code, f"{trouble.kind}: {trouble.message}", trouble.step, trouble.attempts)


def _wait(wait: WaitShown) -> dict[str, Any]:
    told: dict[str, Any] = {"kind": wait.kind, "name": wait.name}
    if wait.message:
        told["message"] = wait.message
    told["since"] = text(wait.since)
    if wait.until is not None:
        told["until"] = text(wait.until)
    return told


def _told(instant: datetime) -> str:
    return text(int(instant.timestamp() * 1000))
