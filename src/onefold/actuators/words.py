"""actuators.words - what a run hears, what is decided about it, and what it answers.

For: events, facts, replies, what a pass is asked and answers, and the notice an approval owes.
Never: behaviour. Instants are whole milliseconds; JSON values are kept as the bytes they came in.
Was wrong once: a step's outcome without the name and digest of its call. Replay then had nothing to
check, and changed code was handed the results of the old.

A call is one act of a pass: `path#k`, the k-th call on a task's path ("0" the function itself, "0.1"
its second task). Entries are the facts that are handed out to a pass, in the order they were committed.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Raw, Struct

from onefold.terms.typed.leaves import LEAVES

LEAVES.setdefault(Raw, ("JSON", Raw))  # JSON inside JSON, as the bytes it is
NULL = Raw(b"null")
WaitKind = Literal["approval", "event", "sleep", "retry"]


class Word(Struct, frozen=True, tag_field="type", tag=True, omit_defaults=True):
    """All words carry their class name as "type"."""


class Trouble(Word):
    """Why something failed: `kind` is a class name or a code; `step` and `call` when a step ended the run."""

    kind: str
    message: str
    step: str | None = None
    attempts: int | None = None
    call: str | None = None
    data: Raw = NULL


class Wait(Word):
    """A wait as a pass registers it: for `after` milliseconds from now, until an instant, or for ever."""

    call: str
    kind: WaitKind
    name: str
    digest: str
    after: int | None = None
    until: int | None = None
    message: str = ""
    notify: tuple[str, ...] = ()


# --- events ---------------------------------------------------------------------------------------


class Start(Word):
    """Create a run. `input` is the checked input as JSON, `principal` who it runs as.

    dedupe: what calls that agree on `dedupe_by` have in common. nonce: of the call; the reply gives
    back that of the call which made the run.
    """

    run: str
    program: str
    input: Raw = NULL
    key: str | None = None
    principal: str | None = None
    dedupe: str | None = None
    nonce: str = ""

    @property
    def id(self) -> str:
        """A run is started once."""
        return "start"


class Stepped(Word):
    """One attempt of a step ended: with a result, or with trouble and, if it may be tried again, after how long."""

    call: str
    name: str
    digest: str
    attempt: int
    result: Raw = NULL
    trouble: Trouble | None = None
    again_after: int | None = None


class Waiting(Word):
    """What a pass now waits for, and the waits it no longer needs."""

    waits: tuple[Wait, ...] = ()
    released: tuple[str, ...] = ()


class Sent(Word):
    """An event for the program; `name` is the class name it waits for."""

    id: str
    run: str
    name: str
    body: Raw = NULL


class Decided(Word):
    """A person's decision. With `wait` it is bound to that one call, else to the open approval of this name."""

    id: str
    run: str
    name: str
    approve: bool
    by: str
    comment: str | None = None
    value: Raw = NULL
    reason: str | None = None
    wait: str | None = None


class Cancel(Word):
    id: str
    run: str
    reason: str | None = None


class Reopen(Word):
    """Try a failed or parked run again. What succeeded is kept; the failure that ended it is taken back."""

    id: str
    run: str


Event: TypeAlias = Start | Stepped | Waiting | Sent | Decided | Cancel | Reopen


# --- facts ----------------------------------------------------------------------------------------


class Started(Word):
    run: str
    program: str
    at: int
    input: Raw = NULL
    key: str | None = None
    principal: str | None = None
    dedupe: str | None = None


class StepDone(Word):
    """Entry: the step's result."""

    call: str
    name: str
    digest: str
    attempt: int
    at: int
    result: Raw = NULL


class StepFell(Word):
    """Entry: an attempt failed; `until` when it will be tried again, None when it will not."""

    call: str
    name: str
    digest: str
    attempt: int
    at: int
    trouble: Trouble
    until: int | None = None


class StepAgain(Word):
    """Entry: the time of the next attempt has come."""

    call: str
    name: str
    digest: str
    at: int


class WaitOpened(Word):
    call: str
    kind: WaitKind
    name: str
    digest: str
    at: int
    until: int | None = None
    message: str = ""
    notify: tuple[str, ...] = ()


