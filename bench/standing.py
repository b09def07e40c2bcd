"""bench.standing - contenders found, started, and standing still until it is their turn.

For: sets of contenders that are measured in interleaved rounds.
Never: fails because one of them cannot be had: it is a line in `failed`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from bench import places
from bench.child import Child, Failed
from bench.places import Missing, log
from bench.scenes import module

Gaps = dict[str, str]
Made = Mapping[str, Callable[[], list[str]]]


def peer(name: str, *words: object) -> list[str]:
    """The command of a contender that runs in the peers' environment. Raises: Missing."""
    return [places.peers_python(), *module(name, *words)[1:]]


def had(made: Made, failed: Gaps) -> dict[str, list[str]]:
    """The commands of those that can be had here."""
    found: dict[str, list[str]] = {}
    for name, make in made.items():
        try:
            found[name] = make()
        except Missing as missing:
            failed[name] = str(missing)
    return found


@contextmanager
def standing(made: Made, failed: Gaps) -> Iterator[dict[str, Child]]:
    """Every contender, standing still; ended with the block."""
    children: dict[str, Child] = {}
    try:
        for name, command in had(made, failed).items():
            try:
                children[name] = Child(name, command, log(name))
            except Failed as fault:
                failed[name] = str(fault)
                continue
            children[name].stand()
        yield children
    finally:
        for child in children.values():
            child.close()
