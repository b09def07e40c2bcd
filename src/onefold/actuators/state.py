"""actuators.state - a run as it is folded.

For: the state two versions of which live at once (durable and head), at a constant cost a step.
Never: decides. A state is never changed once another can see it: `evolve` copies, then sets.
Was wrong once: a tuple as the journal. Every step copied all steps before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Raw, Struct

from onefold.actuators.parts import NULL, Asking, Trouble, WaitKind
from onefold.actuators.words import Entry, Progressed

GOING = frozenset({"running", "waiting"})
OPEN = GOING | {"parked"}
"""What a parked run is told is kept for when it goes on."""


class Journal:
    """A list that only grows, seen up to a length.

    `add` appends in place when nobody has appended behind this length yet, and copies when somebody
    has: a branch that was taken back and decided again.
    """

    __slots__ = ("_entries", "length")

    def __init__(self, entries: list[Entry] | None = None, length: int = 0) -> None:
        self._entries = entries if entries is not None else []
        self.length = length

    def add(self, entry: Entry) -> Journal:
        entries, length = self._entries, self.length
        if len(entries) != length:
            entries = entries[:length]
        entries.append(entry)
        return Journal(entries, length + 1)

    def since(self, start: int) -> list[Entry]:
        return self._entries[start : self.length]

    def __len__(self) -> int:
        return self.length

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries[: self.length])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Journal) and self.since(0) == other.since(0)

    __hash__ = None  # type: ignore[assignment]


class Open(Struct, frozen=True):
    """A wait that has not ended. `attempt` counts the failed ones of a step that waits for its next.

    agreed: who agreed so far, where more than one must.
    """

    call: str
    kind: WaitKind
    name: str
    digest: str
    since: int
    until: int | None
    asking: Asking | None = None
    agreed: tuple[str, ...] = ()
    attempt: int = 0
    trouble: Trouble | None = None

    @property
    def message(self) -> str:
        """What people are asked, or why the last attempt failed."""
        if self.trouble is not None:
            return f"{self.trouble.kind}: {self.trouble.message}"
        return self.asking.message if self.asking is not None else ""


class Kept(Struct, frozen=True):
    """An event that came before its wait."""

    name: str
    body: Raw


class Closed(Struct, frozen=True):
    """How an approval ended, for those who decide too late: `approved`, `rejected`, `expired` or `cancelled`."""

    name: str
    message: str
    outcome: str
    by: str | None
    at: int


class State(Struct):
    """One run. `status` is "" before its first event.

    open: waits by call. agenda: (until, call) of those with an instant, sorted. passes: how many were owed; passing:
    one is outstanding. round: how often the run was reopened; it stands in the ids of what steps send, so that an
    attempt made anew is a new event. dedupe: what agreeing calls share. callbacks: where the ended receipt is posted.
    limit: which of its actuator's it counts for; held: it waits for that. changes: places
    from which it goes by newer code. progress: the last that it told. trying: calls with an attempt that may have
    left through a port that does not dedupe. returned: calls whose event was given back.
    """

    status: str = ""
    run: str = ""
    program: str = ""
    key: str | None = None
    principal: str | None = None
    dedupe: str | None = None
    callbacks: tuple[str, ...] = ()
    limit: str | None = None
    priority: int = 0
    held: bool = False
    changes: frozenset[str] = frozenset()
    progress: Progressed | None = None
    seed: str | None = None
    input: Raw = NULL
    started_at: int = 0
    begins: int = 0
    updated_at: int = 0
    journal: Journal = Journal()
    open: Mapping[str, Open] = {}
    agenda: tuple[tuple[int, str], ...] = ()
    kept: tuple[Kept, ...] = ()
    closed: Mapping[str, Closed] = {}
    trying: frozenset[str] = frozenset()
    returned: frozenset[str] = frozenset()
    passes: int = 0
    passing: bool = False
    round: int = 0
    result: Raw = NULL
    trouble: Trouble | None = None
    reason: str | None = None


INITIAL = State()
