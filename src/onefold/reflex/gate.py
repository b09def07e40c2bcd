"""reflex.gate - definitions become a set that may be loaded, or a refusal that names everything wrong with all of them.

For: the one check of `load`, `draft`, `check` and the HTTP door: grammar, ids, names of effects and selections, names
in templates, the graph.
Never: reads a file, a clock or the store; arms anything.
Was wrong once: a check of its own for the file on the disk. What it had passed was refused at the start.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeAlias, runtime_checkable

from onefold.reflex.difference import changes
from onefold.reflex.findings import ReflexFinding, few_findings, finding, meant, refuse
from onefold.reflex.grammar import anchored, examined, parse
from onefold.reflex.graph import Graph
from onefold.reflex.seams import ROOTS, Effect, Select, Transform
from onefold.reflex.words import Draft, Json, OnClock, OnWrite, Reflex
from onefold.terms.errors import BadArguments, Fault, Finding, LoadRefused
from onefold.terms.ids import Principal
from onefold.terms.instant import Instant, text
from onefold.terms.limits import MAX_FAULTS

FreeNames: TypeAlias = "Callable[[Json, str, Sequence[str]], Iterable[Finding]]"
"""What is wrong with a template: the template, the path that stands before each `where`, the names it may use."""

Placed: TypeAlias = "tuple[Json, str]"
"""A definition, and where it came from: `billing.json[2]`."""

MAX_REFLEXES: Final = 200_000
"""Loaded at once. Each takes some 5 KB of memory and 0.1 ms to read; twice what was measured."""

ENOUGH: Final = 2 * MAX_FAULTS
"""Faults after which no further definition is looked at: a list of a million zeros is answered at once."""


@dataclass(frozen=True, slots=True)
class Known:
    """What definitions may name. None: nobody knows, so it is not checked, as when a file alone is looked at.

    effects: by name. selects: names of queries, where a query is `{"name": …}`. queries: what is wrong with a query,
    told the path that stands before each `where`, and whose reflex it is; it says more than `selects`. free_names: see
    `FreeNames`; None where templates are not ours to read.
    """

    effects: Mapping[str, Effect] | None = None
    selects: Collection[str] | None = None
    free_names: FreeNames | None = None
    queries: Callable[[Json, str, Principal], Iterable[Finding]] | None = None


NOTHING: Final = Known()
"""Grammar and graph alone."""


@runtime_checkable
class Finds(Protocol):
    """A transform that can say what is wrong with a template before it runs."""

    def findings(self, template: Json, path: str, known: Sequence[str], /) -> Iterable[Finding]: ...


@runtime_checkable
class Names(Protocol):
    """A select that goes by names."""

    @property
    def names(self) -> Collection[str]: ...


@runtime_checkable
class Asks(Protocol):
    """A select that can say what is wrong with a query before it is asked."""

    def findings(self, query: Json, path: str, principal: Principal, /) -> Iterable[Finding]: ...


def known_to(effects: Mapping[str, Effect], select: Select | None, transform: Transform) -> Known:
    """What an engine with these parts lets definitions name. A bare function for a part says nothing about it."""
    names: Collection[str] | None = () if select is None else None
    queries = None
    part: object = select
    if isinstance(part, Names):
        names = part.names
    if isinstance(part, Asks):
        queries = part.findings
    return Known(effects, names, transform.findings if isinstance(transform, Finds) else None, queries)


@dataclass(frozen=True, slots=True)
class Admitted:
    """A set without a fault, in the order of its ids, and what was seen and let pass."""

    reflexes: tuple[Reflex, ...]
    findings: tuple[Finding, ...]
    graph: Graph = field(compare=False)


def admit(definitions: Iterable[Placed], known: Known = NOTHING, at: Instant | None = None) -> Admitted:
    """The set that these definitions state. `at`: when it is to be loaded, for what would then never fire.

    Raises: LoadRefused with everything wrong in all of them.
    """
    found = look(definitions, known, at)
    refuse(found.findings)
    return found


def look(definitions: Iterable[Placed], known: Known = NOTHING, at: Instant | None = None) -> Admitted:
    """As `admit`, with what would be refused among the findings, and without the reflexes that cannot be read."""
    found: list[Finding] = []
    refused = 0
    read: dict[str, Reflex] = {}
    sources: dict[str, str] = {}
    for n, (definition, source) in enumerate(definitions):
        if refused > ENOUGH:
            break
        if n == MAX_REFLEXES:
            problem = f"there are more than {MAX_REFLEXES} definitions; load what one engine can hold"
            found.append(finding("", "", "", problem))
            break
        reflex, wrong = examined(definition, source)
        more = [] if reflex is None else named(reflex, source, known, wrong)
        found.extend((*wrong, *more))
        refused += len(wrong) + sum(item.level == "refused" for item in more)
        if reflex is None or wrong:
            continue
        if reflex.id in read:
            first = sources[reflex.id]
            where = f", in {first}" if first and first != source else ""
            found.append(finding(source, reflex.id, "id", f"another definition has this id{where}; ids are unique"))
            continue
        read[reflex.id], sources[reflex.id] = reflex, source
    warned = [item for id, reflex in read.items() if at is not None for item in _late(reflex, sources[id], at)]
    graph = Graph(read.values(), known.effects, sources)
    wrong = [item for item in found if item.level == "refused"]
    warned = [*(item for item in found if item.level != "refused"), *warned]
    return Admitted(graph.reflexes, (*wrong, *graph.findings(), *few_findings(warned)), graph)


def drafted(definition: Json, known: Known, at: Instant, beside: Iterable[Reflex] = ()) -> Draft:
    """A draft as it would be saved, its timer anchored, with all that is wrong with it and with what it would join.
    Arms nothing, raises nothing. `beside`: the loaded reflexes that its writer may see."""
    try:
        saved = anchored(definition, at)
    except LoadRefused as refused:
        return Draft(definition, refused.findings)
    reflex, wrong = examined(saved)
    if reflex is None:
        return Draft(saved, tuple(few_findings(wrong)))
    found = [*wrong, *named(reflex, "", known, wrong)]
    if wrong:
        return Draft(saved, tuple(few_findings(found)))
    own = [other for other in beside if other.principal == reflex.principal]
    others = [other for other in own if other.id != reflex.id]
    before = {str(item) for item in Graph(others, known.effects).findings()}
    joined = Graph([*others, reflex], known.effects).findings()
    found += [*_late(reflex, "", at), *(item for item in joined if str(item) not in before)]
    changed = [
        change for other in own if other.id == reflex.id for change in changes(other.definition, reflex.definition)
    ]
    return Draft(saved, tuple(few_findings(found)), tuple(map(str, changed)))


def read_draft(definition: Json, known: Known, principal: Principal, at: Instant) -> Reflex:
    """A draft as the reflex it would be, for `principal`. Raises: LoadRefused with what is wrong with it; BadArguments
    where it would act as somebody else."""
    draft = drafted(definition, known, at)
    refuse(draft.findings)
    reflex = parse(draft.definition)
    if reflex.principal != principal:
        raise BadArguments([Fault("as", "is another principal; a draft is tried as its own", reflex.principal)])
    return reflex


def named(reflex: Reflex, source: str, known: Known, wrong: Sequence[Finding] = ()) -> list[Finding]:
    """Names in a definition that nothing here has: its effect, its query, and those within its templates. `wrong`: what
    was found before; of a clause that could not be read, nothing more is said."""
    unread = {item.path.split(".")[0] for item in wrong if isinstance(item, ReflexFinding)}
    found: list[Finding] = []
    if known.effects is not None and "effect" not in unread and reflex.effect not in known.effects:
        problem = f"there is no effect {reflex.effect!r}{meant(reflex.effect, known.effects)}"
        found.append(finding(source, reflex.id, "effect.name", problem))
    query = None if reflex.select is None else reflex.select.query
    if query is not None and "select" not in unread and known.queries is not None:
        found.extend(_taken(item, source, reflex) for item in known.queries(query, "select.query", reflex.principal))
    elif query is not None and "select" not in unread and known.selects is not None:
        found.extend(_asked(reflex, query, source, known.selects))
    if known.free_names is None:
        return found
    for path, template in (("select.query", query), ("when", reflex.when), ("effect.input", reflex.input)):
        if template is not None:
            names = ROOTS if unread & {"on", "select"} else roots(reflex, path)
            for item in known.free_names(template, path, names):
                found.append(_taken(item, source, reflex, rule="template"))
    return found


def _taken(item: Finding, source: str, reflex: Reflex, rule: str = "reflex") -> Finding:
    """A finding of a part, whose `where` is the place in the definition."""
    return finding(source, reflex.id, item.where, item.problem, warns=item.level != "refused", rule=rule)


def _asked(reflex: Reflex, query: Json, source: str, selects: Collection[str]) -> Iterator[Finding]:
    name = query.get("name") if isinstance(query, dict) else None
    if not isinstance(name, str):
        problem = f'names no selection; write {{"name": "...", "with": {{}}}}{meant("", selects)}'
        yield finding(source, reflex.id, "select.query", problem)
    elif name not in selects:
        problem = f"there is no selection {name!r}{meant(name, selects)}"
        yield finding(source, reflex.id, "select.query.name", problem)


def roots(reflex: Reflex, path: str) -> tuple[str, ...]:
    """The names that a template of this reflex may ever see. Any reflex may be fired by hand, which is a fact; only a
    clock's run has an occurrence, and only a task has a row."""
    seen = {"params", "now", "fact", "facts"}
    if isinstance(reflex.on, OnClock):
        seen.add("occurrence")
    if path == "effect.input":
        if reflex.select is not None:
            seen.add("row" if reflex.select.mode == "each" else "rows")
        elif isinstance(reflex.on, OnWrite):
            seen.add("row")
    return tuple(root for root in ROOTS if root in seen)


def _late(reflex: Reflex, source: str, at: Instant) -> Sequence[Finding]:
    """A clock that is over before it begins."""
    if not isinstance(reflex.on, OnClock) or reflex.on.rule.next(at) is not None:
        return ()
    problem = f"nothing comes after {text(at)}, when it is loaded, so it never fires"
    return [finding(source, reflex.id, "on.clock", problem, warns=True)]
