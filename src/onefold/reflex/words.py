"""reflex.words - what an automation is made of: reflexes, facts, runs, tasks, and what the verbs answer.

For: the values that the stages hand to each other, and those that people get.
Never: a decision; an await; a word for "workflow".
Was wrong once: a step language inside the automation. What ran between two steps was in nobody's table;
a flow is a chain of facts, and every joint of it is a row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from onefold.terms.errors import Finding
from onefold.terms.ids import Principal
from onefold.terms.instant import Instant

if TYPE_CHECKING:  # who only takes facts in pays for no calendar
    from onefold.almanac import Rule

Json: TypeAlias = Any
"""Whatever JSON can hold."""

Op = Literal["insert", "update", "delete"]
FactKind = Literal["write", "signal", "manual", "run"]
RunState = Literal["pending", "fanned", "settled", "skipped"]
TaskState = Literal["queued", "ready", "claimed", "done", "failed", "parked"]
"""queued: a serial task that waits for its reflex's baton. failed: its retries are spent. parked: it was claimed
so often without an answer that whoever runs it must die of it. Both are left through `retry` alone."""

# --- a reflex ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OnClock:
    """`clause` as it was written, `rule` what almanac makes of it."""

    clause: Mapping[str, Json]
    rule: Rule


@dataclass(frozen=True, slots=True)
class OnWrite:
    entity: str
    op: Op | None = None


@dataclass(frozen=True, slots=True)
class OnSignal:
    name: str


@dataclass(frozen=True, slots=True)
class OnRun:
    """A settled run of another reflex, or of its own."""

    reflex: str


@dataclass(frozen=True, slots=True)
class ByHand:
    """Fired by a person only."""


Trigger: TypeAlias = "OnClock | OnWrite | OnSignal | OnRun | ByHand"


@dataclass(frozen=True, slots=True)
class Selection:
    """`query` is a template. mode each: one task a row, its unit is the row's `unit_key`; batch: one task, all rows."""

    query: Json
    mode: Literal["each", "batch"]
    unit_key: str | None = None


@dataclass(frozen=True, slots=True)
class Policy:
    retry_max: int = 3
    backoff: Literal["fixed", "exponential"] = "exponential"
    base_ms: int = 60_000
    timeout_ms: int = 30_000
    overlap: Literal["skip", "allow"] = "skip"
    catch_up: Literal["run", "skip", "latest"] = "run"
    order: Literal["any", "serial"] = "any"
    late_ms: int = 3_600_000


@dataclass(frozen=True, slots=True)
class Reflex:
    """One automation, checked. `definition` is what was written, without `enabled`; `version` its hash, 64 hex digits."""

    id: str
    intent: str
    principal: Principal  # `as`
    on: Trigger
    effect: str
    input: Json  # a template
    definition: Mapping[str, Json]
    version: str
    params: Json = field(default_factory=dict)
    select: Selection | None = None
    when: Json | None = None  # a template; facts only
    policy: Policy = Policy()
    enabled: bool = True


# --- facts ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Write:
    """A row was inserted, updated or deleted. dedupe_key: a repeat of it for this entity is a duplicate, for ever.
    not_before: kept until then, and met by the reflexes of that day."""

    entity: str
    op: Op
    row: Mapping[str, Json]
    dedupe_key: str | None = field(default=None, kw_only=True)
    not_before: datetime | None = field(default=None, kw_only=True)


@dataclass(frozen=True, slots=True)
class Signal:
    """Something happened elsewhere."""

    name: str
    payload: Json
    dedupe_key: str | None = field(default=None, kw_only=True)
    not_before: datetime | None = field(default=None, kw_only=True)


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact as the engine keeps it. `subject`: a write's entity, a signal's name, the reflex a manual one is aimed at
    or a run one speaks of. `body`: what templates see as `$.fact`. `cause`: what it came of, "task:<n>" or None."""

    n: int
    principal: Principal
    kind: FactKind
    subject: str
    op: Op | None
    body: Mapping[str, Json]
    at: Instant
    depth: int = 0
    cause: str | None = None
    released: bool = False


# --- names of rows ------------------------------------------------------------------------------------

FACT: Final = "fact_"
RUN: Final = "reflex_run_"
TASK: Final = "task_"


def fact_id(n: int) -> str:
    return f"{FACT}{n}"


def run_id(n: int) -> str:
    return f"{RUN}{n}"


def task_id(n: int) -> str:
    return f"{TASK}{n}"


def number_of(id: str, kind: str) -> int | None:
    """The row's number behind an id of this kind; None when it is none."""
    digits = id.removeprefix(kind)
    known = id.startswith(kind) and digits.isascii() and digits.isdigit() and len(digits) <= 18
    return int(digits) if known else None


