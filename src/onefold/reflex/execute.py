"""reflex.execute - what an attempt sees, and what becomes of its task by the way it ended.

For: the environment of a task, its key, the buffer of what it emits; done, tried again, failed, parked.
Never: awaits or calls an effect (the engine is the one door out); lets an effect choose whose fact it emits.
Was wrong once: facts sent the moment they were emitted. Every retry of an effect that emitted and then raised fired
the chain once more.

An effect that returns is done, a declined card too; one that raises is tried again until its retries are spent. There
is no list of errors that are worth a retry: where the call is made, it is known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast

import msgspec

from onefold.reflex import intake
from onefold.reflex.birth import OCCURRENCE, environment, pinned
from onefold.reflex.intake import Incoming
from onefold.reflex.seams import Env, Task
from onefold.reflex.tables import REFLEX_RUN, TASK
from onefold.reflex.words import Json, Policy, Reflex, Signal, TaskState, Write
from onefold.store.contract import Row
from onefold.terms import codec
from onefold.terms.errors import BadArguments, Fault, OutsideStep, TooLarge
from onefold.terms.faults import says
from onefold.terms.ids import join, principal_of
from onefold.terms.instant import Instant, moment
from onefold.terms.limits import MAX_ROW_BYTES
from onefold.terms.places import at_place, place_of

LONGEST_BACKOFF_MS: Final = 24 * 3_600_000
"""Where doubling ends. Twenty retries from a minute would end in a year; a provider is back within a day or not at all."""

WORDS_AT_MOST: Final = 2_000
"""Characters of an error that a row keeps."""

EMITS_AT_MOST: Final = 1_000
EMITTED_BYTES: Final = 4 << 20
"""Facts of one attempt, and their bytes together. They are committed with its answer, which everybody waits for."""

_RUN = REFLEX_RUN.at
_N, _OF, _UNIT, _REFLEX, _PRINCIPAL = (TASK.at[name] for name in ("n", "run", "unit", "reflex", "principal"))
_TOKEN, _BATON, _ATTEMPT, _ROW = (TASK.at[name] for name in ("token", "baton", "attempt", "row"))
_decode = msgspec.json.Decoder().decode  # of bytes that the ledger wrote itself


@dataclass(frozen=True, slots=True)
class Returned:
    """An effect's answer and what it emitted on the way."""

    output: Json
    emits: tuple[Incoming, ...] = ()


@dataclass(frozen=True, slots=True)
class Raised:
    """An attempt that came to nothing, in words."""

    words: str


@dataclass(frozen=True, slots=True)
class Spent:
    """A task that was claimed too often without an answer: it is not run again."""


Ending: TypeAlias = "Returned | Raised | Spent"


@dataclass(frozen=True, slots=True)
class Landing:
    """What an attempt leaves behind, to be recorded while `token` is still the task's own.

    ready_at: when it is tried again; None: it has ended. serial: it holds the baton of `reflex`.
    """

    task: int
    run: int
    reflex: str
    token: int
    serial: bool
    state: TaskState
    ready_at: Instant | None = None
    output: bytes | None = None
    error: str | None = None
    emits: tuple[Incoming, ...] = ()


class Emits:
    """What one attempt has emitted so far. Whose it is, how deep and of what it came are the task's, not its own."""

    __slots__ = ("_kept", "_now", "_size", "_task")

    def __init__(self, task: Row, now: Instant) -> None:
        self._task, self._now, self._size = task, now, 0
        self._kept: list[Incoming] | None = []

    def __call__(self, fact: Write | Signal) -> None:
        """Raises: BadArguments, TooLarge for what is no fact; OutsideStep when the attempt is over."""
        if self._kept is None:
            raise OutsideStep("emit")
        if len(self._kept) == EMITS_AT_MOST:
            raise BadArguments([Fault("fact", f"is one too many: an attempt may emit {EMITS_AT_MOST}")])
        whose, deep = principal_of(str(self._task[_PRINCIPAL])), _number(self._task, "depth") + 1
        cause = f"task:{_number(self._task, 'n')}"
        kept = intake.taken(fact, whose, self._now, depth=deep, cause=cause)
        self._size += len(kept.raw)
        if self._size > EMITTED_BYTES:
            raise TooLarge("What one attempt emits", self._size, EMITTED_BYTES, "emit where it lies, not all of it")
        self._kept.append(kept)

    def close(self) -> tuple[Incoming, ...]:
        """All of them; whoever still emits afterwards is refused."""
        kept, self._kept = self._kept or [], None
        return tuple(kept)


