"""actuators.words - what a run hears, what is decided about it, and what it answers.

For: events, facts and replies.
Never: behaviour. Instants are whole milliseconds; JSON values are kept as the bytes they came in.
Was wrong once: a step's outcome without the name and digest of its call. Replay then had nothing to
check, and changed code was handed the results of the old.

A call is one act of a pass: `path#k`, the k-th call on a task's path ("0" the function itself, "0.1"
its second task). Entries are the facts that are handed out to a pass, in the order they were committed.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Raw

from onefold.actuators.carried import Change, Progress
from onefold.actuators.parts import NULL, Asking, Trouble, Wait, WaitKind, Word

# --- events ---------------------------------------------------------------------------------------


class Start(Word, frozen=True):
    """Create a run. `input` is the checked input as JSON, `principal` who it runs as.

    dedupe: what calls that agree on `dedupe_by` have in common. nonce: of the call; the reply gives
    back that of the call which made the run. after: so many ms until its first pass. over: the function ended without
    doing anything, and `result` is what it gave. callback: where the ended receipt is posted.
    limit: it begins once that limit of its actuator lets it, those of a higher priority first.
    """

    run: str
    program: str
    input: Raw = NULL
    key: str | None = None
    principal: str | None = None
    dedupe: str | None = None
    nonce: str = ""
    over: bool = False
    result: Raw = NULL
    after: int = 0
    callback: str | None = None
    limit: str | None = None
    priority: int = 0

    @property
    def id(self) -> str:
        """A run is started once."""
        return "start"


class Stepped(Word, frozen=True):
    """One attempt of a step ended: with a result, or with trouble and, if it may be tried again, after how long."""

    call: str
    name: str
    digest: str
    attempt: int
    result: Raw = NULL
    trouble: Trouble | None = None
    again_after: int | None = None


class Trying(Word, frozen=True):
    """An attempt through a port that does not dedupe is about to leave: after a crash it is doubtful."""

    call: str
    attempt: int


class Waiting(Word, frozen=True):
    """What a pass now waits for, the waits it no longer needs, and calls whose event reached nobody."""

    waits: tuple[Wait, ...] = ()
    released: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()


class Sent(Word, frozen=True):
    """An event for the program; `name` is the class name it waits for."""

    id: str
    run: str
    name: str
    body: Raw = NULL


class Decided(Word, frozen=True):
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


class Cancel(Word, frozen=True):
    id: str
    run: str
    reason: str | None = None


class Reopen(Word, frozen=True):
    """Try a failed or parked run again. What succeeded is kept; the failure that ended it is taken back."""

    id: str
    run: str


class Fork(Word, frozen=True):
    """Create a run from a prefix of another's facts."""

    started: Started
    facts: tuple[Fact, ...] = ()
    nonce: str = ""

    @property
    def id(self) -> str:
        return "start"


class Follow(Word, frozen=True):
    """Post the ended receipt to `url` too. receipt: the whole of it, from who saw that the run has ended."""

    id: str
    run: str
    url: str
    receipt: Raw = NULL


class Admit(Word, frozen=True):
    """The limit lets the run begin."""

    id: str
    run: str


Event: TypeAlias = (
    Start | Fork | Stepped | Trying | Waiting | Sent | Decided | Cancel | Reopen | Follow | Admit | Change | Progress
)


# --- facts ----------------------------------------------------------------------------------------


class Started(Word, frozen=True):
    run: str
    program: str
    at: int
    input: Raw = NULL
    key: str | None = None
    principal: str | None = None
    dedupe: str | None = None
    seed: str | None = None  # of a fork: the run whose chances its first steps went by
    begins: int | None = None  # of a delayed one: not before this instant
    callback: str | None = None
    limit: str | None = None
    priority: int = 0


class Admitted(Word, frozen=True):
    """It has waited for its limit long enough: its pass begins."""

    at: int


class Changed(Word, frozen=True):
    """From these places on the run goes by the new code, in every replay."""

    at: int
    places: tuple[str, ...]


class Progressed(Word, frozen=True):
    at: int
    n: int
    message: str
    done: int | float | None = None
    of: int | float | None = None


class Handed(Word, frozen=True):
    """What every entry says: of which call it is, and when it was committed."""

    call: str
    name: str
    digest: str
    at: int


class StepDone(Handed, frozen=True):
    """Entry: the step's result."""

    attempt: int
    result: Raw = NULL


