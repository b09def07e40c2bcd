"""fleet.posting - letters into their boxes, many to a commit, each answered by itself.

For: one question and one write for whoever posts in the same turn of the loop; what each came to. Pure.
Never: lets one that is refused keep back another; counts a box whose numbers say that it cannot be full.
Was wrong once: a body for each letter. Each asked whether its id was there, what its box began and ended with and
who its actor was, while the insert meets the id by itself, and a box of two cannot be full.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from onefold.fleet import mailbox
from onefold.fleet.mailbox import MAIL, Waiting, box_of, waiting
from onefold.kernel.tables import ACTOR, TURN
from onefold.store.contract import Append, Body, Done, Last, Query, Row
from onefold.terms.errors import Busy, KeyConflict, OnefoldError
from onefold.terms.ids import ActorId

BOXES = 10_000
_EVENT, _BODY = MAIL.at["event"], MAIL.at["body"]


@dataclass(frozen=True, slots=True)
class Post:
    """A letter's row, and the digest of its turn's content, as a fold keeps it; None in a space without turns."""

    row: Row
    digest: bytes | None = None


class Lowest:
    """Numbers below which a box holds none, of boxes that were looked at. Numbers of one process only grow: a box whose
    newest is near its lowest cannot be full. `shared`: other processes number letters too, and nothing is remembered.
    """

    def __init__(self, *, shared: bool = False, boxes: int = BOXES) -> None:
        self._known: OrderedDict[ActorId, int] = OrderedDict()
        self._shared = shared
        self._boxes = boxes

    def spare(self, to: ActorId, n: int) -> bool:
        """Whether a box surely has room for the letter of this number."""
        lowest = self._known.get(to)
        return lowest is not None and n - lowest < mailbox.BOX_AT_MOST

    def found(self, to: ActorId, n: int) -> None:
        """This was the lowest."""
        if not self._shared:
            self._known[to] = n
            self._known.move_to_end(to)
            if len(self._known) > self._boxes:
                self._known.popitem(last=False)


Answers = list[OnefoldError | bool | None]
"""Of each letter: what refuses it; True where it was there already; None where its insert tells."""


class Overtaken(OnefoldError):
    """Stays inside the host: its sender has a letter in the box under a higher number, from another process. `n`: which."""

    def __init__(self, n: int) -> None:
        self.n = n
        super().__init__("a letter needs a higher number")


def posting(posts: Sequence[Post], lowest: Lowest | None = None) -> Body[Answers]:
    """Put letters into their boxes, in this order. `came` has what each came to.

    KeyConflict for other content, also of a turn that the actor has had under this id; Busy where a box is full.
    """
    known = Lowest(shared=True) if lowest is None else lowest
    letters = [waiting(post.row) for post in posts]

    def body() -> Any:
        told: Answers = [None] * len(posts)
        unsure: dict[ActorId, int] = {}
        for mail in letters:
            if not known.spare(mail.to, mail.n):
                unsure.setdefault(mail.to, mail.n)
        folds = [post.row[1:4] for post in posts if post.digest is not None]
        # Whether it is there before whether it was a turn: the commit of its turn takes it away.
        met, *ends = yield (
            Query(MAIL, on=("kind", "principal", "key", "event"), keys=[post.row[1:5] for post in posts]),
            *(Query(MAIL, where=box_of(to), order=(by,), limit=1) for to in unsure for by in ("n", "-n")),
            *((Query(ACTOR, on=("kind", "principal", "key"), keys=folds),) if folds else ()),
        )
        _there(posts, met, told)
        if folds and (actors := ends.pop()):
            yield from _turned(posts, actors, told)
        newest = {to: int(last[0][0]) for to, last in zip(unsure, ends[1::2], strict=True) if last}
        late = [at for at, mail in enumerate(letters) if told[at] is None and newest.get(mail.to, 0) > mail.n]
        if late:
            yield from _overtaken(letters, late, told)
        full: list[ActorId] = []
        for (to, n), first, last in zip(unsure.items(), ends[::2], ends[1::2], strict=True):
            known.found(to, int(first[0][0]) if first else n)
            more = sum(mail.to == to for mail in letters)
            # Both, since another node may have emptied the box between the two looks.
            if first and last and int(last[0][0]) - int(first[0][0]) + more >= mailbox.BOX_AT_MOST:
                full.append(to)
        if full:
            yield from _counted(letters, full, told)
        rows = [post.row for post, fault in zip(posts, told, strict=True) if fault is None]
        return Last((Append(MAIL, rows, met="keep"),) if rows else (), told)

    return body


def _there(posts: Sequence[Post], met: Sequence[Row], told: Answers) -> None:
    """Tell of those that are in their box already."""
    known = {row[1:5]: row for row in met}
    for at, post in enumerate(posts):
        if (row := known.get(post.row[1:5])) is not None:
            told[at] = _same(post, row)


def _same(post: Post, row: Row) -> OnefoldError | bool:
    return row[_BODY] == post.row[_BODY] or KeyConflict(str(post.row[_EVENT])[2:])


def _turned(posts: Sequence[Post], actors: Sequence[Row], told: Answers) -> Any:
    """Refuse letters under the id of a turn that had other content."""
    numbers = {row[1:4]: row[0] for row in actors}
    ids = [(numbers.get(post.row[1:4]), post.row[_EVENT]) for post in posts]
    (turns,) = yield (Query(TURN, on=("actor", "event"), keys=[id for id in ids if id[0] is not None]),)
    digests = {(row[TURN.at["actor"]], row[TURN.at["event"]]): row[TURN.at["digest"]] for row in turns}
    for at, (post, id) in enumerate(zip(posts, ids, strict=True)):
        if post.digest is not None and digests.get(id, post.digest) != post.digest:
            told[at] = KeyConflict(str(post.row[_EVENT])[2:])


def _overtaken(letters: Sequence[Waiting], late: Sequence[int], told: Answers) -> Any:
    """Refuse letters whose number is below one that their sender has in the box, and their sender's behind them: numbers
    are the order of posting.
    """
    found = yield tuple(
        Query(
            MAIL,
            where=(*box_of(letters[at].to), ("sender", "=", letters[at].sender), ("n", ">", letters[at].n)),
            order=("-n",),
            limit=1,
        )
        for at in late
    )
    over: dict[tuple[ActorId, str], int] = {}
    for at, rows in zip(late, found, strict=True):
        if rows:
            over[letters[at].to, letters[at].sender] = int(rows[0][0])
    stopped: set[tuple[ActorId, str]] = set()
    for at, mail in enumerate(letters):
        whose = (mail.to, mail.sender)
        if told[at] is None and whose in over and (whose in stopped or mail.n < over[whose]):
            stopped.add(whose)
            told[at] = Overtaken(max(mail.n, over[whose]))


def _counted(letters: Sequence[Waiting], full: Sequence[ActorId], told: Answers) -> Any:
    """Refuse letters for which their box has no room."""
    there = yield tuple(Query(MAIL, where=box_of(to), limit=mailbox.BOX_AT_MOST) for to in full)
    room = {to: mailbox.BOX_AT_MOST - len(rows) for to, rows in zip(full, there, strict=True)}
    for at, mail in enumerate(letters):
        if mail.to in room and told[at] is None:
            room[mail.to] -= 1
            if room[mail.to] < 0:
                told[at] = Busy(f"the box of {mail.to.kind} {mail.to.key!r}", mailbox.BOX_AT_MOST)


def came(posts: Sequence[Post], outcome: Done[Answers]) -> list[OnefoldError | bool]:
    """What each came to: whether it was there already, or what refused it."""
    met = iter(outcome.answers[0] if outcome.answers else ())
    found: list[OnefoldError | bool] = []
    for post, told in zip(posts, outcome.value, strict=True):
        if told is None:
            row = next(met)
            found.append(False if row is None else _same(post, row))
        else:
            found.append(told)
    return found
