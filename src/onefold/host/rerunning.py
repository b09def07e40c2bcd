"""host.rerunning - the verb that begins a run from a prefix of another's journal.

For: `runs.fork`: what the steps before gave goes along, the step and all after it run anew under new keys.
Never: starts work as somebody else; touches the run it began with.
Was wrong once: the same run cut back. What it had done was gone, and nobody could compare the two.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from onefold.actuators.forking import begun, prefix
from onefold.actuators.receipt import Receipt
from onefold.actuators.words import Begun, Fork, Started
from onefold.host.caller import Caller
from onefold.host.core import Core
from onefold.host.deciding import decided
from onefold.kernel.tables import TURN
from onefold.node.waking import row_of
from onefold.store.contract import Query
from onefold.terms.codec import canonical, digest
from onefold.terms.errors import BadArguments, Contended, Fault, KeyConflict, NotFound
from onefold.terms.ids import ActorId, check_text, door_id, run_id, run_id_random


class RerunVerbs:
    """The verb `run_fork`. `_core` is the opened application, `_chance(n)` gives n unguessable bytes."""

    _core: Core
    _chance: Callable[[int], bytes]
    _actor: Callable[[str, Caller], Awaitable[ActorId]]
    _remember: Callable[[str, ActorId], None]
    receipt: Callable[..., Awaitable[Receipt]]

    async def run_fork(self, run: str, from_step: str, *, key: str | None = None, caller: Caller) -> Receipt:
        """Begin a run that goes on from a step of this one. The same key with the same request is the same run.

        Raises: NotFound, BadArguments (no such step, or one whose name several calls have), KeyConflict.
        """
        source = await self._actor(run, caller)
        if source.principal != caller.principal:
            raise NotFound("run", run)  # nobody starts work as another
        actuator = self._core.catalog.actuator(source.kind)
        name, chance = actuator.name, self._chance(16)
        new = run_id_random(name, chance) if key is None else run_id(caller.principal, name, check_text(key, "key"))
        target, asked = ActorId(name, caller.principal, new), digest(canonical({"fork": run, "from": from_step}))
        facts = await self._facts(source)
        state = await self._core.node.read(source)
        started = next((fact for fact in facts if isinstance(fact, Started)), None)
        if started is None:
            raise NotFound("run", run)
        fork = Fork(begun(started, new, key), prefix(facts, state, from_step), chance.hex())
        decide = partial(decided, actuator.module.decide, fork)
        try:
            reply: Begun = await self._core.fold(target, door_id("start"), asked, fork, decide, probe=key is not None)
        except KeyConflict:
            raise KeyConflict(key or new) from None
        except Contended:
            told = f"an unfinished run agrees with it in {', '.join(actuator.dedupe_by)}; end that one first"
            raise BadArguments([Fault("run", told, run)], nothing_was="forked") from None
        self._remember(reply.run, target)
        self._core.point("before-reply")
        return await self.receipt(reply.run, caller=caller)

    async def _facts(self, at: ActorId) -> list[Any]:
        """Every fact of a run, oldest first; long values as its rows have them."""
        kind = self._core.node.kind(at.kind)
        space = await self._core.space(kind.home.name)
        (actors,) = await space.look(row_of(at))
        if not actors:
            return []
        (turns,) = await space.look(Query(TURN, where=(("actor", "=", actors[0][0]),), order=("n",)))
        read = kind.module.codecs.fact.decode_many
        return [fact for row in turns for fact in read(row[TURN.at["facts"]])]
