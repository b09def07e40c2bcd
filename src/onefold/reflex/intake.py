"""reflex.intake - the one door into the table of facts: what arrived, checked, as a row.

For: the union of facts with its plain refusals, dedupe, the shape that templates see as `$.fact`, the body that
admits facts, parking and releasing.
Never: interprets a fact. It is durable before anybody asks whom it wakes.
Was wrong once: a union that was written down and not enforced. A write without an entity was stored, matched nothing,
was marked delivered and vanished; its sender never learned of it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final

from onefold.reflex.tables import INTAKE, REFLEX_RUN
from onefold.reflex.words import Fact, FactKind, Ingested, Json, Op, Signal, Write, fact_id, run_id
from onefold.store.contract import Answer, Append, Body, Last, Put, Query, Row, Verb
from onefold.terms import codec
from onefold.terms.errors import BadArguments, Fault, NotFound, TooLarge
from onefold.terms.ids import Principal, check_text, nearest, principal_of, principal_text
from onefold.terms.instant import FIRST, LAST, Instant, moment, text, up
from onefold.terms.limits import MAX_ROW_BYTES

OPS: Final = ("insert", "update", "delete")
WAITING, DELIVERED, PARKED = "waiting", "delivered", "parked"
REQUIRED: Final[Mapping[str, tuple[str, ...]]] = {"write": ("entity", "op", "row"), "signal": ("name", "payload")}
FREE: Final = ("dedupeKey", "notBefore")
"""Fields that a fact of either kind may have beside its own."""


@dataclass(frozen=True, slots=True)
class Incoming:
    """A fact that may enter. `body` is what templates will see; `due_at` when it is to be matched (ms)."""

    principal: Principal
    kind: FactKind
    subject: str
    op: Op | None
    body: Mapping[str, Json]
    at: Instant
    due_at: Instant
    dedupe: str | None = None
    depth: int = 0
    cause: str | None = None
    raw: bytes = field(default=b"", repr=False)


# --- the checked union ------------------------------------------------------------------------------


def parse(value: Json, path: str = "") -> Write | Signal:
    """A fact as JSON: `{"kind": "write", "entity", "op", "row"}` or `{"kind": "signal", "name", "payload"}`, either
    with `dedupeKey` and `notBefore` (RFC 3339 with an offset). Manual and run facts are the engine's own to make.

    Raises: BadArguments, with a fault for each field that is missing, foreign or unfit.
    """
    if not isinstance(value, Mapping):
        raise _refused([Fault(path, "a fact is an object", codec.shown(value))])
    kind = value.get("kind")
    if not isinstance(kind, str) or kind not in REQUIRED:
        told = "must be 'write' or 'signal'"
        hint = nearest(kind, REQUIRED) if isinstance(kind, str) else None
        raise _refused([Fault(_at(path, "kind"), f"{told}; did you mean {hint!r}?" if hint else told, kind)])
    faults = [*_missing(value, kind, path), *_foreign(value, kind, path)]
    not_before = None
    if value.get("notBefore") is not None:
        try:
            not_before = _instant(value["notBefore"])
        except ValueError:
            problem = "must be an instant with an offset, such as 2026-09-14T09:00:00Z"
            faults.append(Fault(_at(path, "notBefore"), problem, codec.shown(value["notBefore"])))
    if faults:
        raise _refused(faults)
    key = value.get("dedupeKey")
    if kind == "write":
        return Write(value["entity"], value["op"], value["row"], dedupe_key=key, not_before=not_before)
    return Signal(value["name"], value["payload"], dedupe_key=key, not_before=not_before)


def _missing(value: Mapping[str, Json], kind: str, path: str) -> list[Fault]:
    return [Fault(_at(path, name), f"is needed by a {kind}") for name in REQUIRED[kind] if name not in value]


def _foreign(value: Mapping[str, Json], kind: str, path: str) -> list[Fault]:
    """Fields that another kind has, or none: a fact that says two things is not guessed at."""
    own = (*REQUIRED[kind], *FREE)
    faults: list[Fault] = []
    for name in value:
        if name == "kind" or name in own:
            continue
        owner = next((other for other, names in REQUIRED.items() if name in names), None)
        close = nearest(str(name), own)
        if owner is not None:
            faults.append(Fault(_at(path, name), f"belongs to a {owner}, and this is a {kind}"))
        elif close is not None:
            faults.append(Fault(_at(path, name), f"is no field of a fact; did you mean {close!r}?"))
        else:
            faults.append(Fault(_at(path, name), f"is no field of a fact; a {kind} has {', '.join(own)}"))
    return faults


def taken(fact: Any, principal: Principal, at: Instant, *, depth: int = 0, cause: str | None = None) -> Incoming:
    """A Write or Signal of somebody outside, or one that an effect emitted: `depth` and `cause` are then the engine's to say.

    Raises: BadArguments; TooLarge.
    """
    if isinstance(fact, Write):
        kind: FactKind = "write"
        subject, op = _text(fact.entity, "entity"), fact.op
        if op not in OPS:
            raise _refused([Fault("op", f"must be one of {', '.join(OPS)}", codec.shown(op))])
        if not isinstance(fact.row, Mapping):
            raise _refused([Fault("row", "must be an object", codec.shown(fact.row))])
        own: dict[str, Json] = {"entity": subject, "op": op, "row": dict(fact.row)}
    elif isinstance(fact, Signal):
        kind, subject, op = "signal", _text(fact.name, "name"), None
        own = {"name": subject, "payload": fact.payload}
    else:
        raise _refused([Fault("fact", f"must be a Write or a Signal; this is a {type(fact).__name__}")])
    due_at = at
    if fact.not_before is not None:
        due_at = Instant(max(at, up(_datetime(fact.not_before), what="not_before")))
        own["notBefore"] = text(up(fact.not_before))
    dedupe = None
    if fact.dedupe_key is not None:
        own["dedupeKey"] = _text(fact.dedupe_key, "dedupe_key")
        dedupe = codec.canonical([kind, subject, fact.dedupe_key]).decode()
    return whole(Incoming(principal, kind, subject, op, own, at, due_at, dedupe, depth, cause))


def by_hand(reflex: str, input: Json, by: str | None, principal: Principal, at: Instant) -> Incoming:
    """A manual fact, aimed at one reflex; `by` is who fired. Raises: BadArguments; TooLarge."""
    own: dict[str, Json] = {"target": reflex, "payload": input}
    if by is not None:
        own["by"] = _text(by, "by")
    return whole(Incoming(principal, "manual", reflex, None, own, at, at))


def settling(run: Row, at: Instant) -> Incoming:
    """The fact of a run that settled, by its row as it is then: whose it is, its counts, its calendar key."""
    cell = REFLEX_RUN.at
    n, reflex, cause = run[cell["n"]], str(run[cell["reflex"]]), str(run[cell["cause"]])
    assert isinstance(n, int)
    own: dict[str, Json] = {
        "reflex": reflex,
        "runId": run_id(n),
        "stats": {name: run[cell[name]] for name in ("total", "done", "failed")},
    }
    if cause.startswith("occurrence:"):
        own["occurrence"] = cause.removeprefix("occurrence:")
    principal = principal_of(str(run[cell["principal"]]))
    depth = run[cell["depth"]]
    assert isinstance(depth, int)
    return whole(Incoming(principal, "run", reflex, None, own, at, at, None, depth + 1, f"run:{n}"))


def body_of(kind: FactKind, own: Mapping[str, Json], at: Instant, cause: str | None = None) -> dict[str, Json]:
    """`$.fact`: its kind, what is its kind's own, and `at` as text; `cause` where an effect or a run made it."""
    told = {"kind": kind, **own, "at": text(at)}
    return told if cause is None else {**told, "cause": cause}