class Setting:
    """What the attempts at one run's tasks have in common: its definition, its cause as it was pinned, now."""

    def __init__(self, run: Row, reflex: Reflex, now: Instant) -> None:
        self.reflex = reflex
        cause, self._principal = str(run[_RUN["cause"]]), principal_of(str(run[_RUN["principal"]]))
        self._seen = environment(reflex.params, pinned(run), now)
        self._moment = moment(now)
        # A fact's number begins again in a new store, an occurrence's key does not.
        since = () if cause.startswith(OCCURRENCE) else (str(run[_RUN["occurred_at"]]),)
        self._before = (self._principal, "reflex", str(run[_RUN["reflex"]]), cause, *since)

    def env(self, task: Row) -> Env:
        """All that the input's template may see: params, the cause, the task's own row or rows, now."""
        raw = task[_ROW]
        if not isinstance(raw, bytes):
            return self._seen
        unit = _decode(raw)
        return {**self._seen, "rows" if isinstance(unit, list) else "row": unit}

    def key(self, task: Row) -> str:
        """What a provider is given so that a second attempt is no second charge: the same on every attempt, and no
        other task's. Over 200 bytes it is a hash.
        """
        return join(*self._before, str(task[_UNIT]))

    def attempt(self, task: Row, emits: Emits) -> Task:
        """What an effect is given beside its input."""
        return Task(self.key(task), self._moment, int(task[_ATTEMPT] or 0), self._principal, emits)


def judged(task: Row, policy: Policy, ending: Ending, now: Instant) -> Landing:
    """What becomes of a claimed task."""
    if isinstance(ending, Spent):
        return _landing(task, "parked", error=_last_words(task))
    if isinstance(ending, Returned):
        output, error = _kept(ending.output)
        return _landing(task, "done", output=output, error=error, emits=ending.emits)
    attempt = _number(task, "attempt")
    if attempt > policy.retry_max:
        return _landing(task, "failed", error=ending.words)
    return _landing(task, "ready", ready_at=Instant(now + backoff_ms(policy, attempt)), error=ending.words)


def backoff_ms(policy: Policy, attempt: int) -> int:
    """How long after its `attempt`-th failure, from 1, a task is tried again."""
    if policy.backoff == "fixed":
        return policy.base_ms
    doubled = policy.base_ms << min(max(attempt - 1, 0), 40)
    return min(doubled, max(policy.base_ms, LONGEST_BACKOFF_MS))


def words_of(fault: BaseException) -> str:
    """An exception as a row keeps it: its kind, what it says, and the author's own line."""
    while isinstance(fault, BaseExceptionGroup) and fault.exceptions:
        fault = fault.exceptions[0]
    told = f"{type(fault).__name__}: {says(fault)}{at_place(place_of(fault))}"
    return told.encode("utf-8", "replace").decode().replace("\0", "\ufffd")[:WORDS_AT_MOST]


def too_long(timeout_ms: int) -> Raised:
    """An attempt that did not answer in time."""
    return Raised(f"It did not answer within {timeout_ms / 1000:g} s. Whether it took effect is not known.")


def _last_words(task: Row) -> str:
    said = task[TASK.at["error"]]
    claims = _number(task, "claims") - 1
    told = f"It was started {claims} times and never answered: each time, whoever ran it died or fell silent."
    return f"{told} Last it said: {said!s}"[:WORDS_AT_MOST] if isinstance(said, str) else told


def _kept(output: Any) -> tuple[bytes | None, str | None]:
    """An output as bytes. One that cannot be kept is told of: what was done is done all the same."""
    try:
        raw = codec.canonical(output)
    except BadArguments as bad:
        return None, f"It is done, but its output is no JSON and was not kept: {bad.faults[0]}"[:WORDS_AT_MOST]
    if len(raw) > MAX_ROW_BYTES:
        return None, f"It is done, but its output of {len(raw)} bytes was not kept: {MAX_ROW_BYTES} are the most."
    return raw, None


def _landing(task: Row, state: TaskState, **more: Any) -> Landing:
    n, run, reflex, token = cast("tuple[int, int, str, int]", (task[_N], task[_OF], task[_REFLEX], task[_TOKEN]))
    return Landing(n, run, reflex, token, task[_BATON] is not None, state, **more)


def _number(task: Row, column: str) -> int:
    value = task[TASK.at[column]]
    assert isinstance(value, int)
    return value
