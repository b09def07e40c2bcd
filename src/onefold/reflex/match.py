"""reflex.match - a fact and the reflexes: which of them it wakes, and the runs that come of it.

For: the facts that are due, who hears one, the body that opens runs and marks it delivered.
Never: evaluates a `when` (the engine does, outside any transaction, and says what it came to); crosses principals.
Pure.
Was wrong once: reflexes paired with facts by entity alone. Two tenants watched one table, and one wrote to the other's
people; each row it wrote was rightly its own, only what stood in it was not.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass

from onefold.reflex import birth
from onefold.reflex.intake import DELIVERED, PARKED, WAITING, counts_from
from onefold.reflex.materialize import busy_with, overlaps, running
from onefold.reflex.tables import INTAKE, REFLEX_RUN
from onefold.reflex.watch import Loaded, held, is_newest
from onefold.reflex.words import Fact, OnWrite, Reflex, fact_id, run_id
from onefold.store.contract import Answer, Append, Body, Last, Put, Query, Row, Verb
from onefold.terms.instant import Instant


@dataclass(frozen=True, slots=True)
class Heard:
    """A fact, and the reflexes it wakes: all that watch it and whose `when` let it pass. `fact` is None where it could
    not be read, and `why` says so."""

    n: int
    fact: Fact | None
    wakes: tuple[Reflex, ...] = ()
    why: str = ""


@dataclass(frozen=True, slots=True)
class Matched:
    """`facts`: how many were delivered or parked. `parked`: a line for each that was."""

    facts: int
    runs: int
    parked: tuple[str, ...] = ()
    behind: bool = False


def due(now: Instant, limit: int) -> Query:
    """Facts to be matched, in the order they came due."""
    return Query(INTAKE, where=(("due_at", "<=", now),), order=("due_at", "n"), limit=limit)


def candidates(loaded: Loaded, fact: Fact, armed: Mapping[str, int]) -> list[Reflex]:
    """Who hears a fact, before any `when`. `armed`: since when each reflex is, in ms.

    A person's fact reaches the one reflex it is aimed at, armed or not: arming gates triggers, not people.
    """
    if fact.kind == "manual":
        aimed = loaded.by_id.get(fact.subject)
        return [aimed] if aimed is not None and aimed.principal == fact.principal else []
    since = counts_from(fact)
    return [
        reflex
        for reflex in loaded.watching(fact.kind, fact.subject, fact.principal)
        if reflex.enabled
        and reflex.principal == fact.principal
        and armed.get(reflex.id, since + 1) <= since
        and not (isinstance(reflex.on, OnWrite) and reflex.on.op not in (None, fact.op))
    ]


def too_deep(fact: Fact, ceiling: int) -> bool:
    """Whether its chain is longer than anybody meant, and nobody let it pass. One that wakes nobody is no chain."""
    return fact.depth > ceiling and not fact.released


def unread(row: Row, why: str) -> Heard:
    """A fact that nobody here can read."""
    n = row[INTAKE.at["n"]]
    assert isinstance(n, int)
    return Heard(n, None, why=f"it cannot be read: {why}")


def stops(heard: Heard, ceiling: int) -> str | None:
    """Why a fact waits for a person; None where it does not."""
    if heard.fact is None:
        return heard.why
    if heard.wakes and too_deep(heard.fact, ceiling):
        return f"its chain has {heard.fact.depth} links; at most {ceiling} go without a person's release"
    return None


def matching(
    loaded: Loaded, decided: Sequence[Heard], now: Instant, ceiling: int, mint: Callable[[], int]
) -> Body[Matched]:
    """Open the runs that were decided on and mark the facts, each once: one that another engine marked is left alone.

    Writes nothing once a newer set was loaded than the one that was decided with.
    """
    repeats = {r.id for heard in decided if heard.fact and heard.fact.kind == "manual" for r in heard.wakes}
    by_n = {heard.n: heard for heard in decided}

    def body() -> Generator[tuple[Verb, ...], tuple[Answer, ...], Last[Matched]]:
        keys = [(n,) for n in sorted(by_n)]
        facts = Query(INTAKE, on=INTAKE.key, keys=keys, order=("due_at", "n"), lock="update", skip_locked=True)
        asked: list[Verb] = [*held(repeats), facts]
        if repeats:
            asked.append(running(sorted(repeats)))
        newest, _, rows, *open_runs = yield tuple(asked)
        if not is_newest(loaded, newest):
            return Last((), Matched(0, 0, behind=True))
        busy = busy_with(open_runs[0] if open_runs else ())
        runs: list[Row] = []
        marked: list[Row] = []
        parked: list[str] = []
        for row in rows:
            if row[INTAKE.at["state"]] != WAITING:
                continue
            heard = by_n[row[0]]
            note = stops(heard, ceiling)
            marked.append(_marked(row, DELIVERED if note is None else PARKED, note))
            if note is not None:
                parked.append(f"{fact_id(heard.n)} was parked: {note}")
            elif heard.fact is not None:
                runs += [_run(mint(), reflex, heard.fact, row, now, busy) for reflex in heard.wakes]
        told = Matched(len(marked), len(runs), tuple(parked))
        if not marked:
            return Last((), told)
        opened = (Append(REFLEX_RUN, runs, met="keep"),) if runs else ()
        return Last((*opened, Put(INTAKE, marked)), told)

    return body


def _run(n: int, reflex: Reflex, fact: Fact, row: Row, now: Instant, busy: dict[str, str]) -> Row:
    """Overlap is asked of what a person repeats, and never of a fact: that happened once, and would be lost.

    What a released fact leads to counts its links anew: a person vouched for all of it.
    """
    raw = row[INTAKE.at["body"]]
    assert isinstance(raw, bytes)
    skipped = None
    if fact.kind == "manual" and reflex.policy.overlap == "skip":
        skipped = busy.get(reflex.id)
        busy.setdefault(reflex.id, overlaps(run_id(n)))
    cause = birth.of_fact(fact.n, fact.at, raw, 0 if fact.released else fact.depth)
    return birth.born(n, reflex, cause, now, skipped)


def _marked(row: Row, state: str, note: str | None) -> Row:
    cells = list(row)
    cell = INTAKE.at
    cells[cell["state"]], cells[cell["due_at"]], cells[cell["note"]] = state, None, note
    return tuple(cells)
