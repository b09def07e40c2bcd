"""fleet.mailbox - the durable box: turns for actors, kept until they are committed, whoever owns the actor by then.

For: the rows of mail, in order for each sender; what is due; what becomes of a letter that cannot be folded.
Never: delivers. A letter is taken away by the commit of its own turn, and by nothing else but a person.
Was wrong once: a letter deleted after its turn had returned. The process died between the two, and it was delivered
again as another turn; now its id is the turn's, and a repeat takes it away without folding. And letters behind one
that waits, left due: they were looked at again ten thousand times a second until it was tried.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from onefold.fleet.wire import fault_of, told_of
from onefold.store.contract import (
    Body,
    Cas,
    Cell,
    Column,
    Condition,
    Create,
    Each,
    Last,
    Migration,
    Query,
    Remove,
    Row,
    Schema,
    Table,
    Value,
    Write,
)
from onefold.terms.errors import OnefoldError
from onefold.terms.ids import SLOTS, ActorId, principal_of, principal_text, slot_of
from onefold.terms.instant import Instant

MAIL = Table(
    "mail",
    (
        Column("n", "int"),
        Column("kind", "text"),
        Column("principal", "text"),
        Column("key", "text"),
        Column("event", "text"),  # the id of the turn it brings
        Column("sender", "text"),  # letters of one sender to one actor keep their order
        Column("body", "bytes"),
        Column("due_at", "int", null=True),  # when it is tried; None: it is parked
        Column("tries", "int"),
        Column("error", "text", null=True),
        Column("at", "int"),
        Column("slot", "int"),
    ),
    key=("n",),
    serial=True,
    everywhere=True,
    unique=(("kind", "principal", "key", "event"),),
    index=(("due_at", "n"), ("kind", "principal", "key", "n")),
)
MAILS = Schema("mail", (MAIL,), (Migration(1, oldest=1, steps=(Create(MAIL),)),))

BOX_AT_MOST: Final = 10_000
"""Letters that wait for one actor. At a millisecond each the last of them already waits ten seconds."""
TRIES: Final = 8
"""After so many faults a letter is parked: with the backoff below, half an hour after its first try."""
OTHER_CODE_MS: Final = 2_000
"""Until a letter is tried again that only a node of other code can read: a restart with that code takes some seconds."""
BUSY_MS: Final = 1_000
"""Until a letter is tried again that a full queue refused."""
PARKED_SHOWN: Final = 1_000
FIRST_MS: Final = 500
LONGEST_MS: Final = 15 * 60_000

_KIND, _KEY, _EVENT, _BODY = (MAIL.at[name] for name in ("kind", "key", "event", "body"))


@dataclass(frozen=True, slots=True)
class Posted:
    """It is committed to the box of its actor. `owner`: the node that has the actor now; None where nobody does."""

    id: str
    owner: str | None = None


@dataclass(frozen=True, slots=True)
class Waiting:
    """A letter as its row has it."""

    n: int
    to: ActorId
    event: str
    sender: str
    body: bytes
    tries: int


@dataclass(frozen=True, slots=True)
class GivenUp:
    """A parked letter, its last error, and when it was posted."""

    mail: Waiting
    error: str
    at: Instant


def given_up(row: Row) -> GivenUp:
    at = row[MAIL.at["at"]]
    fault = refusal(row)
    error = str(row[MAIL.at["error"]] or "") if fault is None else str(fault)
    return GivenUp(waiting(row), error, Instant(at if isinstance(at, int) else 0))


def refusal(row: Row) -> OnefoldError | None:
    """What refused the turn of a letter whose sender waits for its answer; None of any other."""
    error = str(row[MAIL.at["error"]] or "")
    return fault_of(error.encode()) if row[MAIL.at["due_at"]] is None and error.startswith('{"') else None


def waiting(row: Row) -> Waiting:
    n, kind, principal, key, event, sender, body, _, tries = row[:9]
    assert isinstance(n, int)
    assert isinstance(tries, int)
    assert isinstance(body, bytes)
    return Waiting(n, ActorId(str(kind), principal_of(str(principal)), str(key)), str(event), str(sender), body, tries)


def letter(n: int, to: ActorId, event: str, sender: str, body: bytes, at: int, slots: int = SLOTS) -> Row:
    """The row of a letter that is due at once. slots: into how many the store's actors fall."""
    slot = slot_of(to, slots)
    return (n, to.kind, principal_text(to.principal), to.key, event, sender, body, at, 0, None, at, slot)


def due(now: int, limit: int, slots: Sequence[int] | None = None, behind: tuple[int, int] | None = None) -> Query:
    """Letters that may be tried, oldest first; with `slots`, to actors in these. `behind`: an instant and a number: of
    the letters due then those behind it; with a number below zero, those due then or later.
    """
    when: tuple[Condition, ...] = (("due_at", "<=", now),)
    if behind is not None:
        at, n = behind
        when = (("due_at", ">=", at), *when) if n < 0 else (("due_at", "=", at), ("n", ">", n))
    return Query(MAIL, where=(*when, *_in(slots)), order=("due_at", "n"), limit=limit)


def due_of(kinds: Iterable[str], now: int, limit: int) -> Query:
    """As `due`, to actors of these kinds: their file is one process's, whose slots say nothing of them."""
    return Query(MAIL, where=(("kind", "in", tuple(kinds)), ("due_at", "<=", now)), order=("due_at", "n"), limit=limit)


