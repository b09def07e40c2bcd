"""reflex.load - the loaded set: how it reaches the store, where each reflex begins, and what an engine holds of it.

For: the transaction body of `load`, the set as a value with its indexes, the newest set read from the store.
Never: arms or disarms by a verb (enablement is what the definition says); moves a reflex that nobody touched.
Pure.
Was wrong once: a set in memory alone. Two processes that had loaded different files both matched, and each marked
the other's facts delivered.

    the set     row "" of `state`: its generation, raised when anything of the set changed
    in the set  a row whose `gen` is that number; one that left keeps its old number and rings no more
    armed       on entering the set, and when it becomes enabled: what came before is another world's
    watermark   a key of its clock. Entering, becoming enabled and another clock begin at `at`; all else leaves it
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, cast

from onefold.almanac import START, Key, Rule
from onefold.reflex.findings import finding
from onefold.reflex.grammar import parse
from onefold.reflex.tables import REFLEX_TEXT, STATE
from onefold.reflex.watch import SET
from onefold.reflex.words import OnClock, OnRun, OnSignal, OnWrite, Reflex
from onefold.store.contract import Answer, Append, Body, Cell, Last, Put, Query, Row, Verb, Write
from onefold.terms.codec import canonical, digest
from onefold.terms.codec import parse as read
from onefold.terms.errors import BadArguments, LoadRefused
from onefold.terms.ids import Principal, principal_text
from onefold.terms.instant import Instant

_UNSET: Final[Mapping[str, Cell]] = {
    "reflex": SET,
    "principal": "-",
    "version": "",
    "enabled": 0,
    "armed_at": 0,
    "gen": 0,
}
_NONE: Final[Row] = tuple(_UNSET.get(column) for column in STATE.at)
"""The set's row before anything was loaded."""

_VERSION, _ENABLED, _GEN = STATE.at["version"], STATE.at["enabled"], STATE.at["gen"]
_PRINCIPAL, _ARMED = STATE.at["principal"], STATE.at["armed_at"]
_MARK, _NEXT, _SWEPT = STATE.at["watermark"], STATE.at["next_at"], STATE.at["swept_at"]
_VERSION_OF_TEXT, _BODY = REFLEX_TEXT.at["version"], REFLEX_TEXT.at["body"]


# --- what an engine holds ------------------------------------------------------------------------------


class LoadedSet:
    """The reflexes of one generation, found without looking through them."""

    def __init__(self, reflexes: Iterable[Reflex], generation: int) -> None:
        self.generation: Final = generation
        self.by_id: Final[Mapping[str, Reflex]] = {r.id: r for r in sorted(reflexes, key=lambda reflex: reflex.id)}
        self._versions = {reflex.version: reflex for reflex in self.by_id.values()}
        watching: dict[tuple[str, str, Principal], list[Reflex]] = {}
        for reflex in self.by_id.values():
            if reflex.enabled and (watched := _watched(reflex)) is not None:
                watching.setdefault((*watched, reflex.principal), []).append(reflex)
        self._watching = {key: tuple(found) for key, found in watching.items()}

    def watching(self, kind: str, subject: str, principal: Principal, /) -> Sequence[Reflex]:
        """Who hears a fact of this kind, subject and principal, by id. A manual one reaches the reflex it is aimed at,
        armed or not; all others only what is enabled. A write's `op` is left to the caller."""
        if kind == "manual":
            aimed = self.by_id.get(subject)
            return (aimed,) if aimed is not None and aimed.principal == principal else ()
        return self._watching.get((kind, subject, principal), ())

    def definition(self, version: str, /) -> Reflex | None:
        """The loaded reflex of this version; None where the store must be asked."""
        return self._versions.get(version)

    @property
    def armed(self) -> tuple[str, ...]:
        """The ids that are enabled."""
        return tuple(id for id, reflex in self.by_id.items() if reflex.enabled)


def _watched(reflex: Reflex) -> tuple[str, str] | None:
    on = reflex.on
    if isinstance(on, OnWrite):
        return "write", on.entity
    if isinstance(on, OnSignal):
        return "signal", on.name
    return ("run", on.reflex) if isinstance(on, OnRun) else None


# --- into the store ------------------------------------------------------------------------------------


def loading(reflexes: Iterable[Reflex], at: Instant) -> Body[int]:
    """Make these the set, from `at` on. Gives the set's generation: the old one when nothing of it changed."""
    coming = {reflex.id: reflex for reflex in sorted(reflexes, key=lambda reflex: reflex.id)}

    def body() -> Generator[tuple[Verb, ...], tuple[Answer, ...], Last[int]]:
        # The set's row first, as everybody locks it, in a question of its own: another asked together with it would
        # not see the rows that whoever held the lock has added. Then all others, since who left must be found too.
        first = Query(STATE, on=STATE.key, keys=[(SET,)], lock="update")
        _, _, rows = yield Append(STATE, [_NONE]), first, Query(STATE, order=("reflex",), lock="update")
        old = {cast("str", row[0]): row for row in rows}
        whole = old.pop(SET)
        generation = cast("int", whole[_GEN])
        edited = {old[id][_VERSION] for id, r in coming.items() if id in old and old[id][_VERSION] != r.version}
        clauses = yield from _clauses(cast("set[str]", edited))
        kept = {id: row for id, row in old.items() if row[_GEN] == generation}
        left = [_left(row) for id, row in kept.items() if id not in coming]
        same = not left and all(id in kept and kept[id][:_ARMED] == _known(reflex) for id, reflex in coming.items())
        generation += not same
        states = [_state(old.get(id), kept.get(id), r, clauses, at, generation) for id, r in coming.items()]
        moved = [state for state in (*states, *left) if old.get(cast("str", state[0])) != state]
        writes: list[Write] = []
        if not same:
            told = {row[_VERSION] for row in kept.values()}
            texts = {r.version: canonical(r.definition, parsed=True) for r in coming.values() if r.version not in told}
            writes += [Append(REFLEX_TEXT, list(texts.items()), met="keep")] if texts else []
            moved.append((*whole[:_GEN], generation, *whole[_GEN + 1 :]))
        writes += [Put(STATE, moved)] if moved else []
        return Last(tuple(writes), generation)

    return body


