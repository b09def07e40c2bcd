"""bench.scale.worlds - one world on paper: what so many nodes and actors ask of one Postgres, and what gives way first.

For: `World`, the rates of one of M equal worlds; `limits`, how many nodes one server carries by each of its means.
Never: adds a figure of its own; all begin in `constants`.
Was wrong once: limits by turns a second. What breaks first has little to do with turns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bench.scale.constants import (
    CONNECTIONS,
    COSTS,
    DAY_S,
    FREEZE,
    LOAD,
    LOOK_TAKES,
    OUTAGE_S,
    SERVER,
    SLOTS,
    SLOTS_A_NODE,
    Costs,
    Load,
    Server,
)

MOST = 1 << 20  # nodes; nobody looks further
SIGHT = 1 << 16  # nodes; what carries as many is no limit any more


def slots_for(nodes: float) -> int:
    """As many as a store of so many nodes is made with: a power of two, so many a node."""
    slots = SLOTS
    while slots < nodes * SLOTS_A_NODE:
        slots *= 2
    return slots


@dataclass(frozen=True, slots=True)
class World:
    """One of the worlds: its share of nodes and actors, all of it at the peak of the day where it says peak."""

    nodes: float
    costs: Costs = COSTS
    load: Load = LOAD

    @property
    def share(self) -> float:
        return self.nodes / self.load.nodes

    @property
    def actors(self) -> float:
        return self.load.actors * self.share

    @property
    def slots(self) -> int:
        return slots_for(self.nodes)

    @property
    def beats(self) -> float:
        """Of all its nodes, a second."""
        return self.nodes * 4 / self.load.lease_s

    @property
    def alarms(self) -> float:
        """That ring in a second, on average."""
        return self.actors * self.load.asleep * self.load.wakes_a_day / DAY_S

    @property
    def turns(self) -> float:
        """A second at the peak: asked for, woken, and brought by letters."""
        asked = self.actors * self.load.turns_a_day / DAY_S
        return (asked * (1 + self.load.letters) + self.alarms) * self.load.peak

    @property
    def together(self) -> float:
        """Turns of one commit: what comes to a node while its last commit is under way."""
        return max(1.0, self.turns / self.nodes * self.costs.turn_ms / 1e3)

    @property
    def commits(self) -> float:
        """A second at the peak, two for the turns of a batch: theirs, and the confirmation of what they owed."""
        return 2 * self.turns / self.together + self.beats

    @property
    def renewal_cores(self) -> float:
        return self.beats * self.costs.renewal_us / 1e6

    @property
    def look_rows(self) -> float:
        """A second: each node looks at all nodes and all owners on each beat."""
        return self.beats * (self.nodes + self.slots)

    @property
    def look_cores(self) -> float:
        return (self.look_rows * self.costs.look_row_us + self.beats * self.costs.look_us) / 1e6

    @property
    def counted_cores(self) -> float:
        """What looks would take that read one counter, and the rest only when it moved."""
        return self.beats * self.costs.look_us / 1e6

    @property
    def turn_cores(self) -> float:
        each = self.costs.turn_us + self.costs.guard_us + self.costs.commit_us / self.together
        return self.turns * each / 1e6

    @property
    def alarm_cores(self) -> float:
        """Each beat has a look, and each alarm that rings one."""
        return (self.beats + self.alarms * self.load.peak) * self.costs.alarm_look_us / 1e6

    @property
    def cores(self) -> float:
        return self.renewal_cores + self.look_cores + self.turn_cores + self.alarm_cores

    @property
    def guard_wal(self) -> float:
        return self.turns * self.costs.guard_wal

    @property
    def wal(self) -> float:
        """Bytes a second at the peak. Actors are so many that each turn finds pages that no turn before it touched."""
        return self.turns * (self.costs.turn_cold_wal + self.costs.guard_wal) + self.beats * self.costs.renewal_wal

    @property
    def packed_wal(self) -> float:
        return self.wal - self.turns * (self.costs.turn_cold_wal - self.costs.turn_packed_wal)

    @property
    def packed_cores(self) -> float:
        return self.cores + self.turns * self.costs.turn_packed_us / 1e6

    @property
    def hand_ms(self) -> float:
        """Of the server, to hand over all slots of a node in one commit."""
        return (self.costs.hand_us + self.slots / self.nodes * self.costs.hand_slot_us) / 1e3

    @property
    def hand_wal(self) -> float:
        return self.slots / self.nodes * self.costs.hand_slot_wal

    @property
    def disk(self) -> float:
        costs, load = self.costs, self.load
        return self.actors * (costs.actor_bytes + load.kept * costs.turn_bytes + load.asleep * costs.alarm_bytes)

    @property
    def connections(self) -> float:
        return self.nodes * CONNECTIONS

    @property
    def scoring_ms(self) -> float:
        """On each node, when one comes: its score for every slot."""
        return self.slots * self.costs.score_us / 1e3

    @property
    def plan_ms(self) -> float:
        """On each node, when one comes: its scores, and the highest of all nodes for every slot."""
        return self.scoring_ms + self.nodes * self.slots * self.costs.best_us / 1e3

    @property
    def backlog(self) -> float:
        """Alarms that fell due while the world stood still."""
        return self.alarms * OUTAGE_S

    @property
    def backlog_s(self) -> float:
        """Processor seconds to find them: each look of a node passes over what is due of the others."""
        looks = self.backlog / LOOK_TAKES
        return looks * self.backlog / 2 * self.costs.alarm_pass_us / 1e6

    @property
    def freeze_h(self) -> float:
        """Hours between two freezes of a table, by the mean of a day."""
        return FREEZE / (self.commits / self.load.peak) / 3_600

    @property
    def residents(self) -> float:
        """Of one node."""
        return self.actors * self.load.resident / self.nodes

    @property
    def resident_bytes(self) -> float:
        return self.residents * self.costs.resident_bytes

    @property
    def node_cores(self) -> float:
        """Of each node, at the peak."""
        return self.turns / self.nodes * self.costs.node_turn_us / 1e6

    @property
    def read_cores(self) -> float:
        """While all that a node had resident is read back as it is wanted: a read for each turn of its share."""
        return self.turns / self.nodes * self.costs.read_us / 1e6


@dataclass(frozen=True, slots=True)
class Limit:
    """nodes: as many as one server carries by this; `moved`: how many after what `how` says, None for beyond sight."""

    what: str
    nodes: int
    how: str
    moved: int | None


def moved(holds: Callable[[World], bool]) -> int | None:
    """As `most`; None for so many that it is no limit any more."""
    found = most(holds)
    return found if found < SIGHT else None


def most(holds: Callable[[World], bool]) -> int:
    """The largest number of nodes for which it holds."""
    low, high = 0, MOST
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(World(middle)) else (low, middle)
    return low


def limit(what: str, holds: Callable[[World], bool], how: str, after: Callable[[World], bool] | None = None) -> Limit:
    return Limit(what, most(holds), how, None if after is None else moved(after))


def limits(server: Server = SERVER) -> list[Limit]:
    """The tightest first."""
    looks = server.looks * server.cores
    found = [
        limit(
            f"WAL at the peak, {server.wal / 1e6:.0f} MB/s",
            lambda w: w.wal <= server.wal,
            "`wal_compression = on`, for cores; another world",
            lambda w: w.packed_wal <= server.wal and w.packed_cores <= server.cores,
        ),
        limit(
            f"a node's plan when one comes or goes, {server.pause_ms:.0f} ms of its loop",
            lambda w: w.plan_ms <= server.pause_ms,
            "hold who comes against the best alone; remember who is second",
            lambda w: w.scoring_ms <= server.pause_ms,
        ),
        limit(
            f"connections, {server.connections:.0f}",
            lambda w: w.connections <= server.connections,
            "fewer and larger nodes; another world",
        ),
        limit(
            f"rows and indexes, {server.disk / 1e12:.0f} TB",
            lambda w: w.disk <= server.disk,
            "keep fewer turns (`prune`, `ids_for`)",
            lambda w: w.disk / 4 <= server.disk,
        ),
        limit(
            f"the server's cores at the peak, {server.cores:.0f}",
            lambda w: w.cores <= server.cores,
            "fewer and larger nodes: their commits hold more turns each",
        ),
        limit(
            f"looks, {server.looks * 100:.0f} % of those cores",
            lambda w: w.look_cores <= looks,
            "look at one counter, and at owners when it moved",
            lambda w: w.counted_cores <= looks,
        ),
        limit(
            f"alarms of ten minutes' standstill found in {server.drain_s:.0f} s",
            lambda w: w.backlog_s <= server.drain_s * server.cores,
            "an index by kind, slot and instant: nothing of others is passed over",
        ),
        limit(
            f"renewals, {server.looks * 100:.0f} % of those cores", lambda w: w.renewal_cores <= looks, "a longer lease"
        ),
    ]
    return sorted(found, key=lambda one: one.nodes)
