"""testing.broken.reflex_sets - loading, grammar and graph of reflexes with one fault each, so that their tests prove teeth.

For: `Sets`, the sound ones as a scenario calls them; `BROKEN_SETS`, every twin by name.
Never: is broken in two places. Each is a design that somebody has shipped, or nearly.
Was wrong once: a twin made by copying what it breaks. The copy fell behind, and was broken in a place nobody meant.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, cast

from onefold.reflex.findings import finding
from onefold.reflex.grammar import parse, version_of
from onefold.reflex.graph import Graph
from onefold.reflex.load import LoadedSet, loading
from onefold.reflex.seams import Effect
from onefold.reflex.tables import STATE
from onefold.reflex.watch import SET
from onefold.reflex.words import Json, OnClock, OnRun, Reflex
from onefold.store.contract import Answer, Body, Last, Put, Query, Row, Verb
from onefold.terms.codec import digest
from onefold.terms.errors import Finding
from onefold.terms.instant import Instant

Alter: TypeAlias = "Callable[[Row | None, Row, Instant], Row]"
"""What becomes of a row of `state` before it is written: the row before it, the sound one, the instant of the load."""


class Sets:
    """The sound ones, as a scenario calls them."""

    def parse(self, definition: Json) -> Reflex:
        return parse(definition)

    def loading(self, reflexes: Iterable[Reflex], at: Instant) -> Body[int]:
        return loading(reflexes, at)

    def held(self, reflexes: Iterable[Reflex], generation: int) -> LoadedSet:
        return LoadedSet(reflexes, generation)

    def findings(self, reflexes: Sequence[Reflex], effects: Mapping[str, Effect]) -> list[Finding]:
        return Graph(reflexes, effects).findings()


# --- loads -----------------------------------------------------------------------------------------------


class _Load(Sets):
    """Loads as the sound one does, but for what becomes of each row."""

    def __init__(self, alter: Alter) -> None:
        self._alter = alter

    def loading(self, reflexes: Iterable[Reflex], at: Instant) -> Body[int]:
        sound = loading(reflexes, at)

        def body() -> Generator[tuple[Verb, ...], tuple[Answer, ...], Last[int]]:
            inner, answers, before = sound(), cast("Any", None), dict[Any, Row]()
            while True:
                try:
                    asked = inner.send(answers)
                except StopIteration as end:
                    return self._altered(end.value, before, at)
                answers = yield asked
                for verb, answer in zip(asked, answers, strict=True):
                    if isinstance(verb, Query) and verb.table is STATE:
                        before |= {row[0]: row for row in answer}

        return body

    def _altered(self, last: Last[int], before: Mapping[Any, Row], at: Instant) -> Last[int]:
        writes = [
            Put(STATE, [self._alter(before.get(row[0]), row, at) for row in write.rows])
            if isinstance(write, Put)
            else write
            for write in last.writes
        ]
        rows = [row for write in writes if isinstance(write, Put) for row in write.rows if row[0] == SET]
        return Last(tuple(writes), cast("int", rows[0][STATE.at["gen"]]) if rows else last.value)


def _with(row: Row, **cells: Any) -> Row:
    return tuple(cells.get(name, cell) for name, cell in zip(STATE.at, row, strict=True))


def _cell(row: Row, name: str) -> Any:
    return row[STATE.at[name]]


def _frozen_pause(before: Row | None, row: Row, at: Instant) -> Row:
    """A pause froze the watermark: what was missed meanwhile all came at once on the way back."""
    paused = before is not None and not _cell(before, "enabled") and before[0] != SET
    if before is None or not paused:
        return row
    return _with(row, watermark=_cell(before, "watermark"), next_at=_cell(before, "next_at"))


def _sticky_switch(before: Row | None, row: Row, at: Instant) -> Row:
    """The switch was the engine's own: what the host's definition said of it came second."""
    return row if before is None else _with(row, enabled=_cell(before, "enabled"))


def _no_generation(before: Row | None, row: Row, at: Instant) -> Row:
    """Sets have no number: an engine that holds an older one goes on matching."""
    return _with(row, gen=1)


def _rearmed(before: Row | None, row: Row, at: Instant) -> Row:
    """Each load arms anew: what arrived between two of them was never heard."""
    return _with(row, armed_at=at)


def _old_clock(before: Row | None, row: Row, at: Instant) -> Row:
    """An edit keeps the watermark, also of another clock."""
    if before is None or _cell(before, "watermark") is None or _cell(row, "watermark") is None:
        return row
    return _with(row, watermark=_cell(before, "watermark"), next_at=_cell(before, "next_at"))


def _still_rings(before: Row | None, row: Row, at: Instant) -> Row:
    """Who left the set keeps its clock."""
    left = before is not None and _cell(before, "gen") == _cell(row, "gen")
    return _with(row, next_at=_cell(before, "next_at")) if before is not None and left else row


def _old_data(before: Row | None, row: Row, at: Instant) -> Row:
    """The watermark is an instant: where new zone data moves a key, the old instant stands."""
    kept = before is not None and _cell(before, "watermark") == _cell(row, "watermark")
    return _with(row, next_at=_cell(before, "next_at")) if before is not None and kept else row


class _Backward(Sets):
    """The watermark is written as the loader's clock has it, and may go back."""

    def loading(self, reflexes: Iterable[Reflex], at: Instant) -> Body[int]:
        by_id = {reflex.id: reflex for reflex in reflexes}

        def alter(before: Row | None, row: Row, at: Instant) -> Row:
            reflex = by_id.get(str(row[0]))
            last = reflex.on.rule.latest(at) if reflex is not None and isinstance(reflex.on, OnClock) else None
            return row if last is None else _with(row, watermark=last.key)

        return _Load(alter).loading(by_id.values(), at)


