"""store.sqlite.shared - one of several processes that write to one file.

For: what the others did, read again when the writer is taken; numbers above those of a history that another wrote.
Never: relies on what was read before the transaction; keeps of keys and heads anything that is not in the file.
Was wrong once: a history read in two statements without a transaction. Between them another process moved its head.
"""

from __future__ import annotations

from collections.abc import Sequence

import apsw

from onefold.store.batch import Unusable
from onefold.store.contract import Answer, Verb
from onefold.store.sqlite.ends import highest
from onefold.store.sqlite.engine import NOTE, SqliteEngine
from onefold.store.sqlite.migrate import notes
from onefold.store.sqlite.mint import BLOCK, Blocks, Source, note_of
from onefold.store.sqlite.prompt import PromptChain
from onefold.store.sqlite.tables import Plan
from onefold.terms.errors import OnefoldError


class SharedEngine(SqliteEngine):
    """A `SqliteEngine` that is not alone: docs/adr/0063."""

    chained = PromptChain
    others = True
    _taken = False  # whether it is the writer already, before `begin`
    _met: Unusable | None = None  # what kept it from becoming the writer

    def run(self, verb: Verb) -> Answer:
        answer = super().run(verb)
        if verb.table.chain is not None and isinstance(answer, list):
            key = verb.table.at[verb.table.key[0]]
            newest = max((int(str(row[key])) for row in answer if row is not None), default=0)
            self._numbers.seen(verb.table.name, newest)
        return answer

    def take(self, last: bool) -> bool:
        """Become the writer, if no other process is it; `begin` goes on from there. Until then others may look: what was read
        to decide is let go of. last: if it still is not, `begin` refuses. So it does where this met an error.
        """
        checked, self._ready, self._asking = self._ready, False, False
        if self.stands():
            self.file.leave()
        try:
            if not checked:
                self.check()
            self._taken = self.file.begin_now()
            if last and not self._taken:
                raise apsw.BusyError("another process writes")
        except OnefoldError as fault:
            self._met = Unusable(fault)
        except (apsw.Error, OSError) as error:
            self._met = self.file.unusable(error)
        return self._taken or self._met is not None

    def begin(self) -> None:
        met, self._met = self._met, None
        if met is not None:
            raise met
        if not self._taken:
            super().begin()
            return
        self._ready = self._asking = self._taken = False
        self._started()

    def rollback(self) -> None:
        self._taken = False
        super().rollback()

    def _source(self, serial: Sequence[str]) -> Source:
        return Blocks(serial, self._take_block)

    def _is_one_look(self, plan: Plan, verb: Verb) -> bool:
        return plan.table.chain is None and super()._is_one_look(plan, verb)

    def _refresh(self) -> None:
        """What other processes did. The writer is taken, so that it stays so to the end of this transaction."""
        held = notes(self.file.db)
        self._commits = held["commits"]
        for plan in self._chains:
            assert isinstance(plan, PromptChain)
            plan.refresh(held.get(f"marker.{plan.table.name}", 0), highest(self.file.db, plan.table, held))
        self._numbers.begun(held)

    def _take_block(self, table: str, above: int) -> int:
        """The first number of a new block, by a commit of its own. Raises: StoreUnavailable."""
        if self.stands():
            self.file.leave()  # what the first question opened; it is asked, or opens another
            self._asking = self._ready
        try:
            self.file.begin()
            first = max(int(notes(self.file.db).get(note_of(table), 1)), above + 1)
            self.file.db.executemany(NOTE, [(note_of(table), first + BLOCK)])
            self.file.db.execute("commit")
        except (apsw.Error, OSError) as error:
            self.file.undo()
            if not isinstance(error, apsw.BusyError):
                self.file.reopen_later()  # a COMMIT that raised leaves a connection of which nobody knows what it sees
                self._ready = False
            raise self.file.unusable(error).error from error
        return first
