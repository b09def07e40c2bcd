"""bench.scale.constants - every number that the model begins with: what was measured, and what is assumed.

For: `COSTS`, from `python -m bench.scale --measure`; `LOAD` and `SERVER`, which are nobody's measurement: put your own.
Never: holds a figure without its unit and where it is from.
Was wrong once: one figure for a turn's share of the server. A commit of 64 turns and one of a single turn differ by
fifteen, and a thousand nodes make single ones.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from onefold.host.config import LEASE

MEASURED = (
    "PostgreSQL 18.6 on a virtual disk, 2 cores shared with the client; the server's share is processor time "
    "of its own processes"
)


def told(default: float, unit: str, what: str) -> Any:
    """A number with its unit and its meaning, which is for people."""
    return field(default=default, metadata={"unit": unit, "what": what})


@dataclass(frozen=True, slots=True)
class Costs:
    """Measured."""

    renewal_us: float = told(105, "us of server", "a node renews its row: its own commit, eight at once")
    renewal_wal: float = told(118, "B of WAL", "the same")
    look_us: float = told(12, "us of server", "a look at one row")
    look_row_us: float = told(0.33, "us of server", "each row of a look at all nodes and owners")
    guard_us: float = told(
        2.2, "us of server", "an owner row read FOR SHARE in a commit, its share of the trip included"
    )
    guard_wal: float = told(56, "B of WAL", "the same")
    commit_us: float = told(246, "us of server", "a commit of turns and the one that confirms what they owed")
    turn_us: float = told(13.5, "us of server", "each turn in them")
    turn_wal: float = told(917, "B of WAL", "a turn, its pages written since the last checkpoint")
    turn_cold_wal: float = told(
        20_600, "B of WAL", "a turn of an actor whose pages were not: they go into the WAL whole"
    )
    turn_packed_wal: float = told(11_800, "B of WAL", "the same with `wal_compression = on`")
    turn_packed_us: float = told(360, "us of server", "what that costs more")
    turn_ms: float = told(0.9, "ms", "a turn, answered, with nobody beside it")
    node_turn_us: float = told(73, "us of a node", "a turn in process, 64 at once")
    turn_bytes: float = told(477, "B on the disk", "a turn with its indexes")
    actor_bytes: float = told(177, "B on the disk", "an actor's name")
    alarm_bytes: float = told(205, "B on the disk", "an alarm")
    alarm_look_us: float = told(50, "us of server", "a look for alarms that finds none")
    alarm_pass_us: float = told(0.54, "us of server", "a due alarm of another node's slot, passed over")
    hand_us: float = told(160, "us of server", "a commit that hands over a slot")
    hand_slot_us: float = told(4.8, "us of server", "each further slot in it")
    hand_slot_wal: float = told(150, "B of WAL", "a slot handed over")
    read_us: float = told(140, "us of server", "an actor read back, by itself")
    read_ms: float = told(0.44, "ms", "the same, for whoever waits for it")
    resident_bytes: float = told(1_100, "B of memory", "a small actor that is resident")
    score_us: float = told(0.54, "us of a node", "the score of one node for one slot, reckoned once")
    best_us: float = told(0.06, "us of a node", "each score looked at to find the highest")


@dataclass(frozen=True, slots=True)
class Load:
    """Assumed: what all worlds together have to carry."""

    actors: float = told(1e9, "", "actors")
    nodes: int = told(1_000, "", "nodes")
    turns_a_day: float = told(4, "", "turns of an actor in a day, without its alarms")
    asleep: float = told(0.3, "", "share of actors that have an alarm set")
    wakes_a_day: float = told(1, "", "wakes of each of them in a day")
    letters: float = told(0.1, "", "letters for each turn, each the price of a turn")
    peak: float = told(3, "", "the busiest hour over the mean")
    resident: float = told(0.05, "", "share of actors used within the hour")
    kept: float = told(20, "", "turns kept of an actor, behind its snapshot")
    lease_s: float = told(LEASE / 1e3, "s", "a node's lease, as by default; a beat is a quarter of it")


@dataclass(frozen=True, slots=True)
class Server:
    """Assumed: a Postgres server, and how much of it one may plan with."""

    cores: float = told(8, "", "processor cores to plan with, of sixteen")
    wal: float = told(100e6, "B/s", "WAL that it writes, archives and sends to its replica, of twice as much")
    disk: float = told(2e12, "B", "rows and indexes, of twice as much")
    connections: float = told(500, "", "connections")
    looks: float = told(0.05, "", "share of those cores that looks may take")
    drain_s: float = told(60, "s", "in which what fell due in ten minutes of standstill must be found")
    pause_ms: float = told(50, "ms", "for which a node's loop may stand still")


CONNECTIONS = 8  # of one process: docs/postgres.md
OUTAGE_S = 600  # after which alarms pile up
LOOK_TAKES = 512  # alarms of one look: host.driver
FREEZE = 200e6  # transactions until Postgres freezes a table, by default
SLOTS = 1_024  # of a store, by default
SLOTS_A_NODE = 16  # fewer, and the fullest node has twice its share
DAY_S = 86_400.0

COSTS, LOAD, SERVER = Costs(), Load(), Server()


def listed(costs: Costs) -> list[tuple[str, float, str]]:
    """What, how much, and of what."""
    return [(f.metadata["what"], getattr(costs, f.name), f.metadata["unit"]) for f in fields(costs)]