def _clauses(versions: Iterable[str]) -> Generator[tuple[Verb, ...], tuple[Answer, ...], Mapping[str, bytes]]:
    """The clock clauses of stored definitions, in their one form; b"" for other triggers."""
    keys = [(version,) for version in sorted(versions)]
    if not keys:
        return {}
    (rows,) = yield (Query(REFLEX_TEXT, on=REFLEX_TEXT.key, keys=keys),)
    found = {}
    for row in rows:
        on = read(cast("bytes", row[_BODY])).get("on", {})
        found[cast("str", row[_VERSION_OF_TEXT])] = canonical(on["clock"]) if "clock" in on else b""
    return found


def _known(reflex: Reflex) -> Row:
    """What its row says of itself: the columns before `armed_at`. Where they changed, the set did."""
    return reflex.id, principal_text(reflex.principal), reflex.version, int(reflex.enabled)


def _left(row: Row) -> Row:
    """A row whose reflex is in the set no more: it keeps its generation, and rings never again."""
    return (*row[:_NEXT], None, *row[_NEXT + 1 :])


def _state(
    before: Row | None, kept: Row | None, reflex: Reflex, clauses: Mapping[str, bytes], at: Instant, generation: int
) -> Row:
    """Its row. `before`: what the store has of it; `kept`: the same, if it is in the set."""
    known = _known(reflex)
    armed, mark, next_at = at, None, None
    goes_on = kept is not None and kept[_PRINCIPAL] == known[_PRINCIPAL] and bool(kept[_ENABLED] or not reflex.enabled)
    if kept is not None and goes_on:
        armed = Instant(cast("int", kept[_ARMED]))
    if isinstance(reflex.on, OnClock):
        rule = reflex.on.rule
        if before is not None and _same_clock(before, reflex, clauses):
            mark = cast("Key | None", before[_MARK])
        if mark is None or not goes_on:
            mark = _baseline(rule, mark, at)
        coming = rule.next(mark)
        next_at = None if coming is None else coming.at
    return *known, armed, mark, next_at, generation, None if before is None else before[_SWEPT]


def _same_clock(before: Row, reflex: Reflex, clauses: Mapping[str, bytes]) -> bool:
    version = cast("str", before[_VERSION])
    return version == reflex.version or clauses.get(version) == _clause(reflex)


def _clause(reflex: Reflex) -> bytes:
    return canonical(dict(reflex.on.clause)) if isinstance(reflex.on, OnClock) else b""


def _baseline(rule: Rule, mark: Key | None, at: Instant) -> Key:
    """The newest key at `at`; the one it has where that is later, since a watermark never goes back."""
    last = rule.latest(at)
    if mark and (last is None or rule.plan(mark).at > last.at):
        return mark
    return START if last is None else last.key


# --- and back ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Stored:
    """The newest set as its rows say it: a definition's bytes, and whether it is enabled."""

    generation: int
    texts: Sequence[tuple[str, bytes, bool]]

    def loaded(self) -> LoadedSet:
        """The set to hold. Raises: LoadRefused where it was written by code that knows more than this does."""
        return LoadedSet((reflex_of(version, body, enabled) for version, body, enabled in self.texts), self.generation)


def reloading() -> Generator[tuple[Verb, ...], tuple[Answer, ...], Last[Stored]]:
    """A body that writes nothing and gives the newest set, for an engine that learned that it is behind."""
    (rows,) = yield (Query(STATE, on=STATE.key, keys=[(SET,)], lock="share"),)
    generation = cast("int", rows[0][_GEN]) if rows else 0
    (states,) = yield (Query(STATE, where=(("gen", "=", generation), ("reflex", "!=", SET)), order=("reflex",)),)
    versions = sorted({cast("str", row[_VERSION]) for row in states})
    (texts,) = yield (texts_of(versions),)
    bodies = {row[_VERSION_OF_TEXT]: cast("bytes", row[_BODY]) for row in texts}
    found = [(cast("str", row[_VERSION]), bodies.get(row[_VERSION], b""), bool(row[_ENABLED])) for row in states]
    return Last((), Stored(generation, found))


def texts_of(versions: Iterable[str]) -> Query:
    """The stored definitions of these versions: rows for `reflex_of`."""
    return Query(REFLEX_TEXT, on=REFLEX_TEXT.key, keys=[(version,) for version in versions])


def reflex_of(version: str, body: bytes, enabled: bool = True) -> Reflex:
    """The reflex of a stored definition. Raises: LoadRefused where it is damaged, or newer than this code."""
    where = f"the stored definition {version[:12]}"
    if digest(body).hex() != version:
        raise LoadRefused([finding(where, "", "", "is missing or damaged; load the definitions again")])
    try:
        definition = read(body)
    except BadArguments as bad:  # its hash is right, so other code took more for JSON than this does
        raise LoadRefused([finding(where, "", fault.field, fault.problem) for fault in bad.faults]) from None
    return parse({**definition, "enabled": enabled}, where)
