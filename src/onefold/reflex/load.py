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
from onefold.reflex.words import FactKind, OnClock, OnRun, OnSignal, OnWrite, Reflex
from onefold.store.contract import Answer, Append, Body, Last, Put, Query, Row, Verb, Write
from onefold.terms.codec import canonical, digest
from onefold.terms.codec import parse as read
from onefold.terms.errors import BadArguments, LoadRefused
from onefold.terms.ids import Principal, principal_text
from onefold.terms.instant import Instant

SET: Final = ""
"""The row of `state` that stands for the set itself."""

_NONE: Final[Row] = (SET, "-", "", 0, 0, None, None, 0)
_VERSION, _ENABLED, _GEN = STATE.at["version"], STATE.at["enabled"], STATE.at["gen"]
_PRINCIPAL, _ARMED, _MARK, _NEXT = (
    STATE.at["principal"],
    STATE.at["armed_at"],
    STATE.at["watermark"],
    STATE.at["next_at"],
)
_VERSION_OF_TEXT, _BODY = REFLEX_TEXT.at["version"], REFLEX_TEXT.at["body"]


# --- what an engine holds ------------------------------------------------------------------------------


class LoadedSet:
    """The reflexes of one generation, found without looking through them."""

    def __init__(self, reflexes: Iterable[Reflex], generation: int) -> None:
        self.generation: Final = generation
        self.by_id: Final[Mapping[str, Reflex]] = {r.id: r for r in sorted(reflexes, key=lambda reflex: reflex.id)}
        self._versions = {reflex.version: reflex for reflex in self.by_id.values()}
        watching: dict[tuple[FactKind, str, Principal], list[Reflex]] = {}
        for reflex in self.by_id.values():
            if reflex.enabled and (watched := _watched(reflex)) is not None:
                watching.setdefault((*watched, reflex.principal), []).append(reflex)
        self._watching = {key: tuple(found) for key, found in watching.items()}

    def watching(self, kind: FactKind, subject: str, principal: Principal, /) -> Sequence[Reflex]:
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


def _watched(reflex: Reflex) -> tuple[FactKind, str] | None:
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
        # The set's row first, as everybody locks it; then all others, since who left must be found too.
        _, rows = yield Append(STATE, [_NONE]), Query(STATE, order=("reflex",), lock="update")
        old = {cast("str", row[0]): row for row in rows}
        generation = cast("int", old.pop(SET)[_GEN])
        edited = [id for id, reflex in coming.items() if _edited(old.get(id), reflex, generation)]
        clauses = yield from _clauses({cast("str", old[id][_VERSION]) for id in edited})
        left = [row for id, row in old.items() if row[_GEN] == generation and generation and id not in coming]
        states: list[Row] = []
        changed = bool(left)
        for id, reflex in coming.items():
            before = old.get(id)
            state = _state(before, reflex, generation, clauses, at)
            changed |= before is None or before[:_ARMED] != state[:_ARMED] or before[_GEN] != generation
            states.append(state)
        if changed:
            generation += 1
        states = [(*state[:_GEN], generation) for state in states]
        writes: list[Write] = []
        if changed:
            met = {row[_VERSION] for row in rows}
            texts = [(r.version, canonical(r.definition, parsed=True)) for r in coming.values() if r.version not in met]
            writes += [Append(REFLEX_TEXT, list(dict(texts).items()), met="keep")] if texts else []
            states += [(*row[:_NEXT], None, row[_GEN]) for row in left]
            states.append((*_NONE[:_GEN], generation))
        moved = [state for state in states if old.get(cast("str", state[0])) != state]
        writes += [Put(STATE, moved)] if moved else []
        return Last(tuple(writes), generation)

    return body


def _edited(row: Row | None, reflex: Reflex, generation: int) -> bool:
    """Whether it stays in the set under another version, so that its old clock is asked for."""
    return row is not None and row[_GEN] == generation and row[_VERSION] != reflex.version


def _clauses(versions: Iterable[str]) -> Generator[tuple[Verb, ...], tuple[Answer, ...], Mapping[str, bytes]]:
    """The clock clauses of stored definitions, in their one form; b"" for other triggers."""
    keys = [(version,) for version in sorted(versions)]
    if not keys:
        return {}
    (rows,) = yield (Query(REFLEX_TEXT, keys=keys),)
    found = {}
    for row in rows:
        on = read(cast("bytes", row[_BODY])).get("on", {})
        found[cast("str", row[_VERSION_OF_TEXT])] = canonical(on["clock"]) if "clock" in on else b""
    return found


def _state(before: Row | None, reflex: Reflex, generation: int, clauses: Mapping[str, bytes], at: Instant) -> Row:
    """Its row, but for the generation."""
    principal = principal_text(reflex.principal)
    fresh = before is None or before[_GEN] != generation or before[_PRINCIPAL] != principal
    armed, mark = at, None
    if before is not None and not fresh and (before[_ENABLED] or not reflex.enabled):
        armed = Instant(cast("int", before[_ARMED]))
        same = before[_VERSION] == reflex.version or clauses.get(cast("str", before[_VERSION])) == _clause(reflex)
        mark = cast("Key | None", before[_MARK]) if same else None
    next_at: Instant | None = None
    if isinstance(reflex.on, OnClock):
        mark, next_at = _clock(reflex.on.rule, mark, at)
    else:
        mark = None
    return reflex.id, principal, reflex.version, int(reflex.enabled), armed, mark, next_at, generation


def _clause(reflex: Reflex) -> bytes:
    return canonical(dict(reflex.on.clause)) if isinstance(reflex.on, OnClock) else b""


def _clock(rule: Rule, mark: Key | None, at: Instant) -> tuple[Key, Instant | None]:
    """The watermark, the one it has or that of `at`, and when its next key falls under the zone data of now."""
    if mark is None:
        last = rule.latest(at)
        mark = START if last is None else last.key
    coming = rule.next(mark)
    return mark, None if coming is None else coming.at


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
    (rows,) = yield (Query(STATE, keys=[(SET,)], lock="share"),)
    generation = cast("int", rows[0][_GEN]) if rows else 0
    (states,) = yield (Query(STATE, where=(("gen", "=", generation), ("reflex", "!=", SET)), order=("reflex",)),)
    versions = sorted({cast("str", row[_VERSION]) for row in states})
    (texts,) = yield (texts_of(versions),)
    bodies = {row[_VERSION_OF_TEXT]: cast("bytes", row[_BODY]) for row in texts}
    found = [(cast("str", row[_VERSION]), bodies.get(row[_VERSION], b""), bool(row[_ENABLED])) for row in states]
    return Last((), Stored(generation, found))


def texts_of(versions: Iterable[str]) -> Query:
    """The stored definitions of these versions: rows for `reflex_of`."""
    return Query(REFLEX_TEXT, keys=[(version,) for version in versions])


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
