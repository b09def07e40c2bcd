"""reflex.graph - what wakes what: triggers, what effects write, and runs that others wait for.

For: loops found before anything is armed, edges that nobody declared, and pictures of the whole for people.
Never: follows a fact to another principal; guesses what an effect writes; takes a delay for a guard, since a
definition does not show what `not_before` an effect will give.
Was wrong once: an edge for each writer and each watcher of an entity. A thousand of both were a million edges; an
entity stands between them now, and a graph has as many edges as definitions have words.

    reflex ─ writes ─→ entity ─ wakes ─→ reflex      the effect's `writes`
    reflex ─ is followed by ─→ reflex                `{"fact": {"run": …}}`: its settled run
    by hand, clock, signal                           nothing here wakes them

A loop without a `select` and a `when` on any reflex of it is refused: it never ends. One with a guard is told.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal, TypeAlias

from onefold.reflex.findings import few_findings, finding, listed
from onefold.reflex.loops import Graphed, loops, ring
from onefold.reflex.seams import Effect
from onefold.reflex.words import OnRun, OnWrite, Reflex
from onefold.terms.errors import Finding
from onefold.terms.ids import Principal, nearest
from onefold.terms.limits import MAX_FAULTS

Kind = Literal["writes", "wakes", "follows", "blind"]
Joint: TypeAlias = "tuple[str, Principal, str]"  # ("entity", principal, name), ("run", principal, reflex)

NAMES: Final = 2_000
"""Ids that a wrong one is compared with. It takes some 10 ms; a hundred thousand would take a second for each."""

STEPS: Final = 12
"""Reflexes told of one loop; a longer one is shown by its beginning."""


@dataclass(frozen=True, slots=True)
class Edge:
    """One arrow. writes: reflex to entity; wakes: entity to reflex; follows: reflex to one that hears of its settled
    run; blind: reflex to its effect, which does not say what it writes. None leads to another principal."""

    kind: Kind
    source: str
    target: str
    principal: Principal


class Graph:
    """The graph of one loaded set. `effects` None: nobody knows what they write, as when a file alone is checked."""

    def __init__(
        self,
        reflexes: Iterable[Reflex],
        effects: Mapping[str, Effect] | None,
        sources: Mapping[str, str] | None = None,
    ) -> None:
        """`sources`: where each definition came from, for the findings."""
        self.reflexes: Final = tuple(sorted(reflexes, key=lambda reflex: reflex.id))
        self._effects = effects
        self._sources = sources or {}
        self._by_id = {reflex.id: reflex for reflex in self.reflexes}

    def source(self, id: str) -> str:
        """Where a reflex's definition came from, "" where nobody said."""
        return self._sources.get(id, "")

    # --- arrows ---------------------------------------------------------------------------------------

    def writes(self, reflex: Reflex) -> Sequence[str] | None:
        """The entities its effect says it writes; None where nobody said."""
        effect = None if self._effects is None else self._effects.get(reflex.effect)
        return None if effect is None else effect.writes

    def is_blind(self, reflex: Reflex) -> bool:
        """Whether its effect is known and does not say what it writes."""
        return self._effects is not None and reflex.effect in self._effects and self.writes(reflex) is None

    @cached_property
    def edges(self) -> tuple[Edge, ...]:
        """Every arrow, in the order of the reflexes."""
        found: list[Edge] = []
        for reflex in self.reflexes:
            on = reflex.on
            if isinstance(on, OnWrite):
                found.append(Edge("wakes", on.entity, reflex.id, reflex.principal))
            elif isinstance(on, OnRun) and self._heard(on.reflex, reflex.principal):
                found.append(Edge("follows", on.reflex, reflex.id, reflex.principal))
            for entity in sorted(set(self.writes(reflex) or ())):
                found.append(Edge("writes", reflex.id, entity, reflex.principal))
            if self.is_blind(reflex):
                found.append(Edge("blind", reflex.id, reflex.effect, reflex.principal))
        return tuple(found)

    def _heard(self, id: str, principal: Principal) -> bool:
        other = self._by_id.get(id)
        return other is not None and other.principal == principal

    # --- findings -------------------------------------------------------------------------------------

    def findings(self) -> list[Finding]:
        """Loops, blind edges and runs that never come; what is refused stands first."""
        refused = [self._loop(found, guarded=False) for found in self._rings(guarded=False)]
        looped = [self._loop(found, guarded=True) for found in self._rings(guarded=True)]
        warned = [*few_findings(looped), *few_findings(list(self._unheard())), *self._blind()]
        return [*few_findings(refused), *warned]

    def _rings(self, *, guarded: bool) -> Iterator[list[Reflex]]:
        """One loop of each knot of the graph. Unguarded: of reflexes without a guard alone; guarded: through one."""
        kept = self.reflexes if guarded else [reflex for reflex in self.reflexes if not is_guarded(reflex)]
        graphed = self._graphed(kept)
        for knot in loops(graphed):
            through = [n for n in knot if n < len(kept) and is_guarded(kept[n]) is guarded]
            if through:
                yield [kept[n] for n in ring(graphed, set(knot), min(through)) if n < len(kept)]

    def _graphed(self, kept: Sequence[Reflex]) -> Graphed:
        """Numbers for reflexes, then for what stands between them, and whom each leads to."""
        numbers: dict[Joint, int] = {}
        graphed: Graphed = [[] for _ in kept]

        def number(joint: Joint) -> int:
            found = numbers.setdefault(joint, len(graphed))
            if found == len(graphed):
                graphed.append([])
            return found

        for n, reflex in enumerate(kept):
            if (joint := _watched(reflex)) is not None:
                graphed[number(joint)].append(n)
        for n, reflex in enumerate(kept):
            written = self.writes(reflex)
            if written is not None:
                graphed[n].append(number(("effect", reflex.principal, reflex.effect)))
            if (settled := numbers.get(("run", reflex.principal, reflex.id))) is not None:
                graphed[n].append(settled)
        for (kind, principal, name), n in list(numbers.items()):
            effect = self._effects.get(name) if kind == "effect" and self._effects is not None else None
            for entity in set(effect.writes or ()) if effect is not None else ():
                if (to := numbers.get(("entity", principal, entity))) is not None:
                    graphed[n].append(to)
        return graphed

    def _loop(self, ring: Sequence[Reflex], *, guarded: bool) -> Finding:
        told = " → ".join(self._step(reflex) for reflex in ring[:STEPS])
        told += f" → {len(ring) - STEPS} more → {ring[0].id}" if len(ring) > STEPS else f" → {ring[0].id}"
        first = ring[0]
        if guarded:
            guards = listed(reflex.id for reflex in ring if is_guarded(reflex))
            problem = f"these reflexes wake each other in a loop: {told}. It ends when the guard of {guards} lets nothing pass"
        else:
            problem = (
                f"these reflexes wake each other for ever: {told}. "
                'Give one of them a "when", or a "select" that asks whether work is left; a delay alone ends nothing'
            )
        return finding(self.source(first.id), first.id, "on", problem, warns=guarded)

    def _step(self, reflex: Reflex) -> str:
        """A reflex with what woke it."""
        joint = _watched(reflex)
        return (
            f"{reflex.id} (on {joint[2] if joint[0] == 'entity' else f'the run of {joint[2]}'})" if joint else reflex.id
        )

    def _unheard(self) -> Iterator[Finding]:
        """Triggers that nothing loaded can set off: runs of a reflex that is not here, or is another principal's."""
        ids, unknown = list(self._by_id)[:NAMES], 0
        for reflex in self.reflexes:
            if not isinstance(reflex.on, OnRun):
                continue
            other = self._by_id.get(reflex.on.reflex)
            if other is None:
                near = nearest(reflex.on.reflex, ids) if unknown < MAX_FAULTS else None  # the others are not told
                unknown += 1
                hint = f"; did you mean {near!r}?" if near else ""
                problem = f"no reflex {reflex.on.reflex!r} is loaded{hint}"
            elif other.principal != reflex.principal:
                problem = f"{other.id!r} runs as another principal, whose facts never reach this one"
            else:
                continue
            yield finding(self.source(reflex.id), reflex.id, "on.fact.run", f"{problem}, so it never fires", warns=True)

    def _blind(self) -> Iterator[Finding]:
        """One finding for each effect that does not say what it writes, however many name it."""
        by_effect: dict[str, list[Reflex]] = {}
        for reflex in self.reflexes:
            if self.is_blind(reflex):
                by_effect.setdefault(reflex.effect, []).append(reflex)
        for effect, users in sorted(by_effect.items()):
            others = f" (as in {listed(reflex.id for reflex in users[1:])})" if len(users) > 1 else ""
            problem = f"the effect {effect!r} does not say what it writes{others}: a loop through it is not seen. Give it writes=[...]"
            yield finding(self.source(users[0].id), users[0].id, "effect.name", problem, warns=True)

    # --- pictures -------------------------------------------------------------------------------------

    def dot(self) -> str:
        """The graph for Graphviz, a cluster for each principal."""
        from onefold.reflex.drawing import dot

        return dot(self)

    def text(self) -> str:
        """The graph in lines: each reflex with what wakes it, what it does, and whom that wakes."""
        from onefold.reflex.drawing import text

        return text(self)


def is_guarded(reflex: Reflex) -> bool:
    """Whether it may let something pass that woke it: it asks for rows, or looks at the fact."""
    return reflex.select is not None or reflex.when is not None


def _watched(reflex: Reflex) -> Joint | None:
    on = reflex.on
    if isinstance(on, OnWrite):
        return "entity", reflex.principal, on.entity
    return ("run", reflex.principal, on.reflex) if isinstance(on, OnRun) else None
