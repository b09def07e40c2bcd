"""The same asked of two nodes: of the owner of the actors, and of the other one.

For: `Side`, an app that is asked with keys whose actors one node owns; `assert_alike`, a scenario through both sides of each
owner, whose answers and refusals must be the same word for word.
Never: compares what is drawn by lot: instants are no matter, ids of runs and long digests are numbered in the order they came.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count, zip_longest
from pathlib import Path
from typing import Any

import pytest

from onefold import App
from onefold.fleet.ownership import space_name
from onefold.terms.errors import OnefoldError
from onefold.terms.ids import run_id
from tests.contracts.backends import store_of
from tests.fleet.nodes import SECRET, Fleet, Node, fleet_of

STORES = ("postgres", "sqlite")
_INSTANT = re.compile(
    r"datetime\.datetime\([^()]*(?:\([^()]*\))*[^()]*\)|\d{4}-\d\d-\d\dT[0-9:.]+Z|since=\d+|\b1\d{12}\b"
    r"|\d{4}-\d\d-\d\d \d\d:\d\d:[0-9.]+\+00:00"
)
_DRAWN = re.compile(r"run_[0-9a-z]{8,}|[0-9a-f]{32,}| object at 0x[0-9a-f]+|\bfact[_:]\d+|\bref \d+")
_NUMBERS = iter(count())


@dataclass
class Side:
    """`asked`: whose app is asked. `owner`: whose actors they are."""

    asked: Node
    owner: Node
    told: list[str] = field(default_factory=list)
    _names: dict[str, str] = field(default_factory=dict)

    @property
    def app(self) -> App:
        return self.asked.app

    def key(self, kind: str, principal: str | None = None) -> str:
        """A fresh key whose actor is the owner's."""
        return self._named(next(k for n in _NUMBERS if self.owner.owns(kind, k := f"k{n}x", principal)), kind)

    def call_key(self, actuator: str, principal: str | None = None) -> str:
        """A fresh key whose run is the owner's."""
        keys = (f"c{n}x" for n in _NUMBERS)
        run = (k for k in keys if self.owner.owns(actuator, run_id(principal, actuator, k), principal))
        return self._named(next(run), actuator)

    def free(self) -> str:
        """A fresh text, of whatever is spread over nobody."""
        return self._named(f"f{next(_NUMBERS)}x", "free")

    def _named(self, key: str, kind: str) -> str:
        self._names[key] = f"<{kind} {len(self._names)}>"
        return key

    async def ask(self, of: Awaitable[Any]) -> Any:
        """Keep what it gives or how it is refused; what it gave, or the fault."""
        try:
            given: Any = await of
        except (OnefoldError, TypeError, TimeoutError) as fault:
            fields = sorted(fault.fields.items()) if isinstance(fault, OnefoldError) else []
            self.keep(type(fault).__name__, str(fault), fields)
            return fault
        self.keep(given)
        return given

    def keep(self, *what: Any) -> None:
        said = " ".join(f"{one!r}" for one in what)
        for key, name in self._names.items():
            said = said.replace(key, name)
        said, drawn = _INSTANT.sub("<instant>", said), dict[str, str]()
        self.told.append(_DRAWN.sub(lambda met: drawn.setdefault(met[0], f"<drawn {len(drawn)}>"), said))


Scenario = Callable[[Side], Awaitable[None]]


async def assert_alike(fleet: Fleet, scenario: Scenario, *, owners: Sequence[Node] | None = None) -> None:
    """Near and far say the same."""
    nodes = list(fleet.nodes.values())
    for owner in owners or nodes:
        sides = [Side(asked, owner) for asked in (owner, *(node for node in nodes if node is not owner))]
        for side in sides:
            await scenario(side)
        near = sides[0].told
        for side in sides[1:]:
            apart = [pair for pair in zip_longest(near, side.told) if pair[0] != pair[1]]
            told = "\n".join(f"  near: {one}\n  far:  {other}" for one, other in apart)
            assert not apart, f"{scenario.__name__}: of {owner.name}, asked of {side.asked.name}\n{told}"


def having(fleet: Fleet, *actuators: str) -> list[Node]:
    """Who owns runs of these: each node, or whoever has the file in a folder. All of these are one node's there."""
    nodes = list(fleet.nodes.values())
    standing = nodes[0].part.membership.standing
    if not standing.apart:
        return nodes
    found = {standing.node_with(space_name(name)) for name in actuators}
    names = {row.name for row in found if row is not None}
    return [node for node in nodes if node.name in names]


@asynccontextmanager
async def fleet_on(kind: str, folder: Path, monkeypatch: pytest.MonkeyPatch, *parts: Any) -> AsyncIterator[Fleet]:
    monkeypatch.setenv("ONEFOLD_SECRET", SECRET)
    async with fleet_of(*parts, store=store_of(kind, folder)) as fleet:
        yield fleet
