"""host.forking - the verb that begins an actor with a prefix of another's facts.

For: reading the source's committed facts, and folding them into a new actor as one event.
Never: crosses a principal; forks a run (runs.fork does); folds into an actor that has a history.
Was wrong once: the prefix read again for a repeat. The source had gone on meanwhile, and the same id gave
another digest; what is asked for is digested, and the first answer is kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from onefold.host.caller import Caller
from onefold.host.core import Core
from onefold.kernel.fork import ANSWER, Prefix, begins, check_upto, forked
from onefold.kernel.module import Module
from onefold.kernel.prune import older
from onefold.kernel.reading import Unreadable
from onefold.kernel.rebuild import GROWTH, PAGE, newest
from onefold.kernel.tables import TURN
from onefold.kernel.words import Forked
from onefold.node.waking import row_of
from onefold.terms.codec import canonical, digest
from onefold.terms.errors import CallerError, NotFound, WaitsForCode
from onefold.terms.ids import ActorId, check_text, door_id

AnyModule = Module[Any, Any, Any, Any, Any]


class ForkVerbs:
    """The verb `fork`. `_core` is the opened application."""

    _core: Core

    async def fork(
        self, module: AnyModule, key: str, to: str, *, id: str, upto: int | None = None, caller: Caller
    ) -> str:
        """Begin the actor `to` with the facts of `key`, all of them or the first `upto`; their digest in hex.

        The same id with the same request gives the first answer, whatever the source has become. Raises:
        NotFound, BadArguments (a target with a history, facts that are not there or were pruned), KeyConflict,
        TooLarge.
        """
        found = self._core.node.kind(module.name).module
        source = ActorId(found.name, caller.principal, check_text(key, "key"))
        target = ActorId(found.name, caller.principal, check_text(to, "to"))
        word = {"do": "fork", "from": source.key, "id": check_text(id, "id"), "upto": upto}
        answer: str = await self._core.at_owner(target, word, partial(self._fork, target, word))
        self._core.point("before-reply")
        return answer

    async def _fork(self, target: ActorId, word: Mapping[str, Any]) -> str:
        """As `fork`, into an actor of this process."""
        self._core.node.mine(target)
        found = self._core.node.kind(target.kind).module
        key, upto = word["from"], word["upto"]
        asked = digest(canonical({"fork": key, "to": target.key, "upto": upto}))
        try:
            source = ActorId(target.kind, target.principal, key)
            decide = partial(begins, await self._carried(found, source, upto))
        except (CallerError, WaitsForCode) as fault:
            decide = partial(_refuse, fault)  # unless the id was folded before: its answer is asked for first
        answer: str = await self._core.node.fold(target, door_id(word["id"]), asked, decide, reads=ANSWER)
        return answer

    async def _carried(self, module: AnyModule, source: ActorId, upto: int | None) -> Forked[Any]:
        space = (await self._core.node.kind(source.kind).home.open()).space
        (actors,) = await space.look(row_of(source))
        (turns,) = await space.look(newest(int(actors[0][0] or 0))) if actors else ([],)
        if not turns or not turns[0][TURN.at["seq"]]:
            raise NotFound(source.kind, source.key)
        prefix = Prefix(module, check_upto(upto, int(turns[0][TURN.at["seq"]] or 0)))
        prefix.add(turns)
        limit = PAGE * GROWTH
        while not prefix.done and prefix.at is not None:
            (turns,) = await space.look(older(int(actors[0][0] or 0), prefix.at, limit))
            if not turns:
                break
            prefix.add(turns)
        try:
            return forked(module, prefix.carried())
        except Unreadable as fact:
            raise WaitsForCode(source.kind, source.key, fact.kind, fact.why) from None


def _refuse(fault: CallerError | WaitsForCode, _state: Any, _now: Any) -> Forked[Any]:
    raise fault
