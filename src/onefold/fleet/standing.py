"""fleet.standing - what one node holds now, and where everything else is: its view of the owners.

For: `node.owning.Owning`, from rows as they were last seen and from what this node took, gave and lost since.
Never: asks the store; outlives its lease: past the end nothing is held, whatever the rows say.
Was wrong once: the lease read by the wall clock. A machine that slept for an hour woke up with twenty seconds left.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from onefold.fleet.ownership import (
    NOBODY,
    Me,
    NodeRow,
    OwnerRow,
    Seen,
    actor_name,
    guarded,
    slot_name,
)
from onefold.node.owning import Hold
from onefold.store.contract import Query, Row
from onefold.terms.errors import OwnedElsewhere
from onefold.terms.ids import SLOTS, ActorId, slot_of


class Standing:
    """One node's. `left_ms` says how much of its lease is left, by a clock that counts sleep; `apart` names the space
    that has an actor of this kind for itself, where a file is one process's.
    """

    def __init__(self, left_ms: Callable[[], int], apart: Callable[[str], str | None] = lambda kind: None) -> None:
        self._left_ms = left_ms
        self._apart = apart
        self.slots = SLOTS
        self.me = Me("", 0)
        self.seen = Seen()
        self._holds: dict[str, Hold] = {}
        self._single: dict[str, OwnerRow] = {}  # actors that are owned by their own name
        self._spread: frozenset[str] = frozenset()

    # --- as the node asks -------------------------------------------------------------------------

    def hold(self, at: ActorId) -> Hold:
        """What this process has an actor by; its own name goes before its slot's."""
        name = self.name_of(at)
        hold = self._holds.get(name)
        if hold is None or not self.valid(hold):
            row = self.owner(name)
            node = None if row is None or row.belongs(self.me) else row.node or None
            raise OwnedElsewhere(name, node, 0 if hold is None else hold.epoch, 0 if row is None else row.epoch)
        return hold

    def valid(self, hold: Hold) -> bool:
        return not hold.over and self._left_ms() > 0

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

    # --- where everything is ------------------------------------------------------------------------

    def name_of(self, at: ActorId) -> str:
        """The name that an actor is owned by."""
        if self._single and (own := actor_name(at)) in self._single:
            return own
        return self._apart(at.kind) or slot_name(slot_of(at, self.slots))

    def owner(self, name: str) -> OwnerRow | None:
        return self.seen.owners.get(name)

    def node_of(self, at: ActorId) -> NodeRow | None:
        """The living node that has an actor, as far as is known; None where nobody has."""
        row = self.owner(self.name_of(at))
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
        self._spread = frozenset(spread)

    def over(self) -> None:
        """This life is over: nothing is held any more."""
        for hold in self._holds.values():
            hold.over = True
        self._holds.clear()
        self._single.clear()

    def look(self, seen: Seen) -> list[str]:
        """Learn what the rows say. The names that are this node's since. What it did meanwhile counts more: epochs grow."""
        known = self.seen.owners
        owners = {
            name: known[name] if name in known and known[name].epoch > row.epoch else row
            for name, row in seen.owners.items()
        }
        self.seen = Seen(seen.nodes, owners, seen.leases, seen.now)
        self._single = {name: row for name, row in owners.items() if name not in self._spread and row.node != NOBODY}
        gained: list[str] = []
        for name in [*self._holds]:
            if name not in owners:
                self._drop(name)
        for name, row in owners.items():
            if self._learn(row):
                gained.append(name)
        return gained

    def changed(self, rows: Iterable[OwnerRow]) -> list[str]:
        """As `look`, of some names whose rows are known to be so now."""
        gained = []
        owners = dict(self.seen.owners)
        for row in rows:
            owners[row.name] = row
            if row.name not in self._spread:
                self._single.pop(row.name, None)
                if row.node != NOBODY:
                    self._single[row.name] = row
            if self._learn(row):
                gained.append(row.name)
        self.seen = Seen(self.seen.nodes, owners, self.seen.leases, self.seen.now)
        return gained

    def met(self, nodes: Mapping[str, NodeRow], now: int) -> None:
        """The nodes are these now."""
        self.seen = Seen(nodes, self.seen.owners, self.seen.leases, max(now, self.seen.now))

    def leave(self, names: Iterable[str]) -> list[Hold]:
        """Take nothing new for these: they are about to be another's."""
        holds = [hold for name in names if (hold := self._holds.get(name)) is not None and not hold.over]
        for hold in holds:
            hold.leaving = True
        return holds

    def _learn(self, row: OwnerRow) -> bool:
        hold = self._holds.get(row.name)
        if not row.belongs(self.me):
            self._drop(row.name)
            return False
        if hold is not None and hold.epoch == row.epoch and not hold.over:
            return False
        self._drop(row.name)
        self._holds[row.name] = Hold(row.name, row.epoch, fenced=not row.name.startswith("space/"))
        return True

    def _drop(self, name: str) -> None:
        hold = self._holds.pop(name, None)
        if hold is not None:
            hold.over = True
