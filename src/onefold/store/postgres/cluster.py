"""store.postgres.cluster - which history of which server this is, and whether it is still the one we wrote to.

For: the one row that a store has of its cluster, made with it; noticing a restore or a promotion at every opening of
a connection; its incarnation, which belongs into every epoch.
Never: goes on by itself once they differ; compares times.
Was wrong once: an epoch alone. After a failover that lost commits two servers handed out epoch 5, and both nodes wrote.
And a dump that was read back into the server it came from: cluster and timeline were the same, and what had been
acknowledged since was gone without a word.

What differs, and what it means:

    system      another cluster: a dump was read into it
    timeline    a replica was promoted, or a backup was restored
    ahead       the server's next transaction is older than one of ours: an older copy of its files
    place       the table is another than the one its row was written in: a dump was read into this cluster
"""

from __future__ import annotations

from dataclasses import dataclass, field

from onefold.store.postgres.arrays import scalar
from onefold.store.postgres.connect import Server
from onefold.store.postgres.failing import STORE
from onefold.store.postgres.sql import quoted
from onefold.store.postgres.wire import Statement, Wire
from onefold.terms.damage import StoreReplaced

BEGINNING = "insert into {}._cluster(incarnation,system,timeline) values(1,$1::text,$2::int8)"


@dataclass(frozen=True, slots=True)
class Cluster:
    """What the store's own row says. incarnation: grows each time that somebody confirmed another history. place: the
    number of the table that the row was first written in; None until one that knows of it came."""

    id: str
    incarnation: int
    system: str
    timeline: int
    place: int | None = field(compare=False)


class History:
    """What one process knows of the history it writes to."""

    def __init__(self, within: str, accept: bool) -> None:
        """`accept`: somebody confirmed that what is there now is to be gone on with."""
        self._within = quoted(within)
        self._accept = accept
        self._cluster: Cluster | None = None
        self._reached = 0

    @property
    def incarnation(self) -> int:
        """0 before anything was opened."""
        return 0 if self._cluster is None else self._cluster.incarnation

    @property
    def newest(self) -> int:
        """The newest transaction of ours that committed."""
        return self._reached

    def reached(self, number: int | None) -> None:
        """A transaction of this number committed, and somebody may have been told."""
        if number is not None and number > self._reached:
            self._reached = number

    async def check(self, wire: Wire, server: Server, newest: int) -> None:
        """Of each new connection, once the store is there. `newest`: as it was before the connection was opened, since
        others commit meanwhile. Raises: StoreReplaced.
        """
        found, place = await self._found(wire)
        same = (found.system, found.timeline) == (server.system, server.timeline) and found.place in (None, place)
        if self._cluster is None and not same and self._accept:
            found = await self._confirm(wire, server)
        elif not same:
            raise _replaced(found, server)
        if self._cluster is not None and found != self._cluster:
            was = f"incarnation {self._cluster.incarnation}"
            raise StoreReplaced(STORE, was, f"incarnation {found.incarnation}, which somebody confirmed; start anew")
        if server.ahead <= newest:
            raise StoreReplaced(STORE, f"transaction {newest}", f"an older copy that ends at {server.ahead - 1}")
        self._cluster = found

    async def _found(self, wire: Wire) -> tuple[Cluster, int]:
        """The row, and the number of the table that it is in. Of a store that older code made, it knows no place."""
        text = (
            "select c.id::text,c.incarnation,c.system,c.timeline,(to_jsonb(c)->>'place')::int8,c.tableoid::int8"
            f" from {self._within}._cluster c"
        )
        *cluster, place = wire.rows((await wire.send([Statement(text.encode())]))[0])[0]
        return Cluster(*cluster), place

    async def _confirm(self, wire: Wire, server: Server) -> Cluster:
        text = (
            f"update {self._within}._cluster set incarnation=incarnation+1,system=$1::text,timeline=$2::int8,"
            "place=tableoid::int8,since=clock_timestamp() returning id::text,incarnation,system,timeline,place"
        )
        cells = [server.system.encode(), scalar("int", server.timeline)]
        return Cluster(*wire.rows((await wire.send([Statement(text.encode(), cells)]))[0])[0])


def _replaced(found: Cluster, server: Server) -> StoreReplaced:
    was, now = f"timeline {found.timeline} of {found.system}", f"timeline {server.timeline} of {server.system}"
    return StoreReplaced(STORE, was, now if was != now else "a dump of it that was read in")