class StepFell(Handed, frozen=True):
    """Entry: an attempt failed; `until` when it will be tried again, None when it will not."""

    attempt: int
    trouble: Trouble
    until: int | None = None


class StepAgain(Handed, frozen=True):
    """Entry: the time of the next attempt has come."""


class StepTrying(Word, frozen=True):
    """An attempt through a port that does not dedupe is about to leave."""

    call: str
    attempt: int
    at: int


class WaitOpened(Word, frozen=True):
    call: str
    kind: WaitKind
    name: str
    digest: str
    at: int
    until: int | None = None
    asking: Asking | None = None


class WaitDue(Handed, frozen=True):
    """Entry: the instant a call waited for, or its timeout, has come."""

    until: int


class WaitReleased(Word, frozen=True):
    """The pass no longer waits for this call: its task was cancelled."""

    call: str
    at: int


class EventKept(Word, frozen=True):
    """An event came before anything waited for it."""

    name: str
    at: int
    body: Raw = NULL


class EventBack(Word, frozen=True):
    """An event reached a call whose task was cancelled meanwhile: it is the first kept one again."""

    call: str
    name: str
    at: int
    body: Raw = NULL


class EventTaken(Handed, frozen=True):
    """Entry: an event reached a call; `kept` when it was the first kept one of its name."""

    body: Raw = NULL
    kept: bool = False


class Approval(Handed, frozen=True):
    """Entry: as many people agreed as were needed."""

    by: tuple[str, ...]
    comment: str | None = None
    value: Raw = NULL


class Seconded(Word, frozen=True):
    """A person agreed, and more of them must."""

    call: str
    by: str
    at: int


class Rejection(Handed, frozen=True):
    """Entry: a person said no."""

    by: str
    reason: str = ""


class PassOver(Word, frozen=True):
    """A pass ended at its waits; `seen` of the journal's entries had been handed out."""

    n: int
    seen: int
    at: int


class Parked(Word, frozen=True):
    """The pass stopped by name: `code` is `diverged`, `stuck` or `uncertain`."""

    code: str
    cause: str
    at: int
    expected: str | None = None
    found: str | None = None


class Finished(Word, frozen=True):
    at: int
    result: Raw = NULL


class FailedFor(Word, frozen=True):
    at: int
    trouble: Trouble


class CancelledFor(Word, frozen=True):
    at: int
    reason: str | None = None


class Reopened(Word, frozen=True):
    at: int


class Followed(Word, frozen=True):
    """One more address to which the ended receipt is posted."""

    at: int
    url: str


Entry: TypeAlias = StepDone | StepFell | StepAgain | WaitDue | EventTaken | Approval | Rejection
ENTRIES = (StepDone, StepFell, StepAgain, WaitDue, EventTaken, Approval, Rejection)
ENDINGS = (Finished, FailedFor, CancelledFor, Parked)
Fact: TypeAlias = (
    Entry | Started | StepTrying | WaitOpened | WaitReleased | EventKept | EventBack | Seconded | PassOver
    | Parked | Finished | FailedFor | CancelledFor | Reopened | Followed | Admitted | Changed
    | Progressed
)  # fmt: skip


# --- replies --------------------------------------------------------------------------------------


class Begun(Word, frozen=True):
    """The run exists; `nonce` is that of the call which made it."""

    run: str
    nonce: str = ""


class Noted(Word, frozen=True):
    """An event sent to a run: `taken` by a wait, `kept` for a later one, or the run is `over`."""

    outcome: Literal["taken", "kept", "over"]
    status: str


class Verdict(Word, frozen=True):
    """What became of a decision: it `decided`, or it changed nothing and this is why. `by`: those who did decide."""

    outcome: Literal["decided", "already_decided", "expired", "cancelled", "unknown", "refused"]
    by: str | None = None
    at: int | None = None


class Over(Word, frozen=True):
    """The run's status after `Cancel` or `Reopen`; `changed` when this event changed it."""

    status: str
    changed: bool


class Following(Word, frozen=True):
    """The receipt is, or will be, posted there (`yes`); there are as many addresses as a run may have (`full`); or the run
    has ended meanwhile, and its receipt must be read first (`look`).
    """

    outcome: Literal["yes", "full", "look"]


class Begins(Word, frozen=True):
    """Whether a run that was let in begins; one that has ended does not."""

    yes: bool


Reply: TypeAlias = Begun | Noted | Verdict | Over | Following | Begins | None
