"""fleet - what actors are sent while nobody waits: a durable box for each, and a bounded ring before it.

For: mail that is kept until its turn is committed; the ring that carries it within one process.
Imports: store, kernel, terms.  Imported by: host, serve, cli, testing.
Never: executes a letter; lets one fall silently.
"""

from onefold.fleet.ring import Closed, Full, Mail, Ring, Taken, Unsettled

__all__ = ["Closed", "Full", "Mail", "Ring", "Taken", "Unsettled"]
