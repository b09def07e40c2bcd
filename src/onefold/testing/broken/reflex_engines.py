"""testing.broken.reflex_engines - the engine of reflexes with one fault each, so that its tests can prove their teeth.

For: `BROKEN_ENGINES`, every twin by name: what is wrong with it, what it breaks, and the test that must see it;
`planted()` puts it in for as long as it is asked for.
Never: is broken in two places; hides its fault: each is a design that somebody has shipped.
Was wrong once: twins of whole engines. What one did otherwise besides its fault was what the tests then saw.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from onefold.almanac import Key, Occurrence
from onefold.reflex import acting, fanout, intake, match, materialize, watch
from onefold.reflex.acting import Acting
from onefold.reflex.advancing import Advance
from onefold.reflex.driver import Driver
from onefold.reflex.fanout import Fan
from onefold.reflex.seams import Effect
from onefold.reflex.tables import INTAKE, STATE, TASK
from onefold.reflex.words import Fact, OnClock, OnSignal, OnWrite, Reflex, Write
from onefold.store.contract import Append, Body, Last, Put, Query, Row
from onefold.terms.instant import Instant

Part = tuple[Any, str, Any]


@dataclass(frozen=True, slots=True)
class BrokenEngine:
    """A twin. `seen_by`: the tests, as file and name, that must fail over it. `parts`: what takes whose place."""

    name: str
    fault: str
    seen_by: tuple[str, ...]
    parts: tuple[Part, ...]

    @contextmanager
    def planted(self) -> Iterator[None]:
        """The fault is in, until the end."""
        sound = [(owner, name, getattr(owner, name)) for owner, name, _ in self.parts]
        try:
            for owner, name, broken in self.parts:
                setattr(owner, name, broken)
            yield
        finally:
            for owner, name, part in sound:
                setattr(owner, name, part)


# --- the door -----------------------------------------------------------------------------------------

_taken, _releasing = intake.taken, intake.releasing


def _anything(value: Any, path: str = "") -> Any:
    return Write(value.get("entity", ""), value.get("op", "insert"), value.get("row", {}))


def _at_once(*given: Any, **more: Any) -> intake.Incoming:
    fact = _taken(*given, **more)
    return replace(fact, due_at=fact.at)


def _by_key_alone(fact: Any, *given: Any, **more: Any) -> intake.Incoming:
    return replace(_taken(fact, *given, **more), dedupe=fact.dedupe_key)


def _forgets(n: int, *given: Any) -> Body[bool]:
    def body() -> Any:
        last = yield from _releasing(n, *given)()
        rows = [row for write in last.writes if isinstance(write, Put) for row in write.rows]
        at = INTAKE.at["released"]
        return Last((Put(INTAKE, [(*row[:at], 0, *row[at + 1 :]) for row in rows]),), last.value)

    return body


# --- the clock ----------------------------------------------------------------------------------------

_plan, _after = materialize._plan, materialize._after


def _frozen(loaded: Any, row: Row, now: Instant, cap: int) -> Any:
    reflex = loaded.by_id.get(row[0])
    plan = _plan(loaded, row, now, cap)
    if reflex is not None and not reflex.enabled:
        plan.after = _after(row, now + 3_600_000, row[STATE.at["watermark"]])
    return plan


def _jumps(loaded: Any, row: Row, now: Instant, cap: int) -> Any:
    plan = _plan(loaded, row, now, cap)
    if plan.reflex is not None and isinstance(plan.reflex.on, OnClock):
        last = plan.reflex.on.rule.latest(now)
        assert last is not None
        plan.after = materialize._moved(row, plan.reflex.on.rule, last.key)
    return plan


def _latest_of_the_chunk(reflex: Reflex, found: Any, now: Instant) -> list[tuple[Occurrence, str | None]]:
    late = "catchUp latest: a later one came"
    return [(one, None if one is found[-1] or reflex.policy.catch_up != "latest" else late) for one in found]


def _any_clock(now: Instant, limit: int) -> Query:
    return Query(STATE, where=(("next_at", "null", False),), order=("next_at",), limit=limit)


def _back(loaded: Any, row: Row, now: Instant, cap: int) -> Any:
    plan = _plan(loaded, row, now, cap)
    reflex = loaded.by_id.get(row[0])
    if reflex is not None and isinstance(reflex.on, OnClock) and (last := reflex.on.rule.latest(now)) is not None:
        plan.after = materialize._moved(row, reflex.on.rule, Key(last.key))
    return plan


# --- facts and reflexes -------------------------------------------------------------------------------

_candidates, _run, _advance, _why_not = match.candidates, match._run, Advance.run, Advance.why_not


def _by_subject(loaded: Any, fact: Fact, armed: Mapping[str, int]) -> list[Reflex]:
    if fact.kind == "manual":
        return _candidates(loaded, fact, armed)
    watched = (OnWrite(fact.subject), OnWrite(fact.subject, fact.op), OnSignal(fact.subject))
    return [one for one in loaded.by_id.values() if one.on in watched and one.enabled]


def _retro(loaded: Any, fact: Fact, armed: Mapping[str, int]) -> list[Reflex]:
    return _candidates(loaded, fact, dict.fromkeys(armed, 0))


def _overlapping(n: int, reflex: Reflex, fact: Fact, row: Row, now: Instant, busy: dict[str, str]) -> Row:
    manual = replace(fact, kind="manual")
    return _run(n, reflex, manual, row, now, busy)


async def _for_nobody(self: Advance) -> Any:
    if self._parts.loaded is None or not self._parts.loaded.by_id:
        (rows,) = await self._space.look(match.due(self._now, self._limit))
        marked = [match._marked(row, intake.DELIVERED, None) for row in rows]

        def body() -> Any:
            yield ()
            return Last((Put(INTAKE, marked),) if marked else (), None)

        await self._space.transact(body)
    return await _advance(self)


def _raises(self: Advance, reflex: Reflex, fact: Fact) -> str | None:
    if reflex.when is not None:
        self._parts.transform(reflex.when, {"fact": fact.body})
    return _why_not(self, reflex, fact)


def _always(*given: Any) -> bool:
    return True


# --- fan-out ------------------------------------------------------------------------------------------

_fan, _fanning, _tasks = Advance.fan, fanout.fanning, fanout._Made._tasks


async def _skips(self: Advance, *given: Any) -> Fan:
    fan = await _fan(self, *given)
    return fan if fan.put_off is None else replace(fan, put_off=None, skipped=fan.put_off)


def _drops(self: fanout.Rows, row: Mapping[str, Any]) -> None:
    raw = fanout._raw(row, "a row")
    unit = str(row.get(self._key or ""))
    self._each.setdefault(unit, fanout.Unit(unit, raw))


def _silent(self: fanout._Made, row: Row, reflex: Reflex, units: Any) -> None:
    _tasks(self, row, reflex, units)
    if not units:
        self.facts.pop()


def _resumes(*given: Any) -> Body[Any]:
    """One task a commit; the run moves on with the last."""

    def body() -> Any:
        turn = _fanning(*given)()
        last = yield from turn
        tasks: Any = next((write for write in last.writes if write.table is TASK), None)
        if tasks is None:
            return last
        run = tasks.rows[0][TASK.at["run"]]
        (before,) = yield (Query(TASK, where=(("run", "=", run),)),)
        known = {row[TASK.at["unit"]] for row in before}
        fresh = [row for row in tasks.rows if row[TASK.at["unit"]] not in known]
        if len(fresh) > 1:
            return Last((Append(TASK, fresh[:1], met="keep"),), replace(last.value, events=("one more",)))
        rest = tuple(write for write in last.writes if write.table is not TASK)
        return Last((*([Append(TASK, fresh)] if fresh else []), *rest), last.value)

    return body


# --- effects ------------------------------------------------------------------------------------------

_see_through, _record = Acting._see_through, Acting._record
_BUSY: dict[int, asyncio.Lock] = {}


async def _in_turn(effect: Effect, attempt: Any, given: Any) -> Any:
    async with _BUSY.setdefault(id(asyncio.get_running_loop()), asyncio.Lock()):
        return await effect.run(attempt, given)


async def _at_the_end(self: Any, *given: Any) -> None:
    await _see_through(self, *given)
    await self._write()


async def _lost(self: Any, some: Any) -> None:
    await _record(self, some)
    self._acts.unwritten.clear()


def _deaf(self: Driver) -> None:
    return None


def _twin(name: str, fault: str, seen_by: str, *parts: Part) -> BrokenEngine:
    return BrokenEngine(name, fault, tuple(seen_by.split()), parts)


BROKEN_ENGINES: tuple[BrokenEngine, ...] = (
    _twin("takes anything", "the union of facts is written down and not enforced",
          "test_intake.test_a_write_without_an_entity_is_refused_and_not_stored_for_nobody", (intake, "parse", _anything)),
    _twin("dedupes by the key alone", "two entities share their keys",
          "test_intake.test_another_entity_or_principal_or_no_key_is_another_fact", (intake, "taken", _by_key_alone)),
    _twin("matches on arrival", "a delayed fact meets the reflexes of the day it came",
          "test_match.test_a_fact_is_met_by_the_reflexes_of_its_day", (intake, "taken", _at_once)),
    _twin("release forgets", "a release clears the park and records nothing",
          "test_match.test_a_fact_too_deep_is_parked_and_a_release_lets_it_pass_once", (intake, "releasing", _forgets)),
    _twin("a pause freezes", "a disarmed reflex keeps its watermark where it was",
          "test_materialize.test_a_pause_is_a_pause", (materialize, "_plan", _frozen)),
    _twin("jumps over the cap", "the watermark goes to now, whatever was materialized",
          "test_materialize.test_a_full_call_stops_at_its_last_row_and_the_next_goes_on", (materialize, "_plan", _jumps)),
    _twin("latest of each chunk", "catchUp latest fires once for each call",
          "test_materialize.test_latest_runs_once_however_many_calls_it_takes",
          (materialize, "decided", _latest_of_the_chunk)),
    _twin("moves back", "the watermark is written without a look at what it was",
          "test_materialize.test_a_clock_that_goes_back_only_delays",
          (materialize, "due", _any_clock), (materialize, "_plan", _back)),
    _twin("pairs by entity", "a fact reaches the reflexes of every principal",
          "test_match.test_a_fact_reaches_its_own_principal_and_nobody_else", (match, "candidates", _by_subject)),
    _twin("fires for the past", "a reflex hears what came before its arming",
          "test_match.test_a_reflex_never_hears_what_came_before_its_arming", (match, "candidates", _retro)),
    _twin("overlap drops facts", "overlap is asked of every cause",
          "test_match.test_distinct_facts_are_never_dropped_as_repeats", (match, "_run", _overlapping)),
    _twin("marks for nobody", "without a reflex the backlog is marked delivered",
          "test_match.test_with_no_reflex_loaded_nothing_is_marked_delivered", (Advance, "run", _for_nobody)),
    _twin("a when crashes", "a `when` that raises ends the advance",
          "test_match.test_a_when_that_raises_is_no_match_and_is_told_of", (Advance, "why_not", _raises)),
    _twin("matches when behind", "an engine with an old set marks facts that newer reflexes never see",
          "test_match.test_an_engine_that_is_behind_marks_nothing_and_says_so "
          "test_match.test_a_set_loaded_while_an_engine_decides_is_noticed_before_it_writes",
          *((owner, "is_newest", _always) for owner in (watch, match, materialize))),
    _twin("every fault skips", "a database that is down for a minute destroys the run",
          "test_fanout.test_a_database_that_is_down_puts_a_run_off_and_loses_nothing", (Advance, "fan", _skips)),
    _twin("keeps its instant", "a run that was put off is due at once",
          "test_fanout.test_what_is_put_off_neither_spins_nor_is_asked_for_ever_less",
          (fanout, "AGAIN_FIRST_MS", 0)),
    _twin("drops duplicates", "of two rows with one key, one is dropped without a word",
          "test_fanout.test_two_rows_with_one_key_refuse_their_run", (fanout.Rows, "take", _drops)),
    _twin("silent when empty", "a run without units settles and tells nobody",
          "test_fanout.test_no_rows_settle_at_once_and_are_announced", (fanout._Made, "_tasks", _silent)),
    _twin("resumes a fan-out", "tasks are written as they come, and selected again after a cut",
          "test_fanout.test_tasks_are_of_one_selection_whatever_cuts_their_fan_out", (fanout, "fanning", _resumes)),
    _twin("one after another", "a batch that was claimed together runs in sequence",
          "test_acting.test_tasks_run_at_once_and_no_more_than_the_limit", (acting, "_run", _in_turn)),
    _twin("writes at the end", "an answer waits for the slowest of its batch",
          "test_acting.test_each_is_written_down_as_soon_as_it_ends",
          (Acting, "_land", lambda self, landing: self._waiting.append(landing)), (Acting, "_see_through", _at_the_end)),
    _twin("loses answers", "what the store could not take is forgotten, and done again",
          "test_acting.test_an_answer_that_could_not_be_written_is_written_later_and_not_asked_for_again",
          (Acting, "_record", _lost)),
    _twin("the beat does the work", "a fact wakes nobody",
          "test_driver.test_a_fact_wakes_it_and_its_whole_chain_is_done_before_it_sleeps", (Driver, "wake", _deaf)),
)  # fmt: skip
