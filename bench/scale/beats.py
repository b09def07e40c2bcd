"""bench.scale.beats - a fleet in virtual time: leases, beats, hand-over and takeover as fleet.planning has them.

For: `Fleet`, one world whose nodes join, leave, die and start again; `Told`, what it cost.
Never: sleeps; draws chance but from its seed; lets a node know more than it saw on its last beat.
Was wrong once: a takeover of exactly one lease. A dead node's lease began before it died, and who takes its slots looks
once a beat: between three and five quarters.

What a node does on a beat: it looks; it takes the slots that it is wanted for and that nobody alive owns; it hands over
what another is wanted for, when the turns under way are done, and tells that one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from heapq import heappop, heappush
from random import Random

from bench.scale.constants import LOAD
from bench.scale.rendezvous import Ranking, spread

LEASE_S = LOAD.lease_s
BEAT_S = LEASE_S / 4
DRAIN_S = 0.05  # for the turns under way: fifty commits
START_S = 2.0  # of a process, until it joins
NOBODY = -1


@dataclass(slots=True)
class Node:
    """phase: when within a beat it looks. until: the end of its lease as its row has it."""

    phase: float
    until: float = 0.0
    running: bool = False
    life: int = 0
    wanted: set[int] = field(default_factory=set)
    owned: set[int] = field(default_factory=set)
    looking: bool = False


@dataclass(slots=True)
class Told:
    """moved: changes of owner. commits: that changed owners. waited: slot-seconds without an owner at work; longest:
    of one slot. took: seconds until all was at rest.
    """

    moved: int = 0
    commits: int = 0
    waited: float = 0.0
    longest: float = 0.0
    took: float = 0.0


class Fleet:
    """One world. Times in seconds. spare: nodes that may join later. telling: who hands over says so to the next owner,
    which would else learn of it on its next beat.
    """

    def __init__(self, ranking: Ranking, nodes: int, seed: int, *, spare: int = 0, telling: bool = True) -> None:
        self.told = Told()
        self._telling = telling
        self.now = 100.0  # it came up a while ago
        self._ranking = ranking
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._numbered = 0
        chance = Random(seed)  # noqa: S311 - phases of a simulation, from its seed
        self.nodes = [Node(chance.random() * BEAT_S) for _ in range(nodes + spare)]
        self._owner = [(NOBODY, 0)] * ranking.slots  # a node, and its life
        self._since: dict[int, float] = {}  # slots that nobody serves
        self._staying = set(range(nodes))  # as the others see it
        self._wish = [ranking.wanted(slot, self._staying) for slot in range(ranking.slots)]
        for place in range(nodes):
            self.nodes[place].running = True
        for slot, wanted in enumerate(self._wish):
            self.nodes[wanted].wanted.add(slot)
            self._give(slot, wanted, 0)

    # --- what happens to it -------------------------------------------------------------------

    def join(self, place: int) -> None:
        """A node's new life: its row is written, and it looks at once."""
        node = self.nodes[place]
        node.running = True
        node.life += 1
        self._staying.add(place)
        self._reckon(place)
        self._look(place)

    def leave(self, place: int, then: Callable[[], None] | None = None) -> None:
        """It says so and hands over all that it has; then its process ends."""
        node = self.nodes[place]
        self._staying.discard(place)
        self._reckon(place)
        self._hand(place, sorted(node.owned))

        def ended() -> None:
            node.running = False
            self._wake({self._wish[slot] for slot in node.owned})  # what was handed to it meanwhile
            if then is not None:
                then()

        self.at(self.now + DRAIN_S, ended)

    def die(self, place: int) -> None:
        """It renewed on its last beat, and does nothing more. The others learn of it when its lease is over."""
        node = self.nodes[place]
        node.running = False
        node.until = self._last_beat(node) + LEASE_S
        life = node.life
        for slot in node.owned:
            self._since.setdefault(slot, self.now)

        def lapsed() -> None:
            if node.life == life:
                self._staying.discard(place)
                self._reckon(place)

        self.at(node.until, lapsed)

    def again(self, place: int) -> None:
        """A process that ends without handing over, and is there again within its lease: its slots wait for it."""
        self.die(place)
        self.at(self.now + START_S, lambda: self.join(place))

    def at(self, when: float, what: Callable[[], None]) -> None:
        self._numbered += 1
        heappush(self._events, (when, self._numbered, what))

    def run(self) -> Told:
        """Until nothing is left to happen."""
        begun = self.now
        while self._events:
            self.now, _, what = heappop(self._events)
            what()
        assert not self._since, "slots that nobody serves"
        self.told.took = self.now - begun
        return self.told

    @property
    def owners(self) -> list[int]:
        """Of each slot the node."""
        return [place for place, _ in self._owner]

    @property
    def counts(self) -> list[int]:
        """Slots of each running node."""
        return [len(node.owned) for node in self.nodes if node.running]

    @property
    def spread(self) -> float:
        return spread(self.counts)

    # --- a beat ---------------------------------------------------------------------------------

    def _look(self, place: int) -> None:
        """What the node sees, it may act on; what it was handed, it serves from now on."""
        node = self.nodes[place]
        node.looking = False  # one that was to look later does so and finds nothing
        if not node.running:
            return
        for slot in node.owned & self._since.keys():
            if self._owner[slot] == (place, node.life):
                self._served(slot)
        take = [slot for slot in sorted(node.wanted) if not self._alive(slot)]
        self.told.commits += bool(take)
        for slot in take:
            self._give(slot, place, node.life)
            self._served(slot)
        self._hand(place, sorted(node.owned - node.wanted))

    def _hand(self, place: int, slots: list[int]) -> None:
        """No turn of these is begun; when those under way are done, they are the others'."""
        life = self.nodes[place].life
        to = {slot: (self._wish[slot], self.nodes[self._wish[slot]].life) for slot in slots}  # as it sees them now
        for slot in slots:
            self._since.setdefault(slot, self.now)

        def handed() -> None:
            ours = [slot for slot in slots if self._owner[slot] == (place, life)]
            self.told.commits += bool(ours)
            for slot in ours:
                self._give(slot, *to[slot])
            self._wake({to[slot][0] for slot in ours}, at_once=self._telling)
            self._wake({self._wish[slot] for slot in ours})

        if slots:
            self.at(self.now + DRAIN_S, handed)

    def _give(self, slot: int, to: int, life: int) -> None:
        before, _ = self._owner[slot]
        if before != NOBODY:
            self.nodes[before].owned.discard(slot)
            self.told.moved += before != to
        self._owner[slot] = (to, life)
        self.nodes[to].owned.add(slot)

    def _served(self, slot: int) -> None:
        waited = self.now - self._since.pop(slot, self.now)
        self.told.waited += waited
        self.told.longest = max(self.told.longest, waited)

    def _alive(self, slot: int) -> bool:
        """Whether that life of the slot's owner goes on, as its row has it."""
        place, life = self._owner[slot]
        node = self.nodes[place]
        return node.life == life and (node.running or node.until > self.now)

    # --- who is wanted --------------------------------------------------------------------------

    def _reckon(self, place: int) -> None:
        """A node came, goes, or is gone: whose its slots are to be now. Everybody whom that concerns looks."""
        concerned: set[int] = set()
        for slot in self._ranking.near[place]:
            before, wanted = self._wish[slot], self._ranking.wanted(slot, self._staying)
            if wanted != before:
                self.nodes[before].wanted.discard(slot)
                self.nodes[wanted].wanted.add(slot)
                self._wish[slot] = wanted
                concerned |= {wanted, self._owner[slot][0]}
        self._wake(concerned)

    def _wake(self, places: set[int], *, at_once: bool = False) -> None:
        """They look on their next beat; every other look would find nothing to do."""
        for place in sorted(places):
            node = self.nodes[place]
            if node.running and at_once:
                self.at(self.now, partial(self._look, place))
            elif node.running and not node.looking:
                node.looking = True
                self.at(self._last_beat(node) + BEAT_S, partial(self._look, place))

    def _last_beat(self, node: Node) -> float:
        return self.now - (self.now - node.phase) % BEAT_S
