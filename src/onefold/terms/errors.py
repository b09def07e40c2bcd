"""terms.errors - whose fault it is, and what to do next.

    OnefoldError
    ├─ CallerError      you asked wrongly; asking the same again never helps
    │   BadArguments KeyConflict Undeclared LoadRefused UnknownName NotFound Forbidden
    │   BadSignature Unauthenticated TooLarge AlreadyDone NotOwner OutsideStep StepFenced
    ├─ HostError        our world failed; the same again is safe
    │   StoreUnavailable OutcomeUnknown NotOpen Busy Contended PortFailed WaitsForCode
    │   StoreLocked StoreRolledBack StoreTooNew (at start)    StoreReplaced BlobDamaged HistoryDamaged (terms.damage)
    ├─ OwnedElsewhere   another node owns it, or a newer epoch fenced this one
    ├─ Failed           a program failed
    │   RunFailed RunCancelled RunParked StepFailed DecideFailed
    └─ Broken           an invariant fell: stop and tell
    Suspended (BaseException) is no error: a pass ended at a wait.

Each error carries data; its one sentence is made from the data here, and is the same at
every door. A sentence says what, where, and what to do.
Was wrong once: sentences written where the error is raised. The doors then disagreed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Literal

from onefold.terms.faults import Fault as Fault
from onefold.terms.faults import Finding as Finding
from onefold.terms.faults import ended, few, remedy, sentences, there_are
from onefold.terms.faults import short as _short

Retry = Literal["never", "same"]


def _snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


class OnefoldError(Exception):
    """The root. `code` is the class name in snake case; `status` the HTTP status; `exit` the command line's code."""

    code: ClassVar[str] = "onefold_error"
    status: ClassVar[int] = 500
    retry: ClassVar[Retry] = "never"
    exit: ClassVar[int] = 1

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "code" not in cls.__dict__:
            cls.code = _snake(cls.__name__)

    @property
    def fields(self) -> dict[str, Any]:
        """The attributes, as plain values, in the order they were given."""
        return dict(vars(self))


# --- you asked wrongly ------------------------------------------------------------------------


class CallerError(OnefoldError):
    status = 422
    exit = 3


class BadArguments(CallerError):
    """What was sent cannot be taken. `faults` has one entry a field; of very many, the first and how many more."""

    title: ClassVar[str] = "Bad arguments"

    def __init__(self, faults: Sequence[Fault], *, nothing_was: str = "started") -> None:
        self.faults = few(faults)
        self.nothing_was = nothing_was
        super().__init__(f"Nothing was {nothing_was}. " + sentences(self.faults))


class KeyConflict(CallerError):
    def __init__(self, key: str) -> None:
        self.key = key
        super().__init__(
            f"The key {_short(key)!r} was already used with other content, so nothing was changed. "
            "Send the first content again, or use another key."
        )


class Undeclared(CallerError):
    def __init__(self, name: str, owner: str, nearest: str | None = None) -> None:
        self.name = name
        self.owner = owner
        use = repr(nearest) if nearest else "one that is declared"
        super().__init__(f"{owner} does not declare {name!r}. Declare it there, or use {use}.")


class LoadRefused(CallerError):
    exit = 2

    def __init__(self, findings: Sequence[Finding]) -> None:
        self.findings = tuple(findings)
        super().__init__("Nothing was loaded. " + sentences(self.findings))


class UnknownName(CallerError):
    status = 404
    exit = 4

    def __init__(self, kind: str, name: str, nearest: str | None = None, known: Iterable[str] = ()) -> None:
        self.kind = kind
        self.name = name
        self.nearest = nearest
        hint = f" Did you mean {nearest!r}?" if nearest else there_are(known)
        super().__init__(f"There is no {kind} named {_short(name)!r}.{hint}{remedy(kind, name, nearest is not None)}")


class NotFound(CallerError):
    status = 404
    exit = 4

    def __init__(self, kind: str, id: str, do: str = "Check the id.") -> None:
        self.kind = kind
        self.id = id
        super().__init__(f"No {kind} {_short(id)!r} exists, or it belongs to somebody else. {do}")


class Forbidden(CallerError):
    status = 403

    def __init__(self, right: str, what: str) -> None:
        self.right = right
        self.what = what
        super().__init__(f"{what} needs the right {right!r}, which this key does not have. Use a key that has it.")


