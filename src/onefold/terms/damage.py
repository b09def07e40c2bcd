"""terms.damage - what was kept is there no longer, or is not what was put.

For: a blob whose bytes do not have its digest, a history whose beginning is gone, a database that is another now.
Never: raised with the bytes; whoever asked gets none rather than wrong ones.
Was wrong once: bytes given back as they were found. A page that a disk had lost became a customer's statement.
"""

from __future__ import annotations

from onefold.terms.errors import HostError, WaitsForCode
from onefold.terms.faults import ended, short


class BlobDamaged(HostError):
    """The bytes of a blob are missing, or are others than were put."""

    status = 500

    def __init__(self, digest: str, why: str) -> None:
        self.digest = digest
        self.why = why
        super().__init__(
            f"The blob {digest} cannot be given back: {ended(why)} Put the same bytes again, or restore them from a backup."
        )


class HistoryDamaged(WaitsForCode):
    """Facts of an actor are missing, and no prune took them. It is left alone, as one that this code cannot read is:
    nothing is decided on what is left, no alarm spins, and it is listed with what is parked.
    """

    status = 500

    def __init__(self, module: str, key: str, first: int) -> None:
        self.module, self.key, self.first = module, key, first
        HostError.__init__(
            self,
            f"The history of {module} {short(key)!r} begins with fact {first}: those before it are missing, and no prune "
            "took them. Nothing was decided. Run `onefold doctor`, and restore the file from a backup.",
        )


class StoreReplaced(HostError):
    """The database was restored, promoted or moved: what was acknowledged last may be missing. Nothing goes on until
    somebody confirmed it."""

    exit = 6

    def __init__(self, store: str, expected: str, found: str) -> None:
        self.store, self.expected, self.found = store, expected, found
        super().__init__(
            f"The store {store!r} is not the one it was: it was {expected}, now it is {found}. After a restore or a "
            "promotion, what was acknowledged last may be missing. Accept that with `onefold doctor --accept-rollback`."
        )
