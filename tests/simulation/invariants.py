"""What must hold between the rows, memory, the ports and the model, whenever nothing moves.

For: `Rows`, all rows of the kernel at one moment, and `check`, every invariant by name.
Never: activates an actor: looking must not be what keeps a promise.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

from onefold.host.caller import Caller
from onefold.kernel.alarm import AT_MOST_MS
from onefold.kernel.drain import FRESH_MS, IN_FLIGHT_MS
from onefold.kernel.tables import ACTOR, ALARM, OWED, SENT, TURN
from onefold.node.resident import Resident
from onefold.store.contract import Query
from onefold.terms.ids import ActorId, principal_of
from onefold.testing import Stage
from tests.simulation.jar import Far
from tests.simulation.model import Model, Who, Wrong, agree, leaving, plain

BEHIND = ("parked", "uncertain")


@dataclass(frozen=True)
class Rows:
    """All rows of one space, as dicts by actor."""

    names: dict[int, Who]
    turns: list[tuple[Any, ...]]
    owed: dict[Who, dict[str, dict[str, Any]]]
    named: dict[Who, set[str]]
    alarms: dict[Who, dict[str, Any]]


async def rows_of(stage: Stage) -> Rows:
    space = await stage.host.space("main")
    answers = await space.look(*(Query(table) for table in (ACTOR, TURN, OWED, SENT, ALARM)))
    actors, turns, owed, sent, alarms = answers
    names: dict[int, Who] = {row[0]: (row[1], principal_of(row[2]), row[3]) for row in actors}
    by_actor: dict[Who, dict[str, dict[str, Any]]] = {}
    for row in owed:
        cells = named(OWED, row)
        there = by_actor.setdefault(names[cells["actor"]], {})
        if cells["key"] in there:
            raise Wrong(f"{cells['key']} of {names[cells['actor']]} is owed twice")
        there[cells["key"]] = cells
    keys: dict[Who, set[str]] = {}
    for number, key, _ in sent:
        keys.setdefault(names[number], set()).add(key)
    at = {names[row[0]]: named(ALARM, row) for row in alarms}
    return Rows(names, sorted(turns), by_actor, keys, at)


def named(table: Any, row: tuple[Any, ...]) -> dict[str, Any]:
    return {column.name: row[i] for i, column in enumerate(table.columns)}


async def check(stage: Stage, rows: Rows, model: Model, far: Far) -> None:
    """Raises: Wrong, naming the invariant that fell."""
    now = int(stage.clock.now())
    listed = await stage.host.parked_list(caller=Caller(None, frozenset(("operate", "read")), "check"))
    visible = {item.id for item in listed}
    for number, who in rows.names.items():
        owed = rows.owed.get(who, {})
        what_is_owed(who, owed, model, far)
        agree(f"the keys that {who} has named", rows.named.get(who, set()), set(model.actor(who)["named"]))
        the_alarm(who, rows.alarms.get(who), owed, model.actor(who), now, far)
        nothing_is_invisible(who, number, rows.alarms.get(who), owed, visible)
    agree("the actors that have turns", set(rows.names.values()), set(model.actors))
    what_was_sent(model, far)
    await apart(stage, rows, model)
    for resident in tuple(stage.host._core.node._residents.values()):
        memory(resident, model, rows)


def what_is_owed(who: Who, owed: dict[str, dict[str, Any]], model: Model, far: Far) -> None:
    """Rows are exactly what is owed and not yet answered, with the bytes of the fold that owed them."""
    expected = model.actor(who)["owed"]
    if who[0] == "lamps":  # it hears no answers: what the other side has confirmed is gone without a turn
        for key in expected.keys() - owed.keys():
            if leaving(who, key) not in far.done and not model.drops.get(leaving(who, key)):
                raise Wrong(f"{key} of {who} is gone, and nobody has done it")
            del expected[key]
    agree(f"what {who} owes", sorted(owed), sorted(expected))
    for key, row in owed.items():
        agree(f"the bytes of {key} of {who}", json.loads(row["bytes"]), expected[key]["body"])
        agree(f"the port of {key} of {who}", row["port"], expected[key]["port"])
        sealed = expected[key].setdefault("bytes", row["bytes"])
        agree(f"the sealed bytes of {key} of {who}", row["bytes"], sealed)


def the_alarm(who: Who, row: Any, owed: dict[str, dict[str, Any]], actor: Any, now: int, far: Far) -> None:
    """The row is never later than the wake or the soonest send; nothing that is due was left unrung."""
    slack = IN_FLIGHT_MS if far.ever_held else FRESH_MS  # of a send on its way, or cut off by the end of its process
    limits = [max(one["next_at"], now + slack) for one in owed.values() if one["next_at"] is not None]
    wake = actor["state"].get("wake")
    if wake is not None and wake == actor["let_go"]:
        wake = None if row is None or row["error"] is None else wake
    at = None if row is None else row["at"]
    if wake is not None and wake > now:
        limits.append(wake)
    elif wake is not None:
        if row is None or not row["tries"]:
            raise Wrong(f"the wake of {who} at {wake} has passed at {now}, and was not tried: {row}")
        if at is not None:
            limits.append(now + AT_MOST_MS)
        elif row["error"] is None:
            raise Wrong(f"the wake of {who} was given up on without a cause")
    if limits and (at is None or at > min(limits)):
        raise Wrong(f"the alarm of {who} is {row} at {now}, later than what is due at {min(limits)}")
    if at is not None and at <= now:
        raise Wrong(f"the alarm of {who} was due at {at}, and at {now} it has not rung")
    if at is None and row is not None and (wake is None or wake > now):
        raise Wrong(f"the alarm of {who} is parked, and its wake is {wake}")


def nothing_is_invisible(who: Who, number: int, alarm: Any, owed: dict[str, Any], visible: set[str]) -> None:
    """What is not done has an instant, or a cause and a place in the list of what waits for a person."""
    for key, row in owed.items():
        parked = row["state"] in BEHIND
        agree(f"whether {key} of {who} is parked", row["next_at"] is None, parked)
        agree(f"whether {key} of {who} is listed", f"owed.main.{row['n']}" in visible, parked)
        if parked and not row["error"]:
            raise Wrong(f"{key} of {who} is parked without a cause")
    parked = alarm is not None and alarm["at"] is None
    agree(f"whether the alarm of {who} is listed", f"alarm.main.{number}" in visible, parked)


def what_was_sent(model: Model, far: Far) -> None:
    """Only what was owed has left, under its own key, with its own bytes, whatever was tried again."""
    sealed = {
        leaving(who, key): bytes_ for who, actor in model.actors.items() for key, bytes_ in actor["sealed"].items()
    }
    for way, key, body in far.calls:
        if key not in sealed:
            raise Wrong(f"{key} left through {way}, and nobody owes it")
        agree(f"what left under {key}", (way, asdict(body)), sealed[key])
    for key, receipts in far.done.items():
        insisted = far.insisted.get(key, 0) if sealed[key][0] == "wire" else 0
        if sealed[key][0] != "pay" and len(receipts) > 1 + insisted:
            raise Wrong(f"{key} was done {len(receipts)} times through {sealed[key][0]}")


async def apart(stage: Stage, rows: Rows, model: Model) -> None:
    """Each principal is shown its own actors and what of theirs waits, and nobody else's."""
    numbers = {f"owed.main.{row['n']}": who for who, owed in rows.owed.items() for row in owed.values()}
    numbers |= {f"alarm.main.{number}": who for number, who in rows.names.items()}
    for principal in (None, "anna"):
        caller = stage.caller(principal, rights=("call", "read"))
        shown: set[Who] = set()
        for kind in ("jars", "lamps"):
            page = await stage.host.actors(kind, caller=caller)
            shown.update((kind, principal, item["key"]) for item in page.items)
        agree(f"the actors of {principal}", shown, {who for who in model.actors if who[1] == principal})
        for item in await stage.host.parked_list(caller=caller):
            agree(f"whose {item.id} is that {principal} is shown", numbers[item.id][1], principal)


