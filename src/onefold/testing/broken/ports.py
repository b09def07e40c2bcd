"""testing.broken.ports - ports with one fault each, which the suite of ports must find.

For: `BROKEN_PORTS`, and `SOUND_PORTS` beside them: the same provider, used rightly.
Never: used for anything but showing that the suite has teeth.
Was wrong once: a twin with two faults. The check for one of them could have held nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from onefold.kernel.port import Port, Step, dedupes, lookup, neither


@dataclass(frozen=True)
class Payment:
    amount: int


@dataclass(frozen=True)
class Receipt:
    number: int
    notes: list[str]


@dataclass
class Provider:
    """The other side: it acts, and keeps what it was told under each key."""

    acts: int = 0
    kept: dict[str, Receipt] = field(default_factory=dict)

    def act(self, notes: Any = None) -> Receipt:
        self.acts += 1
        return Receipt(self.acts, [] if notes is None else notes)

    def once(self, key: str) -> Receipt:
        if key not in self.kept:
            self.kept[key] = self.act()
        return self.kept[key]


Make = Callable[[Provider], Callable[[], Port[Any, Any]]]


@dataclass(frozen=True)
class Twin:
    """A port over a provider. caught_by: names of checks; all of them must fall over it."""

    name: str
    make: Make
    caught_by: tuple[str, ...] = ()


def _deduping(act: Callable[[Provider, Step, Payment], Any]) -> Make:
    """A port that says it dedupes, acting so."""

    def over(provider: Provider) -> Callable[[], Port[Any, Any]]:
        def made() -> Port[Any, Any]:
            @dedupes("pay")
            async def pay(step: Step, body: Payment) -> Receipt:
                found: Receipt = act(provider, step, body)
                return found

            return pay

        return made

    return over


def _looking(find: Callable[[Provider, Step], Receipt | None]) -> Make:
    """A port whose provider ignores keys, and can be asked so."""

    def over(provider: Provider) -> Callable[[], Port[Any, Any]]:
        async def found(step: Step, body: Payment) -> Receipt | None:
            return find(provider, step)

        @lookup("pay", find=found)
        async def pay(step: Step, body: Payment) -> Receipt:
            provider.kept[step.key] = receipt = provider.act()
            return receipt

        return lambda: pay

    return over


def _neither(acts: int) -> Make:
    def over(provider: Provider) -> Callable[[], Port[Any, Any]]:
        @neither("pay")
        async def pay(step: Step, body: Payment) -> Receipt:
            for _ in range(acts - 1):
                provider.act()
            return provider.act()

        return lambda: pay

    return over


def _in_memory(provider: Provider) -> Callable[[], Port[Any, Any]]:
    def made() -> Port[Any, Any]:
        done: dict[str, Receipt] = {}

        @dedupes("pay")
        async def pay(step: Step, body: Payment) -> Receipt:
            if step.key not in done:
                done[step.key] = provider.act()
            return done[step.key]

        return pay

    return made


def _looks_first(provider: Provider) -> Callable[[], Port[Any, Any]]:
    @dedupes("pay")
    async def pay(step: Step, body: Payment) -> Receipt:
        known = provider.kept.get(step.key)
        if known is None:
            await asyncio.sleep(0)
            provider.kept[step.key] = known = provider.act()
        return known

    return lambda: pay


def _unasked(provider: Provider) -> Callable[[], Port[Any, Any]]:
    async def pay(step: Step, body: Payment) -> Receipt:
        return provider.once(step.key)

    return lambda: Port("pay", "lookup", pay)


def _asked_acts(provider: Provider, step: Step) -> Receipt | None:
    found = provider.kept.get(step.key)
    provider.act()
    return found


def _renumbered(provider: Provider, step: Step, body: Payment) -> Receipt:
    known = step.key in provider.kept
    receipt = provider.once(step.key)
    return Receipt(-receipt.number, []) if known else receipt


SOUND_PORTS = (
    Twin("dedupes", _deduping(lambda provider, step, body: provider.once(step.key))),
    Twin("lookup", _looking(lambda provider, step: provider.kept.get(step.key))),
    Twin("neither", _neither(1)),
)

REPEAT, RESTART = "the same key twice is one effect", "the same key after a restart is one effect"
AT_ONCE, AFTER = (
    "the same key twice at once is one effect",
    "killed after it was sent, it acts once and is answered once",
)

BROKEN_PORTS = (
    Twin("ignores the key", _deduping(lambda provider, step, body: provider.act()), (REPEAT, RESTART, AT_ONCE, AFTER)),
    Twin(
        "a key an attempt",
        _deduping(lambda provider, step, body: provider.once(f"{step.key}/{step.attempt}")),
        (REPEAT, RESTART),
    ),
    Twin(
        "knows a repeat by its body",
        _deduping(lambda provider, step, body: provider.once(str(body))),
        ("two keys are two effects, also with the same body",),
    ),
    Twin("remembers in memory", _in_memory, (RESTART,)),
    Twin("looks, then acts", _looks_first, (AT_ONCE,)),
    Twin("answers the repeat otherwise", _deduping(_renumbered), ("the same key twice gets the first answer",)),
    Twin(
        "gives a tuple for a list",
        _deduping(lambda provider, step, body: provider.act(("note",))),
        ("a body and an answer come back from their bytes as they were",),
    ),
    Twin(
        "acts twice",
        _neither(2),
        ("one call is one effect", "killed after it was sent, it acts once and waits for a person"),
    ),
    Twin("finds nothing", _looking(lambda provider, step: None), ("what was sent is found, with its answer", AFTER)),
    Twin(
        "finds what was never sent",
        _looking(lambda provider, step: provider.kept.get(step.key, Receipt(0, []))),
        (
            "what was never sent is not found",
            "killed before it was sent, it acts once and is answered once",
        ),
    ),
    Twin("acts when it is asked", _looking(_asked_acts), ("looking is no effect",)),
    Twin("cannot be asked", _unasked, ("it can be asked",)),
)
