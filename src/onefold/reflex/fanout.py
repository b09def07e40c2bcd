"""reflex.fanout - a pending run becomes tasks, all in one commit, or none.

For: the runs that are to be fanned out, the units of one, its tasks; refusing a run that can never be, and putting
off one whose database had a bad minute.
Never: selects (the engine does, outside any transaction). Pure.
Was wrong once: a fan-out that went on where it had broken off. It selected again, from rows that had moved on, and
kept tasks for people who had paid meanwhile. And every fault skipped: one minute without a database was a month's
billing that never came again.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from onefold.reflex import birth, intake
from onefold.reflex.tables import INTAKE, REFLEX_RUN, TASK
from onefold.reflex.watch import held
from onefold.reflex.words import Json, Reflex, run_id
from onefold.store.contract import Answer, Append, Body, Each, Last, Put, Query, Row, Verb, Write
from onefold.terms import codec
from onefold.terms.errors import BadArguments
from onefold.terms.instant import Instant
from onefold.terms.limits import MAX_ROW_BYTES

MOST_UNITS: Final = 10_000
"""Tasks of one run. One commit writes them all; more is more than one question asked at once."""

AGAIN_FIRST_MS, AGAIN_MOST_MS = 1_000, 3_600_000
"""A database that was restarted is back in a second or two; one that is gone for a night is asked each hour."""

ITSELF, ALL = "itself", "all"
"""The unit of a run without a selection, and of one that takes all its rows at once."""


class NeverFans(Exception):
    """Asking again would not help: the run is skipped, and says why."""


@dataclass(frozen=True, slots=True)
class Unit:
    """One task to be. `row`: canonical JSON of the selected row, or of all of them; None without a row."""

    key: str
    row: bytes | None


@dataclass(frozen=True, slots=True)
class Fan:
    """What a run came to: its units; or why it never will (`skipped`); or what stood in the way (`put_off`)."""

    run: Row
    reflex: Reflex | None
    units: tuple[Unit, ...] = ()
    skipped: str | None = None
    put_off: str | None = None


@dataclass(frozen=True, slots=True)
class Fanned:
    """`runs`: how many were fanned out. `settled`: those that had nothing to do. `events`: a line for each other."""

    runs: int
    settled: int
    tasks: int
    events: tuple[str, ...] = ()


def due(now: Instant, limit: int) -> Query:
    """Runs to be fanned out, the longest waiting first. One that was put off stands where its next try is."""
    return Query(REFLEX_RUN, where=(("due_at", "<=", now),), order=("due_at", "n"), limit=limit)


# --- units ------------------------------------------------------------------------------------------


class Rows:
    """The units of a selection, taken row by row. Raises: NeverFans."""

    def __init__(self, reflex: Reflex) -> None:
        assert reflex.select is not None
        self._mode, self._key = reflex.select.mode, reflex.select.unit_key
        self._each: dict[str, Unit] = {}
        self._all: list[Json] = []

    def take(self, row: Mapping[str, Json]) -> None:
        count = len(self._each) + len(self._all)
        if count >= MOST_UNITS:
            raise NeverFans(f"the selection gave more than {MOST_UNITS} rows; let it give fewer")
        raw = _raw(row, f"row {count + 1} of the selection")
        if self._mode == "batch":
            self._all.append(codec.parse(raw))
            return
        unit = _unit_key(row, self._key or "", count)
        if unit in self._each:
            raise NeverFans(f"two rows of the selection have {self._key} {unit!r}; it must tell rows apart")
        self._each[unit] = Unit(unit, raw)

    def units(self) -> tuple[Unit, ...]:
        """No rows are no units, and that is an ordinary outcome."""
        if self._mode == "each":
            return tuple(self._each.values())
        return (Unit(ALL, _raw(self._all, "the selection")),) if self._all else ()


def without_selection(fact: Mapping[str, Json] | None) -> tuple[Unit, ...]:
    """The trigger itself is the unit; the row that a write carries is its row."""
    row = None if fact is None or fact.get("kind") != "write" else codec.canonical(fact["row"])
    return (Unit(ITSELF, row),)


def _unit_key(row: Mapping[str, Json], key: str, count: int) -> str:
    value = row.get(key)
    if isinstance(value, bool) or not isinstance(value, str | int):
        told = "has no" if value is None else "has no text or whole number as"
        raise NeverFans(f"row {count + 1} of the selection {told} {key}, which tells its rows apart")
    text = str(value)
    if codec.text_problem(text) or not text or len(text.encode()) > 512:
        raise NeverFans(f"row {count + 1} of the selection has a {key} that is empty or longer than 512 bytes")
    return text


def _raw(value: object, what: str) -> bytes:
    if what != "the selection" and not isinstance(value, Mapping):
        raise NeverFans(f"{what} is a {type(value).__name__}, not an object")
    try:
        raw = codec.canonical(dict(value) if isinstance(value, Mapping) else value)
    except BadArguments as bad:
        raise NeverFans(f"{what} is not JSON: {bad.faults[0]}") from None
    if len(raw) > MAX_ROW_BYTES:
        raise NeverFans(f"{what} has {len(raw)} bytes; at most {MAX_ROW_BYTES} are taken")
    return raw


# --- the body ---------------------------------------------------------------------------------------


def gathered(fans: Sequence[Fan]) -> Iterator[list[Fan]]:
    """As many together as one commit should write: a run of ten thousand alone, small ones a hundred at once."""
    batch: list[Fan] = []
    size = 0
    for fan in fans:
        if batch and size + len(fan.units) > MOST_UNITS:
            yield batch
            batch, size = [], 0
        batch.append(fan)
        size += len(fan.units)
    if batch:
        yield batch


def fanning(
    fans: Sequence[Fan], now: Instant, mint_task: Callable[[], int], mint_fact: Callable[[], int]
) -> Body[Fanned]:
    """Write the tasks of these runs with their move to `fanned`. A run that is not pending any more is left alone.

    A run without units settles here, and its fact goes with it. The first task of a serial reflex gets its baton if
    nobody has it; the others queue.
    """
    by_n = {fan.run[0]: fan for fan in fans}
    serial = sorted({f.reflex.id for f in fans if f.reflex and f.units and f.reflex.policy.order == "serial"})

    def body() -> Generator[tuple[Verb, ...], tuple[Answer, ...], Last[Fanned]]:
        keys = [(n,) for n in sorted(by_n)]  # type: ignore[type-var]
        asked: list[Verb] = [Query(REFLEX_RUN, on=REFLEX_RUN.key, keys=keys, order=("n",), lock="update")]
        if serial:
            asked += [held(serial)[1], Query(TASK, each=Each("baton", serial, 1))]
        answers = yield tuple(asked)
        runs = answers[0]
        batons = {str(row[TASK.at["baton"]]) for row in (answers[2] if serial else ())}
        made = _Made(now, mint_task, mint_fact, batons)
        for row in runs:
            if row[REFLEX_RUN.at["state"]] == "pending" and row[REFLEX_RUN.at["tries"]] == made.tries(by_n[row[0]]):
                made.fan(row, by_n[row[0]])
        return Last(made.writes(), Fanned(made.fanned, made.settled, len(made.tasks), tuple(made.events)))

    return body


class _Made:
    """The rows of one such commit."""

    def __init__(
        self, now: Instant, mint_task: Callable[[], int], mint_fact: Callable[[], int], batons: set[str]
    ) -> None:
        self._now, self._mint_task, self._mint_fact, self._batons = now, mint_task, mint_fact, batons
        self.runs: list[Row] = []
        self.tasks: list[Row] = []
        self.facts: list[Row] = []
        self.fanned = self.settled = 0
        self.events: list[str] = []

    @staticmethod
    def tries(fan: Fan) -> object:
        return fan.run[REFLEX_RUN.at["tries"]]

    def fan(self, row: Row, fan: Fan) -> None:
        told = run_id(int(row[0] or 0))
        if fan.put_off is not None:
            tries = int(row[REFLEX_RUN.at["tries"]] or 0) + 1
            again = self._now + min(AGAIN_MOST_MS, AGAIN_FIRST_MS << min(tries - 1, 30))
            note = _noted(row, f"put off {tries} {'time' if tries == 1 else 'times'}: {fan.put_off}")
            self.runs.append(_run(row, due_at=again, tries=tries, note=note))
            self.events.append(f"{told} was put off: {fan.put_off}")
        elif fan.skipped is not None or fan.reflex is None:
            note = _noted(row, fan.skipped or "its definition is gone")
            gone: dict[str, int | str | None] = {"due_at": None, "open": None, "settled_at": self._now}
            self.runs.append(_run(row, state="skipped", note=note, **gone))
            self.events.append(f"{told} was skipped: {note}")
        else:
            self._tasks(row, fan.reflex, fan.units)

    def _tasks(self, row: Row, reflex: Reflex, units: Sequence[Unit]) -> None:
        self.fanned += 1
        if not units:
            ended: dict[str, int | str | None] = {"due_at": None, "open": None, "settled_at": self._now, "drained": 1}
            after = _run(row, state="settled", total=0, note=_noted(row), **ended)
            self.runs.append(after)
            self.facts.append(intake.row_of(self._mint_fact(), intake.settling(after, self._now)))
            self.settled += 1
            return
        self.runs.append(_run(row, state="fanned", total=len(units), due_at=None, note=_noted(row)))
        serial = reflex.policy.order == "serial"
        for unit in units:
            first = serial and reflex.id not in self._batons
            self._batons.add(reflex.id)
            self.tasks.append(task_row(self._mint_task(), row, reflex, unit, self._now, serial=serial, first=first))

    def writes(self) -> tuple[Write, ...]:
        writes: list[Write] = []
        if self.tasks:
            writes.append(Append(TASK, self.tasks))
        if self.facts:
            writes.append(Append(INTAKE, self.facts))
        if self.runs:
            writes.append(Put(REFLEX_RUN, self.runs))
        return tuple(writes)


def _noted(row: Row, more: str | None = None) -> str | None:
    """What is to be said of a run now. That a person asked for its past stays; what it waited for goes."""
    was = str(row[REFLEX_RUN.at["note"]] or "")
    asked = was.startswith(birth.BACKFILL)
    return "; ".join([*([birth.BACKFILL] if asked else []), *([more] if more else [])]) or None


def _run(row: Row, **cells: int | str | None) -> Row:
    out = list(row)
    for name, cell in cells.items():
        out[REFLEX_RUN.at[name]] = cell
    return tuple(out)


def task_row(n: int, run: Row, reflex: Reflex, unit: Unit, now: Instant, *, serial: bool, first: bool) -> Row:
    """A task as it is born. `first`: of the serial ones, the one that holds the baton."""
    cell = REFLEX_RUN.at
    ready = first or not serial
    return (
        n,
        run[0],
        unit.key,
        reflex.id,
        reflex.effect,
        run[cell["version"]],
        run[cell["principal"]],
        "ready" if ready else "queued",
        reflex.id if first else None,
        None if ready else reflex.id,
        now if ready else None,
        None,
        0,
        0,
        run[cell["depth"]],
        unit.row,
        None,
        None,
        now,
        None,
        None,
    )
