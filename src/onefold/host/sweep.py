"""host.sweep - what is kept for a time only: replies, ids with a window, ended runs.

For: `sweep` as somebody asks for it, and the same a little at each beat where the settings or a module say so.
Never: sweeps what nobody declared a time for; takes a fact of a module; frees the key of a run.
Was wrong once: one sweep at night. It held every fold of the space until it was through. And runs swept by whichever node
came to them: another had them in memory, and went on with what was no longer there.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from onefold.actuators.forgetting import ENDED, ended, forgotten, over, questions, started_by
from onefold.actuators.tables import RUN
from onefold.host.caller import Caller
from onefold.host.core import MAIN, Core
from onefold.host.guards import of_all
from onefold.host.reflexing import Reflexing
from onefold.host.rounds import Round
from onefold.kernel.tables import TURN
from onefold.node import sweeping
from onefold.node.owning import Guard
from onefold.store.contract import Answer, AuthorSpace, Last, Query, Refused, Row, Unknown, Verb
from onefold.terms.errors import BadArguments, Fault, OnefoldError, OutcomeUnknown, OwnedElsewhere
from onefold.terms.ids import ActorId, principal_of
from onefold.terms.instant import FIRST, Instant, moment

LOOKS = 32  # commits of each sweep at a beat: 16,000 turns in half a minute, and nobody waits for them
FORGET = "forget"  # the act of an owner
RUNS = 32  # runs of one look and one commit: all rows of a run go together, and a long one has thousands

log = logging.getLogger("onefold.sweep")


@dataclass(frozen=True, slots=True)
class Swept:
    """How many replies, ended runs, settled reflex runs and delivered facts were taken away, or would be."""

    replies: int = 0
    runs: int = 0
    reflex_runs: int = 0
    intake: int = 0


class SweepVerbs:
    """Sweeping on request. `_core` is the opened application."""

    _core: Core
    _reflexing: Reflexing
    _forget_run: Callable[[str], None]

    async def sweep(
        self,
        *,
        runs: int | None = None,
        replies: int | None = None,
        reflex_runs: int | None = None,
        intake: int | None = None,
        dry_run: bool = False,
        caller: Caller,
    ) -> Swept:
        """Take away replies of modules, ended runs, settled reflex runs and delivered facts that are older than so many
        milliseconds. What is not said is taken from the settings, where nothing is said at all. dry_run: only count.

        Raises: BadArguments when neither says anything; StoreUnavailable, OutcomeUnknown: what was swept is swept.
        """
        caller.need("operate", "sweeping")
        said = (runs, replies, reflex_runs, intake)
        if said == (None,) * 4:
            kept = self._core.config.retention
            said = (kept.runs, kept.replies, kept.reflex_runs, kept.intake)
        if said == (None,) * 4:
            problem = 'say how long "runs", "replies", "reflex_runs" or "intake" are kept'
            raise BadArguments([Fault("", problem)], nothing_was="swept")
        runs, replies, reflex_runs, intake = said
        now = self._core.clock.now()
        told, ended_runs = 0, 0
        if replies is not None:
            space = await self._core.space(MAIN)
            told = (
                await sweeping.replies(space, of_all(self._core.standing, MAIN), now - replies, now, dry=dry_run)
            ).count
        if runs is not None:
            for name in tuple(self._core.catalog.actuators):
                sweep = RunSweep(self._core, name, self._forget_run)
                ended_runs += await sweep.all(now - runs, dry=dry_run)
        gone = await self._reflexing.sweep(_before(now, reflex_runs), _before(now, intake), dry_run=dry_run)
        return Swept(told, ended_runs, *gone)

    async def reflex_sweep(
        self, *, intake: int | None = None, runs: int | None = None, dry_run: bool = False, caller: Caller
    ) -> Swept:
        """As `sweep`, of reflexes alone. Raises: BadArguments when nothing says how long they are kept."""
        if intake is None and runs is None:
            runs, intake = self._core.config.retention.reflex_runs, self._core.config.retention.intake
        if intake is None and runs is None:
            raise BadArguments([Fault("", 'say how long "runs" or "intake" are kept')], nothing_was="swept")
        return await self.sweep(reflex_runs=runs, intake=intake, dry_run=dry_run, caller=caller)


def _before(now: int, kept: int | None) -> datetime | None:
    """Whatever happened before this instant may go; None: nothing may. No horizon is before the first instant there is."""
    return None if kept is None else moment(Instant(max(FIRST, now - kept)))


class RunSweep:
    """Ended runs of one actuator, oldest first, so many a commit. Remembers where it was."""

    def __init__(self, core: Core, name: str, forget: Callable[[str], None]) -> None:
        self._core = core
        self.name = name
        self._forget = forget
        self._place = core.at[name]
        self._after = dict.fromkeys(ENDED, 0)

    async def all(self, upto: int, *, dry: bool = False) -> int:
        """Every run that had ended at `upto`; how many went, or would."""
        count = 0
        for status in ENDED:
            more = True
            while more:
                taken, more = await self.look(status, upto, dry=dry)
                count += taken
        return count

    async def look(self, status: str, upto: int, *, dry: bool = False) -> tuple[int, bool]:
        """One look: how many went, and whether it could see further. Begins anew after the last."""
        rows = await self._place.look(ended(status, self._after[status], RUNS))
        seen: list[Any] = [row for row in rows if started_by(row, upto)]  # type: ignore[arg-type]
        old = [row for row in seen if over(row, upto)]
        more = len(seen) == RUNS
        self._after[status] = int(seen[-1][0]) if more else 0
        if not old or dry:
            return len(old), more
        return await self._take(old, upto), more

    async def _take(self, rows: Sequence[Row], upto: int) -> int:
        """Of a fleet: those that are this node's by itself, the others through whoever owns them."""
        count, others = 0, dict[str, list[ActorId]]()
        ours: dict[ActorId, int] = {}
        for row in rows:
            at = ActorId(self.name, principal_of(str(row[3])), str(row[1]))
            if self._core.router is not None and self._core.router.elsewhere(at):
                others.setdefault(str(self._core.router.node_of(at)), []).append(at)
            else:
                ours[at] = int(row[0] or 0)
        if ours:
            count += await self._take_ours(ours, upto)
        for those in others.values():
            word = {"do": FORGET, "runs": [[at.principal, at.key] for at in those], "upto": upto}
            count += int(await self._core.at_owner(those[0], word, partial(self.named, word)))
        return count

    async def named(self, word: Mapping[str, Any]) -> int:
        """Take these runs, as far as they are of this process and over; how many went."""
        wanted = {ActorId(self.name, who, run) for who, run in word["runs"]}
        mine = [at for at in wanted if self._core.router is None or not self._core.router.elsewhere(at)]
        if not mine:
            self._core.node.mine(next(iter(wanted)))
        found: list[Any] = [*await self._place.look(Query(RUN, on=("run",), keys=[(at.key,) for at in mine]))]
        numbers = {str(row[1]): int(row[0] or 0) for row in found if over(row, word["upto"])}
        ours = {at: numbers[at.key] for at in mine if at.key in numbers}
        return await self._take_ours(ours, word["upto"]) if ours else 0

    async def _take_ours(self, ours: Mapping[ActorId, int], upto: int) -> int:
        space = await self._core.space(self.name)
        with self._core.node.apart(list(ours)) as held:
            actors = [n for at, n in ours.items() if at in held]
            gone = await self._commit(space, actors, self._core.node.guard(*held), upto) if actors else []
        for row in gone:
            self._forget(str(row[RUN.at["run"]]))
        return len(gone)

    async def _commit(self, space: AuthorSpace, actors: Sequence[int], guard: Guard, upto: int) -> list[Row]:
        gone: list[Row] = []

        def body() -> Generator[tuple[Verb, ...], tuple[Answer, ...], Last[None]]:
            gone.clear()
            runs, owed, starts = yield questions(actors)
            gone[:], writes = forgotten(runs, owed, starts, upto, lambda: space.mint(TURN))
            return Last(writes, None)

        outcome = await space.transact(guard.around(body))
        if isinstance(outcome, Refused):
            if isinstance(outcome.error, OwnedElsewhere):
                return []  # they are the next owner's to sweep
            raise outcome.error
        if isinstance(outcome, Unknown):
            raise OutcomeUnknown(f"the sweep of the runs of {self.name}")
        return gone