class WaitDue(Word):
    """Entry: the instant a call waited for, or its timeout, has come."""

    call: str
    name: str
    digest: str
    at: int
    until: int


class WaitReleased(Word):
    """The pass no longer waits for this call: its task was cancelled."""

    call: str
    at: int


class EventKept(Word):
    """An event came before anything waited for it."""

    name: str
    at: int
    body: Raw = NULL


class EventTaken(Word):
    """Entry: an event reached a call; `kept` when it was the first kept one of its name."""

    call: str
    name: str
    digest: str
    at: int
    body: Raw = NULL
    kept: bool = False


class Approval(Word):
    """Entry: a person agreed."""

    call: str
    name: str
    digest: str
    at: int
    by: str
    comment: str | None = None
    value: Raw = NULL


class Rejection(Word):
    """Entry: a person said no."""

    call: str
    name: str
    digest: str
    at: int
    by: str
    reason: str = ""


class PassOver(Word):
    """A pass ended at its waits; `seen` of the journal's entries had been handed out."""

    n: int
    seen: int
    at: int


class Parked(Word):
    """The pass stopped by name: `code` is `diverged`, `stuck` or `uncertain`."""

    code: str
    cause: str
    at: int
    expected: str | None = None
    found: str | None = None


class Finished(Word):
    at: int
    result: Raw = NULL


class FailedFor(Word):
    at: int
    trouble: Trouble


class CancelledFor(Word):
    at: int
    reason: str | None = None


class Reopened(Word):
    at: int


Entry: TypeAlias = StepDone | StepFell | StepAgain | WaitDue | EventTaken | Approval | Rejection
ENTRIES = (StepDone, StepFell, StepAgain, WaitDue, EventTaken, Approval, Rejection)
ENDINGS = (Finished, FailedFor, CancelledFor, Parked)
Fact: TypeAlias = (
    Started
    | StepDone
    | StepFell
    | StepAgain
    | WaitOpened
    | WaitDue
    | WaitReleased
    | EventKept
    | EventTaken
    | Approval
    | Rejection
    | PassOver
    | Parked
    | Finished
    | FailedFor
    | CancelledFor
    | Reopened
)


# --- replies --------------------------------------------------------------------------------------


class Begun(Word):
    """The run exists; `nonce` is that of the call which made it."""

    run: str
    nonce: str = ""


class Noted(Word):
    """An event sent to a run: `taken` by a wait, `kept` for a later one, or the run is `over`."""

    outcome: Literal["taken", "kept", "over"]
    status: str


class Verdict(Word):
    """What became of a decision: it `decided`, or it changed nothing and this is why."""

    outcome: Literal["decided", "already_decided", "expired", "cancelled", "unknown"]
    by: str | None = None
    at: int | None = None


class Over(Word):
    """The run's status after `Cancel` or `Reopen`; `changed` when this event changed it."""

    status: str
    changed: bool


Reply: TypeAlias = Begun | Noted | Verdict | Over | None


# --- what a pass and a notice carry ---------------------------------------------------------------


class RunPass(Word):
    """Body of the port `pass`: replay the run this row belongs to."""

    run: str
    n: int


class Ask(Word):
    """Body of the port `notify`: a person is asked. `shown` is the run's input; `call` binds the answer to this wait."""

    run: str
    program: str
    call: str
    name: str
    message: str
    notify: tuple[str, ...]
    since: int
    until: int | None = None
    shown: Raw = NULL
    principal: str | None = None


class Returned(Word):
    seen: int
    result: Raw = NULL


class Raised(Word):
    seen: int
    trouble: Trouble


class Rested(Word):
    """Every task waits. `seen` entries were handed out; these waits are new, those no longer needed."""

    seen: int
    waits: tuple[Wait, ...] = ()
    released: tuple[str, ...] = ()


class Diverged(Word):
    """Replay met something else than the journal holds."""

    seen: int
    expected: str
    found: str


class Stuck(Word):
    """Every task waits for another task of the same pass, and nothing outside can wake any."""

    seen: int
    tasks: tuple[str, ...] = ()


PassEnded: TypeAlias = Returned | Raised | Rested | Diverged | Stuck
