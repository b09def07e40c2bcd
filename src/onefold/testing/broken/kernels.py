"""testing.broken.kernels - the sound kernel with one fault each, so that what holds it can prove its teeth.

For: `BROKEN_KERNELS`: every twin, by name; `async with staged(parts, fit=broken_kernel("reply-early").fit)`.
Never: is broken in two places; hides its fault: each is a design that somebody has shipped.
Was wrong once: a twin that every check noticed. It showed that there was a check, not which.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from onefold.host.sender import Sender
from onefold.node.lane import Lane
from onefold.node.node import Node
from onefold.testing.broken import kernel_faults as faults

if TYPE_CHECKING:
    from onefold.host.host import Host


@dataclass(frozen=True, slots=True)
class BrokenKernel:
    """A twin: its name, what is wrong with it, the promise it breaks, and the parts that are not as they should be.

    `seen_by` says what it takes to notice.
    """

    name: str
    fault: str
    promise: str
    seen_by: str
    lane: type[Lane] = Lane
    sender: type[Sender] = Sender
    node: type[Node] = Node

    def fit(self, host: Host) -> None:
        """Put the broken parts into an opened host, before it has done anything. Again after each opening."""
        core = host._core
        core.sender.__class__ = self.sender
        core.node.__class__ = self.node
        for place in core.places:
            home = place.home
            home._make = _making(home._make, self.lane)
            if home.lane is not None:
                home.lane.__class__ = self.lane


def _making(make: Callable[..., Lane], kind: type[Lane]) -> Callable[..., Lane]:
    def made(*given: object) -> Lane:
        lane = make(*given)
        lane.__class__ = kind
        return lane

    return made


BROKEN_KERNELS: tuple[BrokenKernel, ...] = (
    BrokenKernel(
        "id-apart",
        "the processed id is written in a transaction of its own, after the facts",
        "an event counts once, whatever crashes",
        "a crash or a failing disk between the two commits, and the event again",
        lane=faults.WritesTheIdApart,
    ),
    BrokenKernel(
        "alarm-apart",
        "the alarm is armed in a transaction of its own, after the facts",
        "the alarm row is never later than what is due",
        "a crash or a failing disk between the two commits, and a look at the alarm row",
        lane=faults.ArmsTheAlarmApart,
    ),
    BrokenKernel(
        "bytes-rebuilt",
        "a retry decides anew what it sends, on the state of that moment",
        "an owed key is only ever sent with the same bytes",
        "a send that fails and is tried again, of a body that depends on the state or on now",
        lane=faults.RemembersHowItWasDecided,
        sender=faults.RebuildsAtRetry,
    ),
    BrokenKernel(
        "reply-early",
        "the reply is given when the event is decided, and the commit follows with the next one",
        "a reply leaves only after its commit",
        "a crash or a failing disk right after an answer",
        lane=faults.RepliesBeforeTheCommit,
    ),
    BrokenKernel(
        "decline-early",
        "a decline is answered at once, since it has no facts: from a head that may never be committed",
        "every answer waits for the commit its head came from",
        "two deliveries at the same moment, the second declined because of the first, and a commit that fails",
        lane=faults.DeclinesFromTheHead,
    ),
    BrokenKernel(
        "ids-freed",
        "a snapshot throws away what lies behind it, processed ids too",
        "snapshots and pruning never free an id",
        "an event from before a snapshot, again",
        lane=faults.FreesIdsBehindASnapshot,
    ),
    BrokenKernel(
        "ids-pruned",
        "a prune takes whole turns, processed ids too",
        "snapshots and pruning never free an id",
        "an event from before a prune, again",
        node=faults.PrunesIdsToo,
    ),
)


def broken_kernel(name: str) -> BrokenKernel:
    """The twin of that name. Raises: KeyError."""
    return {twin.name: twin for twin in BROKEN_KERNELS}[name]


__all__ = ["BROKEN_KERNELS", "BrokenKernel", "broken_kernel"]
