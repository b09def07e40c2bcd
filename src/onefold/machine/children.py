"""machine.children - events between a chart, its children and its parent, within one step.

For: bringing what an actor left for others once it is at rest, in the order it was left: a child starts,
hears, stops. What a child says comes after what its parent is doing, and is heard before the step ends.
Never: keeps a queue beyond the step; every letter is read or its receiver has stopped.
Was wrong once: a child stepped after its parent's step. Its `done` waited for the next event from outside.
"""

from __future__ import annotations

from typing import Any

from onefold.machine.actor import Actor, Phase, Wrong
from onefold.machine.moves import born, take
from onefold.machine.words import DONE_ACTOR, ERROR_ACTOR, Plain


def deliver(actor: Actor, event: Any) -> None:
    """Put an event into an actor's mailbox, and read it unless the actor is just reading another."""
    if actor.phase is Phase.STOPPED:
        return
    actor.mailbox.append(event)
    if actor.phase is Phase.RUNNING and not actor.busy:
        _read(actor)


def start(actor: Actor) -> None:
    """The first step of an actor, and what was sent to it meanwhile."""
    if actor.phase is not Phase.NEW:
        return
    actor.phase = Phase.RUNNING
    actor.busy = True
    born(actor)
    _settle(actor)
    actor.busy = False
    _read(actor)


def _read(actor: Actor) -> None:
    actor.busy = True
    while actor.mailbox and actor.phase is Phase.RUNNING:
        take(actor, actor.mailbox.pop(0))
        _settle(actor)
    actor.busy = False


def _settle(actor: Actor) -> None:
    """Bring what the actor left for others; tell its parent if it is done or has failed."""
    if actor.later:
        _bring(actor)
    if actor.status == "active":
        return
    actor.phase = Phase.STOPPED
    actor.mailbox.clear()
    parent = actor.parent
    if actor.status == "done":
        if parent is not None:
            deliver(parent, Plain(DONE_ACTOR + actor.id, {"actor": actor.id, "output": actor.output}))
        return
    assert actor.cause is not None
    if parent is None:
        raise actor.cause
    deliver(parent, Wrong(ERROR_ACTOR + actor.id, {"actor": actor.id, "error": actor.error}, "", actor.cause))


def _bring(actor: Actor) -> None:
    later, actor.later = actor.later, []
    for thing in later:
        if not isinstance(thing, Actor):
            if isinstance(thing.to, Actor):
                deliver(thing.to, thing.event)
        elif thing.phase is Phase.NEW:
            start(thing)
        else:
            _stop(thing)


def _stop(actor: Actor) -> None:
    """A child whose state was left: it and its children hear nothing any more, and run no exit actions."""
    if actor.phase is Phase.STOPPED:
        return
    actor.phase = Phase.STOPPED
    actor.mailbox.clear()
    for child in actor.children.values():
        if isinstance(child, Actor):
            _stop(child)
