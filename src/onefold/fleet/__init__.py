"""fleet - several processes over one store: who owns what, and what actors are sent while nobody waits.

For: names under epochs, leases, shares; mail that is kept until its turn is committed; the ring that carries it within
one process; the outcomes of `app.fleet`.
Imports: node, kernel, store, terms.  Imported by: host, serve, testing.
Never: executes a letter; lets one fall silently; decides by a clock who may write.
"""

from onefold.fleet.mailbox import Posted
from onefold.fleet.ring import Closed, Full, Mail, Ring, Taken, Unsettled
from onefold.fleet.words import Claimed, Contended, Done, Fenced, Free, HeldBy, Member, Owner, Seized

__all__ = [
    "Claimed",
    "Closed",
    "Contended",
    "Done",
    "Fenced",
    "Free",
    "Full",
    "HeldBy",
    "Mail",
    "Member",
    "Owner",
    "Posted",
    "Ring",
    "Seized",
    "Taken",
    "Unsettled",
]