class BadSignature(CallerError):
    status = 401

    def __init__(self, door: str, why: str) -> None:
        self.door, self.why = door, why
        super().__init__(
            f"The signature at {door} was not accepted: {ended(why)} Sign the raw body with the shared secret."
        )


class Unauthenticated(CallerError):
    status = 401

    def __init__(self, why: str = "no key came with the request") -> None:
        self.why = why
        super().__init__(f"Not let in: {ended(why)} Send `Authorization: Bearer` with a key from onefold.toml.")


class TooLarge(CallerError):
    status = 413

    def __init__(self, what: str, size: int, limit: int, instead: str = "put it into a blob, send its digest") -> None:
        self.what = what
        self.size = size
        self.limit = limit
        super().__init__(
            f"{what} has {size} bytes; the limit is {limit}. Nothing was stored. Send less, or {instead} (app.blobs.put)."
        )


class AlreadyDone(CallerError):
    status = 409

    def __init__(self, id: str) -> None:
        self.id = id
        super().__init__(
            f"{_short(id)!r} was done before and its reply is no longer there to give. It was not done again."
        )


class NotOwner(CallerError):
    status = 409

    def __init__(self, what: str) -> None:
        self.what = what
        super().__init__(f"{what} is borrowed here, not owned. Only the owner may do that: use `open`.")


class OutsideStep(CallerError):
    def __init__(self, name: str, place: str | None = None) -> None:
        self.name, self.place = name, place
        at = f" by {place}" if place else ""
        use = "Put that line into a function of your own and call it by run.step" if place else f"Use run.step({name})"
        super().__init__(f"{name} was called{at} outside a step, where its effect could happen twice. {use}.")


class StepFenced(CallerError):
    """A step's handle was used after the step ended, by a thread that came too late."""

    def __init__(self, step: str) -> None:
        self.step = step
        super().__init__(
            f"The database handle of step {step!r} is dead: the step ended or ran past its time. Nothing was written. Use it within the step."
        )


class BadStatement(CallerError):
    """SQL that an actuator's author may not run."""

    def __init__(self, reason: str, sql: str) -> None:
        self.reason, self.sql = reason, sql
        super().__init__(f"The statement was not run: {ended(reason)} It was: {_short(sql)}")


# --- our world failed ---------------------------------------------------------------------------


class HostError(OnefoldError):
    status = 503
    retry = "same"
    exit = 7


class StoreUnavailable(HostError):
    def __init__(self, space: str, why: str) -> None:
        self.space, self.why = space, why
        super().__init__(
            f"The store {space!r} cannot be used now: {ended(why)} Nothing was written. Send the same again."
        )


class OutcomeUnknown(HostError):
    def __init__(self, id: str) -> None:
        self.id = id
        super().__init__(f"Whether {_short(id)!r} was committed is not known. Send the same again: it counts once.")


class NotOpen(HostError):
    def __init__(self, what: str, do: str = "Use it inside `async with` or `with`.") -> None:
        self.what = what
        super().__init__(f"{what} is not open. {do}")


class Busy(HostError):
    status = 429

    def __init__(self, what: str, limit: int) -> None:
        self.what = what
        self.limit = limit
        super().__init__(f"{what} is full ({limit} waiting). Nothing was taken. Send the same again a little later.")


class Contended(HostError):
    status = 409

    def __init__(self, what: str) -> None:
        self.what = what
        super().__init__(f"{what} was changed by somebody else meanwhile. Nothing was written. Try the same again.")


class WaitsForCode(HostError):
    """An actor holds a fact that this code does not know, or cannot read: `why`. It is left alone, not guessed at."""

    def __init__(self, module: str, key: str, fact: str, why: str | None = None) -> None:
        self.module, self.key, self.fact, self.why = module, key, fact, why
        cannot = "this code does not know" if why is None else f"this code cannot read ({why})"
        super().__init__(
            f"{module} {_short(key)!r} holds a fact {fact!r} that {cannot}. It waits unchanged; "
            "start the version that wrote it, or give the module an `upgrade` for it."
        )