def whole(incoming: Incoming) -> Incoming:
    """A fact whose `body` holds its kind's own fields only becomes one with its body as it will be seen, and its bytes.

    Raises: BadArguments for what is no JSON; TooLarge.
    """
    body = body_of(incoming.kind, incoming.body, incoming.at, incoming.cause)
    try:
        raw = codec.canonical(body)
    except BadArguments as bad:
        raise _refused(bad.faults) from None
    if len(raw) > MAX_ROW_BYTES:
        raise TooLarge(f"A {incoming.kind} fact of {incoming.subject}", len(raw), MAX_ROW_BYTES)
    principal_text(incoming.principal)
    return replace(incoming, body=body, raw=raw)


# --- rows -------------------------------------------------------------------------------------------


def row_of(n: int, fact: Incoming) -> Row:
    """The row under which it waits."""
    return (
        n,
        principal_text(fact.principal),
        fact.dedupe,
        fact.due_at,
        WAITING,
        fact.kind,
        fact.subject,
        fact.op,
        fact.raw,
        fact.at,
        fact.depth,
        0,
        fact.cause,
        None,
    )


def fact_of(row: Row) -> Fact:
    """The way back."""
    cell: dict[str, Any] = {column.name: value for column, value in zip(INTAKE.columns, row, strict=True)}
    return Fact(
        cell["n"],
        principal_of(cell["principal"]),
        cell["kind"],
        cell["subject"],
        cell["op"],
        codec.parse(cell["body"], "a fact"),
        Instant(cell["at"]),
        cell["depth"],
        cell["cause"],
        bool(cell["released"]),
    )


