"""bench.scale.happenings - what befalls a fleet of a thousand nodes, as one world and as forty.

For: `told(shape)`: a join, a leave, a crash, the loss of a tenth, and two ways to restart everything.
Never: draws twice from one seed for two things.
Was wrong once: the loss of a tenth as a tenth of the worlds. Machines fail by racks, and a rack has a node of every world.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from random import Random

from bench.scale.beats import BEAT_S, START_S, Fleet
from bench.scale.rendezvous import Ranking, spread
from bench.scale.worlds import slots_for

NODES = 1_000
LOST = 100
WORLDS = 40
AT_ONCE = 40  # nodes that are restarted at a time, over all worlds
SETTLED_S = 2 * BEAT_S  # after a join, until the next goes
SEED = 62


@dataclass(frozen=True, slots=True)
class Shape:
    """Equal worlds of so many nodes."""

    worlds: int
    nodes: int

    @property
    def slots(self) -> int:
        return slots_for(self.nodes)


SHAPES = (Shape(WORLDS, NODES // WORLDS), Shape(1, NODES))


@dataclass(frozen=True, slots=True)
class Happened:
    """As beats.Told, over all worlds. fullest: slots of the fullest node over the mean, in the end."""

    what: str
    moved: int
    commits: int
    waited: float
    longest: float
    took: float
    fullest: float


@cache
def ranking(world: int, nodes: int) -> Ranking:
    """With one node to spare."""
    return Ranking([f"{world}/{place}" for place in range(nodes + 1)], slots_for(nodes))


def happened(what: str, worlds: Sequence[Fleet]) -> Happened:
    told = [fleet.run() for fleet in worlds]
    return Happened(
        what,
        sum(one.moved for one in told),
        sum(one.commits for one in told),
        sum(one.waited for one in told),
        max(one.longest for one in told),
        max(one.took for one in told),
        max(fleet.spread for fleet in worlds),
    )


def begun(shape: Shape, seed: int, *, telling: bool = True) -> list[Fleet]:
    """All worlds, at rest."""
    return [
        Fleet(ranking(world, shape.nodes), shape.nodes, seed + world, spare=1, telling=telling)
        for world in range(shape.worlds)
    ]


def joined(shape: Shape) -> Happened:
    worlds = begun(shape, SEED)
    worlds[0].join(shape.nodes)
    return happened("a node joins", worlds)


def left(shape: Shape) -> Happened:
    worlds = begun(shape, SEED + 1_000)
    worlds[0].leave(3)
    return happened("a node leaves", worlds)


def died(shape: Shape, lost: int) -> Happened:
    worlds = begun(shape, SEED + 2_000 + lost)
    every = [(fleet, place) for fleet in worlds for place in range(shape.nodes)]
    gone = Random(SEED).sample(every, lost) if lost > 1 else [every[3]]  # noqa: S311 - who dies in a simulation, from its seed
    for fleet, place in gone:
        fleet.die(place)
    return happened("a node dies" if lost == 1 else f"{lost} nodes die at once", worlds)


def rolled(shape: Shape, *, handing: bool, telling: bool = True, at_once: int = AT_ONCE) -> Happened:
    """Every node is restarted, so many at a time over all worlds."""
    worlds = begun(shape, SEED + 3_000, telling=telling)
    for fleet in worlds:
        waiting = iter(range(shape.nodes))
        for chain in range(at_once // shape.worlds):
            fleet.at(fleet.now + chain * BEAT_S / at_once, partial(_next, fleet, waiting, handing))
    how = "each hands over first" if handing else "each is back in two seconds"
    how += "" if telling else ", and tells nobody"
    return happened(f"all are restarted, {how}", worlds)


def _next(fleet: Fleet, waiting: Iterator[int], handing: bool) -> None:
    place = next(waiting, None)
    if place is None:
        return
    then: Callable[[], None] = partial(_next, fleet, waiting, handing)

    def back() -> None:
        fleet.join(place)
        fleet.at(fleet.now + SETTLED_S, then)

    if handing:
        fleet.leave(place, lambda: fleet.at(fleet.now + START_S, back))
    else:
        fleet.again(place)
        fleet.at(fleet.now + START_S + SETTLED_S, then)


@cache
def told(shape: Shape) -> Sequence[Happened]:
    """All of it, in order."""
    return (
        joined(shape),
        left(shape),
        died(shape, 1),
        died(shape, LOST),
        rolled(shape, handing=True),
        rolled(shape, handing=True, telling=False),
        rolled(shape, handing=False),
    )


def evenness(nodes: int, slots: int) -> float:
    """The fullest of so many nodes over the mean."""
    ranked = Ranking([f"even/{place}" for place in range(nodes)], slots, depth=1)
    counts = [0] * nodes
    for first, *_rest in ranked.ranks:
        counts[first] += 1
    return spread(counts)