def memory(resident: Resident, model: Model, rows: Rows) -> None:
    """What is in memory is what the rows say: head, durable state, what is owed, the alarm."""
    at: ActorId = resident.at
    who: Who = (at.kind, at.principal, at.key)
    actor = model.actor(who)
    codec = resident.module.codecs.view
    for name, state in (("durable state", resident.durable), ("head", resident.base.state)):
        agree(f"the {name} of {who}", shown_state(codec.to_json(resident.module.view(state))), actor["state"])
    agree(f"the number of facts of {who} in memory", resident.base.seq, actor["seq"])
    agree(f"the newest turn of {who} in memory", resident.base.last, actor["last"])
    row = rows.alarms.get(who)
    agree(f"the alarm of {who} in memory", resident.alarm.at, None if row is None else row["at"])
    agree(f"whether the alarm row of {who} is known", resident.alarm.written, row is not None)
    held = {one.key: (one.n, one.body, one.tries, one.next_at, one.state) for one in resident.owed.values()}
    there = {
        key: tuple(one[cell] for cell in ("n", "bytes", "tries", "next_at", "state"))
        for key, one in rows.owed.get(who, {}).items()
    }
    agree(f"what {who} owes in memory", held, there)


def shown_state(json_view: Any) -> Any:
    """A view as the model holds states."""
    state = plain(json_view)
    if "held" in state:
        state["held"] = dict(state["held"])
    return state