def counts_from(fact: Fact) -> Instant:
    """The instant that arming is compared with: a delayed fact meets the reflexes of the day it was kept for."""
    kept = fact.body.get("notBefore")
    return fact.at if kept is None else Instant(max(fact.at, up(_instant(kept))))


# --- bodies -----------------------------------------------------------------------------------------


def admitting(facts: Sequence[Incoming], mint: Callable[[], int]) -> Body[list[Ingested]]:
    """Keep these facts; one whose key was there before leaves the first as it is, and is told of as a duplicate."""

    def body() -> Generator[tuple[Verb, ...], tuple[Answer, ...], Last[list[Ingested]]]:
        rows = [row_of(mint(), fact) for fact in facts]
        (met,) = yield (Append(INTAKE, rows, met="keep"),)
        told = [
            Ingested(fact_id(int((row if first is None else first)[0])), first is not None)  # type: ignore[arg-type]
            for row, first in zip(rows, met, strict=True)
        ]
        return Last((), told)

    return body


def releasing(n: int, principals: Collection[Principal] | None, now: Instant) -> Body[bool]:
    """Let a parked fact pass although its chain is too long, and keep that somebody did. False: it was not parked.

    `principals`: whose it may be; None is anybody's. Raises, as the body's refusal: NotFound.
    """

    def body() -> Generator[tuple[Verb, ...], tuple[Answer, ...], Last[bool]]:
        (rows,) = yield (Query(INTAKE, on=INTAKE.key, keys=[(n,)], lock="update"),)
        at = INTAKE.at
        if not rows or (principals is not None and principal_of(rows[0][at["principal"]]) not in principals):
            raise NotFound("fact", fact_id(n))
        row = list(rows[0])
        if row[at["state"]] != PARKED:
            return Last((), False)
        row[at["state"]], row[at["due_at"]], row[at["released"]] = WAITING, now, 1
        return Last((Put(INTAKE, [tuple(row)]),), True)

    return body


def _at(path: str, name: object) -> str:
    return f"{path}.{name}" if path else str(name)


def _refused(faults: Sequence[Fault]) -> BadArguments:
    return BadArguments(faults, nothing_was="taken")


def _text(value: object, what: str) -> str:
    try:
        return check_text(value, what)
    except BadArguments as bad:
        raise _refused(bad.faults) from None


def _datetime(value: object) -> datetime:
    if not isinstance(value, datetime):
        raise _refused([Fault("not_before", "must be an aware datetime", codec.shown(value))])
    return value


def _instant(value: object) -> datetime:
    """Raises: ValueError for what is no instant with an offset."""
    if not isinstance(value, str):
        raise ValueError(value)
    read = datetime.fromisoformat(value)
    if read.utcoffset() is None:
        raise ValueError(value)
    return moment(min(max(up(read), FIRST), LAST))