# --- what the verbs answer ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ingested:
    """`id`: of the fact, or of the one that had its dedupe key first."""

    id: str
    duplicate: bool


@dataclass(frozen=True, slots=True)
class Fired:
    """`id`: of the manual fact; `explain` and `runs` lead on from it."""

    id: str


@dataclass(frozen=True, slots=True)
class Loaded:
    """`armed`: the ids that are enabled now. `findings`: what was seen and let pass."""

    armed: tuple[str, ...]
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class Draft:
    """A definition that arms nothing: its timer anchored, what is wrong with it beside it, and what it would change of
    the loaded reflex of its id, a line each."""

    definition: Json
    findings: tuple[Finding, ...]
    changes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PreviewTask:
    """`input`: as the effect would get it. `shows`: what its preview says of it. `error`: why there is no input."""

    unit: str
    input: Json
    shows: str | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Preview:
    """What would happen. `cause`: "occurrence:<key>", "fact" or a sentence that says why nothing would."""

    reflex: str
    cause: str
    rows: tuple[Json, ...]
    tasks: tuple[PreviewTask, ...]
    next_occurrences: tuple[datetime, ...]


@dataclass(frozen=True, slots=True)
class Cause:
    """One link of a chain, newest first. kind: task, run, fact, occurrence."""

    kind: str
    id: str
    at: datetime
    principal: Principal
    detail: Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class IntakeRow:
    """One fact of the ledger, for people. state: waiting, delivered, parked, swept. `body`: as templates see it, None
    once it was swept. `due`: when it is to be matched; `note`: why it is parked."""

    id: str
    kind: FactKind
    subject: str
    op: Op | None
    state: str
    principal: Principal
    at: datetime
    due: datetime | None
    depth: int
    cause: str | None
    note: str | None
    body: Json


@dataclass(frozen=True, slots=True)
class ReflexRow:
    """One loaded reflex, for people. `trigger`: what sets it off, in words. `armed_at`: since when facts count for it. `next_at`: when its clock's next
    occurrence falls; None without a clock, or at its end."""

    id: str
    intent: str
    principal: Principal
    version: str
    enabled: bool
    trigger: str
    effect: str
    definition: Mapping[str, Json]
    armed_at: datetime | None
    next_at: datetime | None


@dataclass(frozen=True, slots=True)
class Drawn:
    """The graph of the loaded reflexes: as lines of text, as DOT, and what is to be said of it."""

    text: str
    dot: str
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class RunRow:
    """One reflex run, for people. `note` says why it was skipped or waits."""

    id: str
    reflex: str
    cause: str
    principal: Principal
    version: str
    state: RunState
    note: str | None
    total: int
    done: int
    failed: int
    at: datetime
    settled_at: datetime | None
    tz: str | None


@dataclass(frozen=True, slots=True)
class TaskRow:
    """One task, for people. `due`: when it is tried next, or its lease lapses; `ended_at`: when it was done, failed or
    parked."""

    id: str
    run: str
    reflex: str
    unit: str
    state: TaskState
    attempt: int
    due: datetime | None
    output: Json
    error: str | None
    principal: Principal = None
    ended_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Overdue:
    """Something that should have happened by `due` and did not: a run that is pending, or an occurrence without one."""

    reflex: str
    what: str
    due: datetime
    late_seconds: float


@dataclass(frozen=True, slots=True)
class Report:
    """What one `advance` did. `moved`: whether anything was committed; False says that only time can help."""

    moved: bool
    materialized: int = 0
    matched: int = 0
    fanned: int = 0
    executed: int = 0
    settled: int = 0
    events: Sequence[str] = ()  # one line each: a `when` that raised, a run that was deferred, a fact that was parked
    behind: bool = False  # a newer set was loaded elsewhere