class Janitor:
    """The slow beat: a little of every sweep that somebody declared, beside the folds."""

    def __init__(self, core: Core, forget: Callable[[str], None], reflexing: Reflexing) -> None:
        self._core = core
        self._reflexing = reflexing
        self._forget = forget
        self._sweeps: dict[str, RunSweep] = {}
        core.acts[FORGET] = self._forgets
        self.round = Round("onefold janitor", self._sweep_some)

    async def _forgets(self, at: ActorId, word: Mapping[str, Any]) -> int:
        """Another node sweeps runs of this one."""
        return await self._sweep_of(self._core.catalog.actuator(at.kind).name).named(word)

    def _sweep_of(self, name: str) -> RunSweep:
        if name not in self._sweeps:
            self._sweeps[name] = RunSweep(self._core, name, self._forget)
        return self._sweeps[name]

    def beat(self) -> bool:
        """Returns whether the round before left something to do."""
        kept = self._core.config.retention
        slots = self._core.shared_slots()
        if slots is not None:
            self._reflexing.look()
            if 0 not in slots:
                return False  # one node of a fleet sweeps for all
        if not self._core.windows and (kept.replies, kept.runs, kept.reflex_runs, kept.intake) == (None,) * 4:
            return False
        return self.round.begin()

    async def _sweep_some(self) -> bool:
        try:
            return await self._sweep(self._core.clock.now())
        except OnefoldError as fault:
            log.warning("a sweep ended early and goes on at the next beat: %s", fault)
            return False

    async def _sweep(self, now: int) -> bool:
        core, kept, more = self._core, self._core.config.retention, False
        space, guard = await core.space(MAIN), of_all(core.standing, MAIN)
        for kind, window in core.windows.items():
            more |= (await sweeping.ids(space, guard, kind, now - window, now, looks=LOOKS)).more
        if kept.replies is not None:
            more |= (await sweeping.replies(space, guard, now - kept.replies, now, looks=LOOKS)).more
        if kept.runs is not None:
            for name in tuple(core.catalog.actuators):
                sweep = self._sweep_of(name)
                for status in ENDED:
                    taken, further = await sweep.look(status, now - kept.runs)
                    more |= further and taken > 0
        runs, intake = _before(now, kept.reflex_runs), _before(now, kept.intake)
        return await self._reflexing.sweep_some(runs, intake) or more