def soonest(slots: Sequence[int] | None, after: int) -> Query:
    """The letter that is due next, of those that are due later than `after`."""
    return Query(MAIL, where=(("due_at", ">", after), *_in(slots)), order=("due_at", "n"), limit=1)


def _in(slots: Sequence[int] | None) -> tuple[Condition, ...]:
    return () if slots is None else (("slot", "in", tuple(slots)),)


def parked() -> Query:
    """Letters that were given up on: the first so many."""
    return Query(MAIL, where=(("due_at", "null", True),), order=("n",), limit=PARKED_SHOWN)


def boxes(rows: Iterable[Row]) -> list[ActorId]:
    """Whose letters these are, once each, in order."""
    return list(dict.fromkeys(waiting(row).to for row in rows))


def box(to: ActorId, limit: int) -> Query:
    """The letters of one actor, parked ones too, oldest first."""
    key = (to.kind, principal_text(to.principal), to.key)
    return Query(MAIL, on=("kind", "principal", "key"), keys=[key], order=("n",), limit=limit)


def open_in(to: ActorId, now: int, limit: int) -> Query:
    """The letters of one actor that may be tried, oldest first. Those that are parked or wait hide none of them."""
    return Query(MAIL, where=(*box_of(to), ("due_at", "<=", now)), order=("n",), limit=limit)


def unparked(to: ActorId, limit: int) -> Query:
    """The letters of one actor that wait for anything but a person, oldest first."""
    return Query(MAIL, where=(*box_of(to), ("due_at", "null", False)), order=("n",), limit=limit)


def waits(to: ActorId, now: int, rows: Iterable[Row]) -> Query:
    """Of each sender of these letters the first one to the actor that waits for its next try."""
    senders = sorted({waiting(row).sender for row in rows})
    return Query(MAIL, where=(*box_of(to), ("due_at", ">", now)), order=("n",), each=Each("sender", senders, 1))


def box_of(to: ActorId) -> tuple[Condition, ...]:
    """By conditions: a store orders what it finds by keys, and finds all."""
    return ("kind", "=", to.kind), ("principal", "=", principal_text(to.principal)), ("key", "=", to.key)


def behind(rows: Sequence[Row], now: int) -> Write | None:
    """The letters that are due behind one of their sender's that waits: they are due when it is, and not looked at before."""
    until: dict[str, int] = {}
    later: list[tuple[Row, dict[str, Cell], dict[str, Value]]] = []
    for row in rows:
        due, sender = row[MAIL.at["due_at"]], waiting(row).sender
        if due is not None and int(due) > now:
            until.setdefault(sender, int(due))
        elif due is not None and sender in until:
            later.append(((row[0],), {"due_at": due}, {"due_at": until[sender]}))
    return Cas(MAIL, later) if later else None


def ready(rows: Sequence[Row], now: int) -> list[list[Waiting]]:
    """What may be tried now of one actor's letters: one list for each sender, in the order of posting.

    Behind a letter that waits for its next try its sender's others wait too; a parked one holds up nobody.
    """
    found: list[Waiting] = []
    stopped: set[str] = set()
    for row in rows:
        due = row[MAIL.at["due_at"]]
        mail = waiting(row)
        if due is None or mail.sender in stopped:
            continue
        if int(due) > now:
            stopped.add(mail.sender)
        else:
            found.append(mail)
    return by_sender(found)


def by_sender(letters: Iterable[Waiting]) -> list[list[Waiting]]:
    """A list for each sender, each in the order given."""
    found: dict[str, list[Waiting]] = {}
    for mail in letters:
        found.setdefault(mail.sender, []).append(mail)
    return list(found.values())


def failed(mail: Waiting, now: int, error: str, *, hopeless: bool = False) -> Write:
    """What becomes of a letter whose turn could not be folded: later, or parked for a person."""
    tries = mail.tries + 1
    over = hopeless or tries >= TRIES
    at = None if over else now + min(LONGEST_MS, FIRST_MS << min(tries, 20))
    return Cas(MAIL, [((mail.n,), {"tries": mail.tries}, {"tries": tries, "due_at": at, "error": error})])


def refused(mail: Waiting, fault: OnefoldError) -> Write:
    """Its turn was refused, and its sender waits to be told: parked with the refusal, for whoever comes first."""
    change: dict[str, Value] = {"tries": mail.tries + 1, "due_at": None, "error": told_of(fault).decode()}
    return Cas(MAIL, [((mail.n,), {"tries": mail.tries}, change)])


def answered(row: Row) -> Body[None]:
    """Take a refused letter away, since its sender was told. Not one that a person has tried again meanwhile."""

    def body() -> Any:
        yield ()
        return Last((Remove(MAIL, where=(("n", "=", row[0]), ("due_at", "null", True))),), None)

    return body


def put_off(mail: Waiting, now: int, by_ms: int, error: str) -> Write:
    """It was not its turn yet: its node has no room, or only a node of other code can read it. Later, and no try of it."""
    return Cas(MAIL, [((mail.n,), {"tries": mail.tries}, {"due_at": now + by_ms, "error": error})])


def again(n: int, now: int) -> Write:
    """A person wants a parked letter tried once more, with a fresh count."""
    return Cas(MAIL, [((n,), {"due_at": None}, {"due_at": now, "tries": 0, "error": None})])
