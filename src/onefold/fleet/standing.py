"""fleet.standing - what one node holds now, and where everything else is: its view of the owners.

For: `node.owning.Owning`, from rows as they were last seen and from what this node took, gave and lost since.
Never: asks the store; outlives its lease: past the end nothing is held, whatever the rows say.
Was wrong once: the lease read by the wall clock. A machine that slept for an hour woke up with twenty seconds left.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from onefold.fleet.abroad import Abroad, Asking
from onefold.fleet.ownership import (
    NOBODY,
    OWNER,
    SPACE,
    Me,
    NodeRow,
    OwnerRow,
    Seen,
    actor_name,
    guarded,
    slot_name,
    space_name,
)
from onefold.node.owning import UNGUARDED, Guard, Hold
from onefold.store.contract import Cell, Query, Row, Space, Still
from onefold.terms.codec import Json
from onefold.terms.errors import OwnedElsewhere, StoreLocked
from onefold.terms.ids import SLOTS, ActorId, slot_of


class Standing:
    """One node's. `left_ms` says how much of its lease is left, by a clock that counts sleep; `apart`: kinds whose space,
    of the same name, is a file that one process has for itself.
    """

    def __init__(self, left_ms: Callable[[], int], apart: Collection[str] = ()) -> None:
        self._left_ms = left_ms
        self.apart = frozenset(apart)
        self.ask: Asking = _nobody
        self.slots = SLOTS
        self.me = Me("", 0)
        self.seen = Seen()
        self._holds: dict[str, Hold] = {}
        self._single: dict[str, OwnerRow] = {}  # actors that are owned by their own name
        self.spread: frozenset[str] = frozenset()  # all names that are spread over the fleet
        self.unheard: set[str] = set()  # names that were just taken from one who has not heard of it: not held yet

    # --- as the node asks -------------------------------------------------------------------------

    def hold(self, at: ActorId) -> Hold:
        """What this process has an actor by; its own name goes before its slot's."""
        (hold,) = self.having(self.name_of(at))
        return hold

    def valid(self, hold: Hold) -> bool:
        return not hold.over and self._left_ms() > 0

    def abroad(self, space: str) -> Space | None:
        if space not in self.apart:
            return None
        name = space_name(space)
        hold = self._holds.get(name)
        return None if hold is not None and self.valid(hold) else Abroad(space, self.ask, lambda: self._elsewhere(name))

    @contextmanager
    def opening(self, space: str) -> Iterator[None]:
        """A file of this node's is opened: whoever had it before may not have let go of it yet. Raises: OwnedElsewhere."""
        try:
            yield
        except StoreLocked:
            if space not in self.apart:
                raise
            raise self._elsewhere(space_name(space)) from None

    def _elsewhere(self, name: str) -> OwnedElsewhere:
        hold, row = self._holds.get(name), self.owner(name)
        node = None if row is None or row.belongs(self.me) else row.node or None
        return OwnedElsewhere(name, node, 0 if hold is None else hold.epoch, 0 if row is None else row.epoch)

    def still(self, holds: Collection[Hold]) -> Still:
        me: dict[str, Cell] = {"node": self.me.name, "incarnation": self.me.incarnation}
        return Still(OWNER, [((hold.name,), {**me, "epoch": hold.epoch}) for hold in holds])

    def question(self, holds: Collection[Hold]) -> Query:
        return guarded(hold.name for hold in holds)

    def lost(self, holds: Collection[Hold], rows: Sequence[Row]) -> Mapping[Hold, OwnedElsewhere]:
        found = {row[0]: OwnerRow.of(row) for row in rows}
        lost: dict[Hold, OwnedElsewhere] = {}
        for hold in holds:
            row = found.get(hold.name)
            if row is None or not row.belongs(self.me) or row.epoch != hold.epoch:
                hold.over = True
                node, epoch = (None, 0) if row is None else (row.node or None, row.epoch)
                lost[hold] = OwnedElsewhere(hold.name, node, hold.epoch, epoch)
        return lost

    def of_all(self, space: str) -> Guard:
        """What a sweep of a whole space goes by: the first slot that this node has. Raises: OwnedElsewhere."""
        if space in self.apart:
            return UNGUARDED
        slots = self.held_slots()
        if not slots:
            raise self._elsewhere(slot_name(0))
        return Guard(self, self.having(slot_name(min(slots))))

    def of_box(self, to: ActorId) -> Guard:
        """What a commit in `main` about an actor goes by, wherever its turns are. Raises: OwnedElsewhere."""
        return Guard(self, self.having(self.name_of(to)))

    def of_slots(self, slots: Iterable[int]) -> Guard:
        """What a commit about the actors in these slots goes by. Raises: OwnedElsewhere."""
        return Guard(self, self.having(*map(slot_name, slots)))

    def having(self, *names: str) -> list[Hold]:
        """What it has these names by. Raises: OwnedElsewhere."""
        holds = [self._holds.get(name) for name in names]
        for name, hold in zip(names, holds, strict=True):
            if hold is None or not self.valid(hold):
                raise self._elsewhere(name)
        return [hold for hold in holds if hold is not None]

    # --- where everything is ------------------------------------------------------------------------

    def name_of(self, at: ActorId) -> str:
        """The name that an actor is owned by."""
        if self._single and (own := actor_name(at)) in self._single:
            return own
        return space_name(at.kind) if at.kind in self.apart else slot_name(slot_of(at, self.slots))

    def owner(self, name: str) -> OwnerRow | None:
        return self.seen.owners.get(name)

    def node_of(self, at: ActorId) -> NodeRow | None:
        """The living node that has an actor, as far as is known; None where nobody has."""
        return self.node_with(self.name_of(at))

    def node_with(self, name: str) -> NodeRow | None:
        """The same, of a name."""
        row = self.owner(name)
        if row is None or not self.seen.alive(row.node, row.incarnation):
            return None
        return self.seen.nodes[row.node]

    @property
    def held(self) -> list[str]:
        """The names this node holds."""
        return [name for name, hold in self._holds.items() if not hold.over]

    def held_slots(self) -> list[int]:
        """The slots among them that it takes work from: none that it is handing over."""
        mine = [name for name, hold in self._holds.items() if not (hold.over or hold.leaving)]
        return [int(name[5:]) for name in mine if name.startswith("slot/")]

    def files(self) -> list[str]:
        """Kinds whose space, a file of one process, this node has."""
        return [space for space in sorted(self.apart) if self.abroad(space) is None]

    @property
    def singles(self) -> list[str]:
        """Actors' names this node holds."""
        return [name for name, row in self._single.items() if row.belongs(self.me)]

    # --- what it learns -----------------------------------------------------------------------------

    def joined(self, me: Me, slots: int, spread: Iterable[str]) -> None:
        """A new life: nothing is held yet."""
        self.over()
        self.me = me
        self.slots = slots
        self.spread = frozenset(spread)

    def over(self) -> None:
        """This life is over: nothing is held any more."""
        for hold in self._holds.values():
            hold.over = True
        self._holds.clear()
        self._single.clear()

    def look(self, seen: Seen) -> list[str]:
        """Learn what the rows say: the names that are this node's since, and actors' names that fell back to their slots,
        which may be its own. What it did meanwhile counts more: epochs grow.
        """
        known = self.seen.owners
        owners = {**known, **seen.owners}  # no owner's row is ever removed: one that is missing came after this look
        for name, row in known.items():
            if row.epoch > owners[name].epoch:
                owners[name] = row
        self.seen = Seen(seen.nodes, owners, seen.leases, seen.now)
        single = {name: row for name, row in owners.items() if name not in self.spread and row.node != NOBODY}
        fell = self._single.keys() - single.keys()
        self._single = single
        return [*(name for name, row in owners.items() if self._learn(row)), *sorted(fell)]

    def changed(self, rows: Iterable[OwnerRow]) -> list[str]:
        """As `look`, of some names whose rows are known to be so now."""
        gained = []
        owners = dict(self.seen.owners)
        for row in rows:
            owners[row.name] = row
            fell = row.name not in self.spread and self._single.pop(row.name, None) is not None and row.node == NOBODY
            if row.name not in self.spread and row.node != NOBODY:
                self._single[row.name] = row
            if self._learn(row) or fell:
                gained.append(row.name)
        self.seen = Seen(self.seen.nodes, owners, self.seen.leases, self.seen.now)
        return gained

    def met(self, nodes: Mapping[str, NodeRow], now: int) -> None:
        """The nodes are these now, by the store's clock, which may have been set back."""
        self.seen = Seen(nodes, self.seen.owners, self.seen.leases, now)

    def take_from(self, name: str) -> None:
        """It is not this node's from now on, until the rows are looked at again."""
        self.unheard.add(name)
        self._drop(name)

    def leave(self, names: Iterable[str]) -> list[Hold]:
        """Take nothing new for these: they are about to be another's."""
        holds = [hold for name in names if (hold := self._holds.get(name)) is not None and not hold.over]
        for hold in holds:
            hold.leaving = True
        return holds

    def _learn(self, row: OwnerRow) -> bool:
        hold = self._holds.get(row.name)
        if not row.belongs(self.me) or row.name in self.unheard:
            self._drop(row.name)
            return False
        if hold is not None and hold.epoch == row.epoch and not hold.over:
            return False
        self._drop(row.name)
        self._holds[row.name] = Hold(row.name, row.epoch, fenced=not row.name.startswith(SPACE))
        return True

    def _drop(self, name: str) -> None:
        hold = self._holds.pop(name, None)
        if hold is not None:
            hold.over = True


async def _nobody(space: str, queries: Json) -> Json:
    raise OwnedElsewhere(space_name(space), None, 0, 0)
