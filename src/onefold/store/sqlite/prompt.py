"""store.sqlite.prompt - a history's head and the ids it has, written with their rows.

For: chains of a file that several processes have. What one of them kept in memory the others could not know.
Never: believes anything beyond the transaction it was read in.
Was wrong once: a key found absent before the transaction. Another process appended it meanwhile, and its id came twice.
"""

from __future__ import annotations

from onefold.store.sqlite import chain
from onefold.store.sqlite.chain import NEVER, ChainPlan


class PromptChain(ChainPlan):
    """A `ChainPlan` whose lookup tables know every row that is committed.

    The marker, up to which a process that has the file alone may rely on them, follows now and then.
    """

    def load(self, marker: int) -> None:
        """Write the keys and heads that a process before, which had the file alone, had still in memory."""
        super().load(marker)
        self._write(sorted(self._keys.old.items()), sorted(self._heads.old.items()))
        self._keys.start({})
        self._heads.start({})
        self.marker = self.top

    def refresh(self, marker: int, top: int) -> None:
        """What other processes did since."""
        self.marker, self.top = marker, top

    def begin(self) -> None:
        super().begin()
        self._absent.clear()

    def before_commit(self, everything: bool = False) -> int | None:
        self._write(self._keys.below(NEVER), self._heads.below(NEVER))
        far = self.new_top - self.marker
        return self.new_top if far >= chain.GENERATION or (everything and far) else None

    def committed(self, moved: int | None) -> None:
        self.rolled_back()  # the tables have it all
        self.top = self.new_top
        self.marker = moved or self.marker
