"""fleet.planning - which node should own which name, and what one node does about it on a beat. Pure.

For: the same wish on every node that sees the same nodes, with as little moved as may be when one comes or goes.
Never: decides by itself: each move is checked against the rows by the transaction that makes it.
Was wrong once: each node took what was free up to its fair share. Two that started together took every other slot from
each other for a minute.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from onefold.fleet.ownership import LIVE, NOBODY, SPACE, Me, Seen

REMEMBERED = 8  # sets of nodes whose wishes are kept
SCORED = 1_024  # nodes whose scores are kept: eight bytes for each name


@dataclass(frozen=True, slots=True)
class Plan:
    """close: nodes whose lease seems over. take: free names, and the epoch they were seen at. hand: names of this node
    that another is to own: the epoch, and that node's life. lapsed: actors' names whose own lease seems over.
    """

    close: Sequence[str] = ()
    take: Mapping[str, int] = field(default_factory=dict)
    hand: Mapping[str, tuple[int, Me]] = field(default_factory=dict)
    lapsed: Mapping[str, int] = field(default_factory=dict)


def score(node: str, name: str) -> int:
    """How much a node is wanted for a name: the highest wins, and losing a node moves only what it had."""
    return int.from_bytes(hashlib.blake2b(f"{node}\0{name}".encode(), digest_size=8).digest(), "big")


@lru_cache(maxsize=SCORED)
def scores(node: str, names: tuple[str, ...]) -> array[int]:
    """A node's score for each of the names. Reckoned once a node: fifty nodes and a thousand slots are thirty ms of the
    loop, which stood still for it on every node whenever one came or went."""
    return array("Q", [score(node, name) for name in names])


@lru_cache(maxsize=REMEMBERED)
def wishes(nodes: frozenset[str], names: tuple[str, ...]) -> Mapping[str, str]:
    """Which of the nodes is to own each name."""
    order = sorted(nodes)
    of_names = zip(*[scores(node, names) for node in order], strict=True)
    return {name: order[of.index(max(of))] for name, of in zip(names, of_names, strict=True)} if order else {}


def plan(me: Me, seen: Seen, names: tuple[str, ...]) -> Plan:
    """What this node does, by what it saw. `names`: all that are spread over the fleet."""
    close = [
        node.name
        for node in seen.nodes.values()
        if node.state != "closed" and node.until <= seen.now and node.name != me.name
    ]
    stay = staying(seen, me)
    slots, spaces = _sorts(names)
    told = frozenset(name for name in stay if seen.nodes[name].url is not None)
    wanted = {**wishes(stay, slots), **wishes(told or stay, spaces)}  # who has a file is asked what is in it
    take: dict[str, int] = {}
    hand: dict[str, tuple[int, Me]] = {}
    for name, to in wanted.items():
        row = seen.owners.get(name)
        if row is not None and row.belongs(me):
            by_hand = seen.leases.get(name, 0) > seen.now and me.name in stay  # it was claimed, and is kept as long
            if to != me.name and not by_hand:
                hand[name] = (row.epoch, Me(to, seen.nodes[to].incarnation))
        elif to == me.name and (row is None or row.node == NOBODY or not seen.alive(row.node, row.incarnation)):
            take[name] = 0 if row is None else row.epoch
    return Plan(close, take, hand, _lapsed(seen, set(names)))


@lru_cache(maxsize=REMEMBERED)
def _sorts(names: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Slots, and spaces of which one process has the file."""
    spaces = tuple(name for name in names if name.startswith(SPACE))
    return tuple(name for name in names if not name.startswith(SPACE)), spaces


def staying(seen: Seen, me: Me) -> frozenset[str]:
    """The nodes that live and mean to stay."""
    return frozenset(
        node.name
        for node in seen.nodes.values()
        if node.state == LIVE and (node.until > seen.now or (node.name, node.incarnation) == (me.name, me.incarnation))
    )


def _lapsed(seen: Seen, spread: Iterable[str]) -> dict[str, int]:
    """Actors' names whose owner died, or whose own lease is over: they fall back to the owner of their slot."""
    over: dict[str, int] = {}
    for name, row in seen.owners.items():
        if name in spread or row.node == NOBODY:
            continue
        until = seen.leases.get(name, 0)
        if not seen.alive(row.node, row.incarnation) or 0 < until <= seen.now:
            over[name] = row.epoch
    return over
