"""reflex.loops - knots in a graph of numbers, and one loop through a knot.

For: strongly connected parts of any size in one pass over the arrows (Tarjan), and a shortest loop (breadth first).
Never: knows what a number stands for; recurses, since a chain may be a hundred thousand long.
Was wrong once: a search from each node. It was quick on the ten reflexes of a test.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from typing import TypeAlias

Graphed: TypeAlias = "list[list[int]]"
"""For each number, those it leads to."""


def loops(graphed: Graphed) -> list[list[int]]:
    """The knots: parts in which each leads to each, and those that lead to themselves; in the order of their least."""
    index = [0] * len(graphed)  # 0: not seen
    low = [0] * len(graphed)
    on_stack = bytearray(len(graphed))
    stack: list[int] = []
    found: list[list[int]] = []
    seen = 0
    for root in range(len(graphed)):
        if index[root]:
            continue
        path = [(root, iter(graphed[root]))]
        seen += 1
        index[root] = low[root] = seen
        stack.append(root)
        on_stack[root] = 1
        while path:
            n, rest = path[-1]
            for to in rest:
                if not index[to]:
                    seen += 1
                    index[to] = low[to] = seen
                    stack.append(to)
                    on_stack[to] = 1
                    path.append((to, iter(graphed[to])))
                    break
                if on_stack[to] and index[to] < low[n]:
                    low[n] = index[to]
            else:
                path.pop()
                if path and low[n] < low[path[-1][0]]:
                    low[path[-1][0]] = low[n]
                if low[n] == index[n]:
                    _knot(n, stack, on_stack, graphed, found)
    return sorted(found)


def _knot(n: int, stack: list[int], on_stack: bytearray, graphed: Graphed, found: list[list[int]]) -> None:
    """Take the part that ends with `n` off the stack, and keep it if something in it leads back."""
    part: list[int] = []
    while not part or part[-1] != n:
        part.append(stack.pop())
        on_stack[part[-1]] = 0
    if len(part) > 1 or n in graphed[n]:
        found.append(sorted(part))


def ring(graphed: Graphed, knot: Collection[int], start: int) -> list[int]:
    """A shortest way from `start` back to it within its knot, without the return."""
    before: dict[int, int] = {}
    waiting = deque([start])
    while waiting:
        n = waiting.popleft()
        for to in graphed[n]:
            if to == start:
                way = [n]
                while way[-1] != start:
                    way.append(before[way[-1]])
                return way[::-1]
            if to in knot and to not in before:
                before[to] = n
                waiting.append(to)
    return [start]
