"""testing.laws.trying - a module's function called, and what it raised as a value.

For: the one place of the laws that catches everything.
Never: judges what was raised; a law does.
Was wrong once: each law with a net of its own. One of them swallowed what another was to find.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Tried:
    """What a call gave, or what it raised."""

    value: Any
    raised: Exception | None


def tried(function: Callable[..., Any], *args: Any) -> Tried:
    """The call's outcome, whatever it is."""
    try:
        return Tried(function(*args), None)
    except Exception as raised:  # noqa: BLE001 - the door: what a module raises is for a law to judge
        return Tried(None, raised)
