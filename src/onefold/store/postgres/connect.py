"""store.postgres.connect - how a server is reached, and whether it may be used at all.

For: the address, with its secrets kept to itself; the settings of a connection with their reasons; what is checked
before the first row.
Never: keeps a connection; says an address, a user or a password in an error, a log or a repr.
Was wrong once: the defaults. Behind a cable that was cut they waited for two hours, and the row lock of a client that
was gone stayed as long.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import AsyncConnection
from psycopg.conninfo import conninfo_to_dict

from onefold.store.postgres.arrays import array
from onefold.store.postgres.failing import STORE, unavailable
from onefold.store.postgres.wire import Gone, Statement, Stopped, Wire
from onefold.terms.errors import BadArguments, Fault, StoreUnavailable

OLDEST_SERVER = 140_000  # why: `pg_xact_status` and pipelines that are answered early
# Seconds until a peer that is gone is noticed: three probes of two seconds after five quiet ones, five for bytes sent.
_CLIENT = {
    "connect_timeout": "5",
    "keepalives": "1",
    "keepalives_idle": "5",
    "keepalives_interval": "2",
    "keepalives_count": "3",
    "tcp_user_timeout": "5000",
    "client_encoding": "utf8",
}
SETTINGS: Mapping[str, str] = {
    # The same from the other side: the locks of a client that is gone must not hold up the others.
    "tcp_keepalives_idle": "5",
    "tcp_keepalives_interval": "2",
    "tcp_keepalives_count": "3",
    "tcp_user_timeout": "5000",
    "idle_in_transaction_session_timeout": "10s",
    "lock_timeout": "2s",
    "statement_timeout": "20s",
    "default_transaction_isolation": "read committed",
    "TimeZone": "UTC",
    # Each statement is made for an index. Its plan is made once, often while the tables are empty, and must not be
    # one that reads them whole.
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "enable_bitmapscan": "off",
    "jit": "off",
}
_PREPARE = (
    b"select set_config(name,value,false) from unnest($1::text[],$2::text[]) as u(name,value) union all"
    b" select set_config('synchronous_commit',case current_setting('synchronous_commit')"
    b" when 'remote_apply' then 'remote_apply' else 'on' end,false)"
)
_FACTS = b"""select pg_is_in_recovery(), current_setting('transaction_read_only'), current_setting('fsync'),
 current_setting('full_page_writes'), current_setting('server_version_num')::int8, current_setting('server_encoding'),
 (select system_identifier::text from pg_control_system()),
 case when pg_is_in_recovery() then 0
 else ('x'||substr(pg_walfile_name(pg_current_wal_lsn()),1,8))::bit(32)::int8 end,
 pg_snapshot_xmax(pg_current_snapshot())::text::int8"""


@dataclass(frozen=True, slots=True)
class Server:
    """What a server says it is. system: its cluster, for life. timeline: grows with each promotion and each restore.
    ahead: the next transaction's number."""

    system: str
    timeline: int
    ahead: int


class Address:
    """Where a database is. Its text, secrets and all, is nowhere else."""

    __slots__ = ("_params",)

    def __init__(self, url: str) -> None:
        """Raises: BadArguments for what cannot be read as an address."""
        try:
            self._params: dict[str, Any] = conninfo_to_dict(url)
        except psycopg.Error:
            params = None
        else:
            params = self._params
        if params is None:  # outside of the handler: the driver's error repeats the address
            fault = Fault("store", "is no address of a database; write postgres://user@host/database")
            raise BadArguments([fault], nothing_was="opened")

    def __repr__(self) -> str:
        return "Address(...)"

    def params(self, node: str) -> dict[str, Any]:
        """What the driver is told. Ours come second: a person may have set other limits in the address."""
        return {**_CLIENT, "application_name": f"onefold {node}".strip(), **self._params}


@dataclass(frozen=True, slots=True)
class Reach:
    """How a server is reached. node: named to it. lossy: whether it may keep less than it says. settings: of each
    connection, by the server's names."""

    address: Address
    node: str
    lossy: bool
    settings: Mapping[str, str]
    failpoint: Callable[[str], None] | None


async def connect(reach: Reach) -> tuple[Wire, Server]:
    """An open connection with its settings made, to a server that may be used. Raises: StoreUnavailable."""
    conn: AsyncConnection[Any] | None = None
    try:
        conn = await AsyncConnection.connect(**reach.address.params(reach.node), autocommit=True)
    except (psycopg.Error, OSError, ValueError) as error:
        state = getattr(error, "sqlstate", None) or ""
    else:
        state = ""
    if conn is None:  # outside of the handler: the driver's error names host and user
        raise unavailable(state)
    wire = Wire(conn, reach.failpoint)
    names, values = list(reach.settings), list(reach.settings.values())
    wire.prepare = Statement(_PREPARE, [array("text", names), array("text", values)])
    try:
        results = await wire.send([wire.prepare, Statement(_FACTS)])
        return wire, _usable(wire.rows(results[1])[0], reach.lossy)
    except (Gone, Stopped, OSError) as error:
        wire.drop()
        raise unavailable(getattr(error, "state", "08")) from None
    except BaseException:
        wire.drop()
        raise


def _usable(facts: tuple[Any, ...], lossy: bool) -> Server:
    """Raises: StoreUnavailable for a server that would not keep what it acknowledged."""
    replica, reads, fsync, pages, version, encoding, system, timeline, ahead = facts
    why = None
    if version < OLDEST_SERVER:
        why = f"its server is Postgres {version // 10_000}; {OLDEST_SERVER // 10_000} or newer is needed"
    elif replica or reads != "off":
        why = "its server is a replica or only reads; name the primary"
    elif encoding != "UTF8":
        why = f"its database is in {encoding}; make one in UTF8"
    elif not lossy and (fsync != "on" or pages != "on"):
        why = (
            "its server runs with fsync or full_page_writes off, so that a power cut loses what was acknowledged;"
            " turn them on, or say durability = 'lossy-on-power-cut'"
        )
    if why is not None:
        raise StoreUnavailable(STORE, why)
    return Server(system, timeline, ahead)
