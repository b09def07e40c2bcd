"""Short ways to write, for the store's own tests."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from onefold.store.contract import Answer, Body, Last, Row, Space, Verb, Write
from tests.store.tables import TURN


def writing(*writes: Write) -> Body[Any]:
    """A body that asks nothing."""

    def body() -> Generator[tuple[Verb, ...], tuple[Answer, ...], Last[Any]]:
        yield from ()
        return Last(writes, None)

    return body


def turn(space: Space, actor: int, event: str, prev: int | None = None, facts: bytes | None = None) -> Row:
    return (space.mint(TURN), actor, prev, event, facts)