class PortFailed(HostError):
    status = 502

    def __init__(self, port: str, key: str, why: str = "") -> None:
        self.port = port
        self.key = key
        self.why = why
        tail = f": {why}" if why else ""
        super().__init__(f"Port {port!r} did not confirm {_short(key)!r}{ended(tail)} It stays owed and is sent again.")


class StoreLocked(HostError):
    exit = 6

    def __init__(self, store: str, holder: str) -> None:
        self.store, self.holder = store, holder
        told = f"The store {store!r} is held by {holder}"
        super().__init__(f"{ended(told)} Stop it, or let each be a node of a fleet: --node NAME.")


class StoreRolledBack(HostError):
    exit = 6

    def __init__(self, space: str, expected: int, found: int) -> None:
        self.space = space
        self.expected = expected
        self.found = found
        super().__init__(
            f"The space {space!r} ends at turn {found}, but turn {expected} was acknowledged: a file was removed "
            "or an older copy put in its place. Put the newer file back, or accept the loss with "
            "`onefold doctor --accept-rollback`."
        )


class StoreTooNew(HostError):
    exit = 6

    def __init__(self, space: str, found: int, known: int) -> None:
        self.space = space
        self.found = found
        self.known = known
        super().__init__(
            f"The space {space!r} was written by newer code (migration {found}; this code knows {known}). "
            "Start the newer version."
        )


# --- somebody else owns it ----------------------------------------------------------------------


class OwnedElsewhere(OnefoldError):
    status = 421
    retry = "same"
    exit = 6

    def __init__(self, name: str, node: str | None, held_epoch: int, record_epoch: int) -> None:
        self.name = name
        self.node = node
        self.held_epoch = held_epoch
        self.record_epoch = record_epoch
        super().__init__(
            f"{name} belongs to {node or 'nobody yet'} (epoch {record_epoch}; held here: {held_epoch}). "
            "Nothing was written. Send the same again: it is routed anew."
        )


# --- a program failed ---------------------------------------------------------------------------


class Failed(OnefoldError):
    """A program failed. Catch this to go on without it."""


class DecideFailed(Failed):
    """A module's function raised, or gave what does not fit its annotation ("Unfit"). Nothing was stored, the id is free."""

    def __init__(self, module: str, key: str, kind: str, message: str) -> None:
        self.module = module
        self.key = key
        self.kind = kind
        self.message = message
        why = f"failed on {_short(key)!r}" if kind == "Unfit" else f"raised on {_short(key)!r}: {kind}"
        super().__init__(f"Module {module!r} {why}: {ended(message)} Nothing was stored. Mend the module.")


class RunFailed(Failed):
    def __init__(self, run_id: str, step: str | None, kind: str, message: str) -> None:
        self.run_id = run_id
        self.step = step
        self.kind = kind
        self.message = message
        at = f" in step {step!r}" if step else ""
        super().__init__(f"Run {run_id} failed{at}: {kind}: {message}")


class RunCancelled(Failed):
    status = 409

    def __init__(self, run_id: str, reason: str | None) -> None:
        self.run_id, self.reason = run_id, reason
        super().__init__(f"Run {run_id} was cancelled{ended(f': {reason}' if reason else '')}")


class RunParked(Failed):
    status = 409

    def __init__(self, run_id: str, cause: str) -> None:
        self.run_id, self.cause = run_id, cause
        super().__init__(f"Run {run_id} is parked: {ended(cause)} Retry or cancel it: `onefold runs retry {run_id}`.")


class StepFailed(Failed):
    """What a step's own exception became: its class name, message and JSON data. No constructor of it is ever called."""

    def __init__(self, step: str, attempts: int, kind: str, message: str, data: Any = None) -> None:
        self.step = step
        self.attempts = attempts
        self.kind = kind
        self.message = message
        self.data = data
        super().__init__(
            f"Step {step!r} failed after {attempts} attempt{'s' if attempts != 1 else ''}: {kind}: {message}"
        )


class Broken(OnefoldError):
    exit = 70

    def __init__(self, invariant: str) -> None:
        self.invariant = invariant
        super().__init__(f"An invariant fell: {ended(invariant)} This is a fault of Onefold; stop and report it.")


class Suspended(BaseException):
    """A pass ended at a wait. Not an error, and never caught by user code that catches Exception."""
