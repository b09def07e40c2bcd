"""testing.broken.reflex_asks - what people ask of the engine, a preview and a backfill, with one fault each.

For: `BROKEN_ASKS`, twins as those of the engine: what takes whose place, and the test that must see it.
Never: has two faults. Each is a design that somebody has shipped, or would have.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from onefold.reflex import backfill, birth, engine, preview, rehearsing
from onefold.reflex.advancing import Advance
from onefold.reflex.tables import REFLEX_RUN, STATE
from onefold.reflex.words import Fact, Preview, Reflex
from onefold.store.contract import Append, Body, Cas, Last, Query, Row
from onefold.testing.broken.reflex_engines import BrokenEngine

# --- preview ------------------------------------------------------------------------------------------

_previewed, _by_clock, _row = rehearsing.previewed, preview.by_clock, backfill._row


class _TruthOfItsOwn(Advance):
    """Its `when` lets pass what is not false, null or absent; the engine's also knows 0, "" and []."""

    def why_not(self, reflex: Reflex, fact: Fact) -> str | None:
        if reflex.when is None:
            return None
        env = birth.environment(reflex.params, birth.of_a_fact(fact.body), self._now)
        try:
            return "it is false" if self._parts.transform(reflex.when, env) in (False, None) else None
        except Exception as fault:  # noqa: BLE001 - the door: as the sound one, whatever a template raises
            return f"its `when` failed: {type(fault).__name__}: {fault}"


async def _keeps_the_run(parts: Any, reflex: Reflex, now: Any, **given: Any) -> Preview:
    seen = await _previewed(parts, reflex, now, **given)

    def body() -> Any:
        yield ()
        cause = birth.of_occurrence("shown", now, "")
        return Last((Append(REFLEX_RUN, [birth.born(parts.space.mint(REFLEX_RUN), reflex, cause, now)]),), None)

    await parts.space.transact(body)
    return seen


async def _armed_only(parts: Any, reflex: Reflex, now: Any, **given: Any) -> Preview:
    seen = await _previewed(parts, reflex, now, **given)
    return seen if reflex.enabled else replace(seen, cause="nothing: it is disarmed", rows=(), tasks=())


def _before_catch_up(reflex: Reflex, state: Row | None, now: Any, at: Any, busy: str | None) -> Any:
    """What the clock would make, without asking what becomes of the missed."""
    return _by_clock(replace(reflex, policy=replace(reflex.policy, catch_up="run")), state, now, at, busy)


# --- backfill -----------------------------------------------------------------------------------------


def _a_repeat(reflex: Reflex, occurrence: Any, now: Any, n: int) -> Row:
    cells = list(_row(reflex, occurrence, now, n))
    if reflex.policy.overlap == "skip" and not occurrence.key.endswith("-01"):
        changed = {"state": "skipped", "open": None, "note": "overlap", "settled_at": now}
        for name, cell in changed.items():
            cells[REFLEX_RUN.at[name]] = cell
    return tuple(cells)


def _all_at_once(waiting: Sequence[Row], now: Any) -> Body[int]:
    n, reflex = REFLEX_RUN.at["n"], REFLEX_RUN.at["reflex"]

    def body() -> Any:
        yield ()
        changes: list[Any] = [((row[n],), {}, {"open": row[reflex], "due_at": now}) for row in waiting]
        return Last((Cas(REFLEX_RUN, changes),), len(changes))

    return body


def _whatever_was_swept(loaded: Any, reflex: Reflex, found: Any, now: Any, mint: Any) -> Body[backfill.Filled]:
    def body() -> Any:
        yield ()
        rows = [_row(reflex, occurrence, now, mint()) for occurrence in found]
        return Last((Append(REFLEX_RUN, rows, met="keep"),), backfill.Filled())

    return body


_backfilling = backfill.backfilling


def _moves_the_clock(loaded: Any, reflex: Reflex, found: Any, now: Any, mint: Any) -> Body[backfill.Filled]:
    def body() -> Any:
        last = yield from _backfilling(loaded, reflex, found, now, mint)()
        moved = Cas(STATE, [((reflex.id,), {}, {"watermark": found[-1].key})])
        return Last((*last.writes, moved), last.value)

    return body


def _counts_what_was_asked(answers: tuple[Any, ...]) -> int:
    return len(answers[0]) if answers else 0


def _nobody_waits(limit: int) -> Query:
    return Query(REFLEX_RUN, where=(("open", "=", "nobody"),), limit=limit)


def _twin(name: str, fault: str, seen_by: str, *parts: tuple[Any, str, Any]) -> BrokenEngine:
    return BrokenEngine(name, fault, (seen_by,), parts)


_SHOWN, _PAST = "test_a_preview_is_the_engine", "test_a_backfill_asks_once"

BROKEN_ASKS: tuple[BrokenEngine, ...] = (
    _twin("a truth of its own", "a preview judges `when` by another rule than the engine",
          f"{_SHOWN}.test_a_fact_is_tried_by_the_same_when", (rehearsing, "Advance", _TruthOfItsOwn)),
    _twin("a preview keeps", "the run that was shown is in the store",
          f"{_SHOWN}.test_it_writes_nothing", (engine, "previewed", _keeps_the_run)),
    _twin("shows the armed only", "what is to be armed cannot be looked at before",
          f"{_SHOWN}.test_it_works_on_a_disarmed_reflex", (engine, "previewed", _armed_only)),
    _twin("shows before catch-up", "a preview after an outage shows what will be skipped",
          f"{_SHOWN}.test_what_was_missed_is_shown_as_catch_up_would_have_it",
          (preview, "by_clock", _before_catch_up)),
    _twin("backfills one of twelve", "months that were asked for together are repeats of one another",
          f"{_PAST}.test_what_must_not_overlap_waits_its_turn_and_none_is_dropped", (backfill, "_row", _a_repeat)),
    _twin("backfills at once", "a queue that lets everybody go",
          f"{_PAST}.test_what_must_not_overlap_waits_its_turn_and_none_is_dropped",
          (backfill, "letting", _all_at_once)),
    _twin("a queue nobody looks at", "what waits is woken by the process that made it, and by no other",
          f"{_PAST}.test_a_queue_goes_on_after_the_process_that_made_it_is_gone", (backfill, "queued", _nobody_waits)),
    _twin("backfills what was swept", "what was charged and taken away is charged again",
          f"{_PAST}.test_what_a_sweep_took_is_never_made_again", (backfill, "backfilling", _whatever_was_swept)),
    _twin("a backfill moves the clock", "the watermark goes back to what was asked for",
          f"{_PAST}.test_the_watermark_stays", (backfill, "backfilling", _moves_the_clock)),
    _twin("counts what was asked", "the second call says that it made twelve",
          f"{_PAST}.test_asked_again_it_makes_nothing", (backfill, "made", _counts_what_was_asked)),
)  # fmt: skip