# --- the set, the grammar, the graph ---------------------------------------------------------------------


class _ByEntity(Sets):
    """Facts and reflexes are paired by entity alone: one tenant's row woke another's reflex."""

    def held(self, reflexes: Iterable[Reflex], generation: int) -> LoadedSet:
        class Leaky(LoadedSet):
            def watching(self, kind: str, subject: str, principal: Any, /) -> Sequence[Reflex]:
                every = {reflex.principal for reflex in self.by_id.values()}
                return [reflex for who in every for reflex in super(Leaky, self).watching(kind, subject, who)]

        return Leaky(reflexes, generation)


class _Lenient(Sets):
    """An unknown word is passed over."""

    def parse(self, definition: Json) -> Reflex:
        known = {"retry", "timeoutMs", "overlap", "catchUp", "order", "lateMs"}
        policy = {word: item for word, item in definition.get("policy", {}).items() if word in known}
        return parse({**definition, **({"policy": policy} if "policy" in definition else {})})


class _WhenAnywhere(Sets):
    """A `when` on a clock is taken, and never looked at."""

    def parse(self, definition: Json) -> Reflex:
        return parse({word: item for word, item in definition.items() if word != "when"})


class _Hashed(Sets):
    """The version is a hash of something else."""

    def __init__(self, version: Callable[[Mapping[str, Json]], str]) -> None:
        self._version = version

    def parse(self, definition: Json) -> Reflex:
        return replace(parse(definition), version=self._version(definition))


def _of_all(definition: Mapping[str, Json]) -> str:
    return version_of({"on": {}, "all": dict(definition)})


def _without_params(definition: Mapping[str, Json]) -> str:
    return version_of({word: item for word, item in definition.items() if word != "params"})


def _as_written(definition: Mapping[str, Json]) -> str:
    return digest(repr(definition).encode()).hex()


