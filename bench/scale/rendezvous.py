"""bench.scale.rendezvous - who is wanted for which slot: of all nodes that stay the one with the highest score.

For: `Ranking`, the nodes of one world by score for each slot, made once; `spread`, the fullest node over the mean.
Never: is the fleet's own code, which scores one node and one slot at a time; sixteen million of those are nine seconds.
Was wrong once: a modulo. One node more moved every slot but a handful.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Collection, Sequence
from heapq import nlargest

DEPTH = 24  # of a slot's ranking that is kept: a tenth of all may go at once, a hundredth of a slot's billion chances


def scores(node: str, slots: int) -> array[int]:
    """A node's score for each slot: one stream of chance from its name."""
    words = array("Q")
    words.frombytes(hashlib.shake_128(node.encode()).digest(8 * slots))
    return words


class Ranking:
    """ranks: of each slot the nodes that are wanted for it, by their place in `nodes`, the first one first. near: of
    each node the slots whose ranking has it.
    """

    def __init__(self, nodes: Sequence[str], slots: int, depth: int = DEPTH) -> None:
        tables = [scores(node, slots) for node in nodes]
        places = range(len(nodes))
        self.slots = slots
        self.ranks: list[Sequence[int]] = [
            nlargest(depth, places, key=column.__getitem__) for column in zip(*tables, strict=True)
        ]
        self.near: list[list[int]] = [[] for _ in nodes]
        for slot, ranked in enumerate(self.ranks):
            for node in ranked:
                self.near[node].append(slot)

    def wanted(self, slot: int, staying: Collection[int]) -> int:
        """Whose the slot is to be. Raises: LookupError, where all that are known are gone."""
        for node in self.ranks[slot]:
            if node in staying:
                return node
        raise LookupError(slot)


def spread(counts: Collection[int]) -> float:
    """The fullest over the mean; 0 of nobody."""
    total = sum(counts)
    return max(counts) * len(counts) / total if total else 0.0
