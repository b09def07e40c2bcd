"""testing.broken.reflex_hosts - an app's reflexes with one fault each: facts, principals, keys, alerts.

For: `BROKEN_REFLEX_HOSTS`: every twin, what is put where, and the test that must catch it, by name.
Never: is broken in two places.
Was wrong once: tests of the wiring that no fault of the wiring had ever failed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from onefold.host.reflexing import Reflexing
from onefold.kernel.fold import Folded
from onefold.node.resident import Resident
from onefold.reflex.words import Write

_numbers = count()
_kept: set[asyncio.Task[None]] = set()


@dataclass(frozen=True, slots=True)
class BrokenReflexHost:
    """A twin. `parts`: what stands where, by dotted name. seen_by: the test that falls over it."""

    name: str
    seen_by: str
    parts: Mapping[str, Any] = field(repr=False)


def _published_nowhere(space: Any) -> None:
    return None


def _published_afterwards(self: Reflexing, resident: Resident, folded: Folded) -> None:
    """By whoever saw the commit."""
    module, at = resident.module, resident.at
    for fact in folded.facts:
        if type(fact) in module.published:
            row = {"key": at.key, "seq": folded.seq, **module.codecs.fact.to_json(fact)}
            told = Write(f"{module.name}.{type(fact).__name__}", "insert", row)
            task = asyncio.get_running_loop().create_task(_ingest(self, told, at.principal))
            _kept.add(task)
            task.add_done_callback(_kept.discard)


async def _ingest(reflexing: Reflexing, fact: Write, principal: str | None) -> None:
    from onefold.terms.instant import moment

    await (await reflexing.engine()).ingest(fact, principal, now=moment(reflexing._core.clock.now()))


async def _owned_by_all(*given: Any, **more: Any) -> None:
    return None


def _everybodys(caller: Any) -> None:
    return None


def _fresh(*given: Any) -> str:
    """Another each time."""
    return f"key {next(_numbers)}"


BROKEN_REFLEX_HOSTS: tuple[BrokenReflexHost, ...] = (
    BrokenReflexHost(
        "publishes after the commit",
        "test_what_was_under_way_is_taken_up_after_a_crash",
        {
            "onefold.host.core.publisher": _published_nowhere,
            "onefold.host.reflexing.Reflexing.heard": _published_afterwards,
        },
    ),
    BrokenReflexHost(
        "lets anybody fire anything",
        "test_firing_needs_operate_and_ones_own_principal_also_of_a_disarmed_reflex",
        {"onefold.host.reflexes.ReflexVerbs._own": _owned_by_all},
    ),
    BrokenReflexHost(
        "shows everybody's rows",
        "test_nobody_sees_anothers_rows_and_an_operator_sees_all",
        {"onefold.host.caller.Caller.whose": property(_everybodys)},
    ),
    BrokenReflexHost(
        "delivers under another key each time",
        "test_an_event_is_delivered_once_also_when_the_process_dies_after_the_fold",
        {"onefold.host.reflex_effects._within": _fresh},
    ),
    BrokenReflexHost(
        "tells of what is parked at each look",
        "test_a_chain_without_an_end_is_parked_told_of_once_and_let_pass_by_a_person",
        {"onefold.host.reflex_alerts._once": _fresh},
    ),
    BrokenReflexHost(
        "takes a replayed signal for another",
        "test_a_signed_signal_is_a_fact_of_its_own_principal_and_a_replay_is_answered_without_acting",
        {"onefold.serve.facts.delivery_id": _fresh},
    ),
)