class _NoRuns(Sets):
    """The graph knows what effects write, and not who waits for whose run."""

    def findings(self, reflexes: Sequence[Reflex], effects: Mapping[str, Effect]) -> list[Finding]:
        return Graph([reflex for reflex in reflexes if not isinstance(reflex.on, OnRun)], effects).findings()


class _Banned(Sets):
    """Every loop is refused, also those that end."""

    def findings(self, reflexes: Sequence[Reflex], effects: Mapping[str, Effect]) -> list[Finding]:
        return [finding("", "", "", found.problem) for found in Graph(reflexes, effects).findings()]


class _AnyGuard(Sets):
    """One guard in a knot of loops excuses all of them."""

    def findings(self, reflexes: Sequence[Reflex], effects: Mapping[str, Effect]) -> list[Finding]:
        found = Graph(reflexes, effects).findings()
        guarded = any(item.level == "warning" for item in found)
        return [item for item in found if item.level == "warning"] if guarded else found


class _Crossing(Sets):
    """The graph leads over principals, and refuses what never meets."""

    def findings(self, reflexes: Sequence[Reflex], effects: Mapping[str, Effect]) -> list[Finding]:
        return Graph([replace(reflex, principal=None) for reflex in reflexes], effects).findings()


class _Silent(Sets):
    """An effect that does not say what it writes is trusted."""

    def findings(self, reflexes: Sequence[Reflex], effects: Mapping[str, Effect]) -> list[Finding]:
        known = {name: effect for name, effect in effects.items() if effect.writes is not None}
        return Graph(reflexes, known).findings()


@dataclass(frozen=True, slots=True)
class BrokenSets:
    """A twin, and the scenario that must fall over it. Its fault stands in its docstring."""

    name: str
    make: Callable[[], Sets]
    caught_by: str


BROKEN_SETS: tuple[BrokenSets, ...] = (
    BrokenSets("a pause freezes the clock", lambda: _Load(_frozen_pause), "a_pause_is_a_pause"),
    BrokenSets("the switch is the engine's", lambda: _Load(_sticky_switch), "enablement_is_what_the_definition_says"),
    BrokenSets("sets have no number", lambda: _Load(_no_generation), "an_older_set_is_known_as_older"),
    BrokenSets("each load arms anew", lambda: _Load(_rearmed), "an_unchanged_reload_keeps_everything"),
    BrokenSets("another clock keeps the mark", lambda: _Load(_old_clock), "another_clock_begins_at_the_load"),
    BrokenSets("who left still rings", lambda: _Load(_still_rings), "who_left_the_set_rings_no_more"),
    BrokenSets("the mark is an instant", lambda: _Load(_old_data), "the_key_stands_and_its_instant_is_todays"),
    BrokenSets("the mark goes back", _Backward, "a_watermark_never_goes_back"),
    BrokenSets("paired by entity", _ByEntity, "no_fact_crosses_a_principal"),
    BrokenSets("unknown words pass", _Lenient, "an_unknown_word_is_refused"),
    BrokenSets("a clock may have a when", _WhenAnywhere, "a_when_goes_with_a_fact"),
    BrokenSets("the version counts enabled", lambda: _Hashed(_of_all), "flipping_the_switch_is_no_edit"),
    BrokenSets("the version leaves out params", lambda: _Hashed(_without_params), "a_knob_is_an_edit"),
    BrokenSets("the version is of the text", lambda: _Hashed(_as_written), "order_is_no_edit"),
    BrokenSets("runs close no loop", _NoRuns, "a_loop_through_a_run_is_refused"),
    BrokenSets("loops are banned", _Banned, "a_guarded_loop_is_told_and_loaded"),
    BrokenSets("one guard excuses all", _AnyGuard, "each_loop_needs_a_guard_of_its_own"),
    BrokenSets("the graph crosses", _Crossing, "the_graph_stays_within_a_principal"),
    BrokenSets("silence is trusted", _Silent, "a_blind_edge_is_named"),
)

__all__ = ["BROKEN_SETS", "BrokenSets", "Sets"]
