"""testing.broken.hosts - the sound host with one fault each, of those that the kernel's twins leave out.

For: `BROKEN_HOSTS`: every twin, with the checks of the host suite that must catch it, by name.
Never: is broken in two places; repeats a twin of `kernels`.
Was wrong once: a suite whose checks on principals, bounds and reads no twin had ever failed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from onefold.host.sender import Sender
from onefold.node.lane import Lane
from onefold.node.node import Node
from onefold.testing.broken import host_faults as faults
from onefold.testing.broken.kernels import BrokenKernel

if TYPE_CHECKING:
    from onefold.host.host import Host


@dataclass(frozen=True, slots=True)
class BrokenHost:
    """A twin: what is wrong with it, the checks that must catch it, and the part that is not as it should be."""

    name: str
    caught_by: tuple[str, ...]
    lane: type[Lane] = Lane
    sender: type[Sender] = Sender
    node: type[Node] = Node

    def fit(self, host: Host) -> None:
        """Put the broken parts into an opened host, before it has done anything. Again after each opening."""
        BrokenKernel(self.name, "", "", "", lane=self.lane, sender=self.sender).fit(host)
        host._core.node.__class__ = self.node


BROKEN_HOSTS: tuple[BrokenHost, ...] = (
    BrokenHost(
        "prunes whole rows",
        ("a prune takes facts behind the latest snapshot and nothing else, wherever the process ends meanwhile",),
        node=faults.PrunesWholeRows,
    ),
    BrokenHost(
        "forgets who",
        (
            "principals never meet: one key and one id of two of them are two actors, two events, two alarms, two keys that leave",
            "the key that leaves is one actor's only: of its kind, its principal, its key",
            "lists, histories and what is parked are of one principal, but for who operates",
        ),
        node=faults.ForgetsWho,
    ),
    BrokenHost(
        "reads the head",
        ("a read shows what is committed, while what was decided on top of it is not",),
        node=faults.ReadsTheHead,
    ),
    BrokenHost(
        "folds to read",
        ("a read folds nothing and writes nothing, also of an actor that is not there or whose alarm is due",),
        node=faults.FoldsToRead,
    ),
    BrokenHost(
        "takes any content",
        (
            "the same id with other content is a conflict, in flight and ever after, and changes no row",
            "a reply that was swept is told as done, other content as a conflict, and nothing else has changed",
        ),
        lane=faults.TakesAnyContent,
    ),
    BrokenHost(
        "ends windows early",
        ("an id with a window counts up to the end of it and not at it, and then once again",),
        lane=faults.EndsWindowsEarly,
    ),
    BrokenHost(
        "owes without a name",
        ("a key owed by an event that counts again leaves once, and never with other bytes",),
        lane=faults.OwesWithoutName,
    ),
    BrokenHost(
        "takes all that comes",
        (
            "a full queue refuses before a row exists, names its bound, and takes the same event again once there is room",
        ),
        lane=faults.TakesAllThatComes,
    ),
    BrokenHost(
        "writes each alarm",
        ("a fold writes the row only to tighten it: a wake that is put off costs no write and one early ring",),
        lane=faults.WritesEachAlarm,
    ),
    BrokenHost(
        "rings late",
        ("after any folds, sends, rings and crashes the row is no later than the soonest wake or owed retry",),
        lane=faults.RingsLate,
    ),
    BrokenHost(
        "counts no failed wake",
        (
            "a wake that fails, or changes nothing and is still due, backs off and is parked with its cause; it never spins",
            "a person retries a parked alarm, or drops it; an event that moves the wake takes it up again",
        ),
        lane=faults.CountsNoFailedWake,
    ),
    BrokenHost(
        "removes apart",
        ("a confirmation, its answer and the removal of its row are one commit, wherever the process ends",),
        lane=faults.RemovesApart,
    ),
    BrokenHost(
        "drops what failed",
        ("a send that fails each time is parked with its cause, is asked no more, and is listed for a person",),
        sender=faults.DropsWhatFailed,
    ),
    BrokenHost(
        "sends unannounced",
        (
            "a port that can neither dedupe nor be asked is never called twice on a doubt: a person is",
            "a port that can be asked is asked after a doubtful send, and called again only when it knows of none",
        ),
        sender=faults.SendsUnannounced,
    ),
    BrokenHost(
        "sends under the attempt",
        (
            "a row goes only with its confirmation: a failed send leaves it there, its cause written down, its tries counted",
        ),
        sender=faults.SendsUnderTheAttempt,
    ),
)

__all__ = ["BROKEN_HOSTS", "BrokenHost"]
