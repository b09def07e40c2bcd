"""terms.damage - what was kept is there no longer, or is not what was put.

For: the one error for a blob whose bytes do not have its digest.
Never: raised with the bytes; whoever asked gets none rather than wrong ones.
Was wrong once: bytes given back as they were found. A page that a disk had lost became a customer's statement.
"""

from __future__ import annotations

from onefold.terms.errors import HostError


class BlobDamaged(HostError):
    """The bytes of a blob are missing, or are others than were put."""

    status = 500

    def __init__(self, digest: str, why: str) -> None:
        self.digest = digest
        self.why = why
        super().__init__(
            f"The blob {digest} cannot be given back: {why}. Put the same bytes again, or restore them from a backup."
        )
