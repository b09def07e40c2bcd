"""What must be in the rows, in plain dicts: decided a second time, by other code, from the rows themselves.

For: `Model.turn`, which explains each new turn row or says why it cannot be, and what is then owed and due.
Never: imports the modules it models; guesses an order: rows are explained in the order they were committed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from onefold import Owed
from onefold.kernel.tables import TURN

MINUTE = 60_000
Who = tuple[str, str | None, str]  # kind, principal, key
Told = Mapping[str, Any]  # an event as a dict, with its "type"


class Wrong(AssertionError):
    """An invariant fell."""


def instant(text: str) -> int:
    """Milliseconds of an RFC 3339 instant."""
    return round(datetime.fromisoformat(text).timestamp() * 1000)


def plain(value: Any) -> Any:
    """JSON with its instants as milliseconds and its pairs as tuples."""
    if isinstance(value, dict):
        return {k: instant(v) if k in ("at", "wake") and v is not None else plain(v) for k, v in value.items()}
    return tuple(plain(each) for each in value) if isinstance(value, list) else value


def fresh(kind: str) -> dict[str, Any]:
    jar: dict[str, Any] = {"coins": 20, "held": {}, "wake": None, "jam": "", "rang": 0}
    return {
        "state": jar if kind == "jars" else {"lit": 0},
        "seq": 0,
        "kept": 0,  # the seq of the newest snapshot
        "last": None,
        "at": 0,
        "turns": {},  # by event: what came, and the reply
        "rows": [],
        "owed": {},  # outstanding, by row key
        "sealed": {},  # every key ever owed, outstanding or not
        "named": {},  # the keys the module named
        "let_go": None,  # the wake that a person gave up on; the next turn takes it up again
    }


class Model:
    def __init__(self) -> None:
        self.actors: dict[Who, dict[str, Any]] = {}
        self.drops: dict[str, set[str]] = {}  # why a person gave up, by the key that leaves
        self.loosened = 0
        self.rings = 0

    def actor(self, who: Who) -> dict[str, Any]:
        return self.actors.get(who) or fresh(who[0])

    def pruned(self, who: Who) -> list[tuple[Any, ...]]:
        """The turns of an actor as a prune is to leave them: without facts behind the newest snapshot, else the same."""
        actor = self.actor(who)
        rows = []
        for row in actor["rows"]:
            facts, seq = row[TURN.at["facts"]], row[TURN.at["seq"]]
            if seq < actor["kept"] and facts != b"[]":
                facts = b"[ ]"
            elif seq == actor["kept"] and facts.count(b'"type"') > 1:
                facts = b"[ " + facts[facts.index(b'{"jar":') :]
            rows.append((*row[: TURN.at["facts"]], facts, *row[TURN.at["facts"] + 1 :]))
        return rows

    # --- one turn row -----------------------------------------------------------------------

    def turn(self, who: Who, row: tuple[Any, ...], told: Mapping[str, list[Told]], done: Any, t0: int, t1: int) -> None:
        """Take one new row of `who`. `told`: what was sent in this step, by event id. `done`: receipts by key.
        `t0` to `t1`: when it may have been decided. Raises: Wrong."""
        cell = {column.name: row[i] for i, column in enumerate(TURN.columns)}
        actor = self.actors.setdefault(who, fresh(who[0]))
        event, at = cell["event"], cell["at"]
        agree("a turn names the one before it", cell["prev"], actor["last"])
        if event in actor["turns"]:
            raise Wrong(f"{event} of {who} counted twice")
        if at < actor["at"] or not (t0 <= at <= t1 or at == actor["at"]):
            raise Wrong(f"{event} of {who} was decided at {at}, between {t0} and {t1}, after {actor['at']}")
        facts = [plain(fact) for fact in json.loads(cell["facts"])]
        content = None
        if event.startswith("d/"):
            content = self._which(who, actor, event, told.get(event, []), facts, cell)
        expected, reply, owed = self._expected(who, actor, event, content, facts, at, done)
        self._apply(who, actor, expected, facts)
        agree(f"how many facts {who} has after {event}", cell["seq"], actor["seq"])
        agree(f"the reply to {event} of {who}", reply_of(cell["reply"]), reply)
        agree(f"what {event} of {who} owes", json.loads(cell["owes"] or "[]"), [[o[0], o[1]] for o in owed])
        for way, name, body, due in owed:
            self._owe(who, actor, event, way, name, body, due or at)
        if event.startswith("o/"):
            del actor["owed"][event[2:]]
        actor["turns"][event] = {"content": content, "reply": reply}
        actor.update(last=cell["n"], at=at, let_go=None)
        actor["rows"].append(row)

    def _which(self, who: Who, actor: Any, event: str, told: list[Told], facts: Any, cell: Any) -> Told:
        """Which of the events sent under this id was folded: of two at once either may be the first."""
        fitting = [one for one in told if same_decision(who, actor, one, facts, cell)]
        if not told:
            raise Wrong(f"{event} of {who} was folded, and nobody sent it")
        return (fitting or told)[0]

    def _expected(
        self, who: Who, actor: Any, event: str, content: Told | None, facts: Any, at: int, done: Any
    ) -> tuple[list[Any], Any, list[Any]]:
        state = actor["state"]
        if content is not None:
            decided = decided_on(who[0], state, content, at)
            if decided is None or (decided[2] and self.conflicts(who, content)):
                raise Wrong(f"{event} of {who} cannot be decided, and has a turn")
            return decided
        if event.startswith("o/"):
            return self._answered(who, actor, event[2:], facts, done)
        self.rings += 1
        if state.get("wake") is None or state["wake"] > at or state["jam"]:
            raise Wrong(f"{who} was woken at {at}, and its wake is {state.get('wake')}")
        return [{"type": "Rang", "at": at}], None, []

    def _answered(self, who: Who, actor: Any, key: str, facts: Any, done: Any) -> tuple[list[Any], Any, list[Any]]:
        if key not in actor["owed"]:
            raise Wrong(f"an answer to {key} of {who}, which it does not owe")
        name, way, leaves = key[2:], actor["owed"][key]["port"], leaving(who, key)
        given = [{"type": "Sent", "name": name, "receipt": number} for number in done.get(leaves, [])]
        given += [{"type": "Back", "name": name, "why": why} for why in self.drops.get(leaves, ())]
        answer = next((one for one in given if one in facts), None)
        if answer is None:
            raise Wrong(f"{who} heard {facts} of {key}, and was told {given}")
        chained = answer["type"] == "Sent" and way == "pay" and actor["state"]["held"].get(name, 0) >= 5
        note = ("ask", Owed.join(name, "note"), {"coins": 0, "left": -2}, None)
        return [answer], None, [note] if chained else []

    def conflicts(self, who: Who, content: Told) -> bool:
        """Whether what this event owes, under a name of the module's, was owed before with other bytes."""
        if not content.get("name"):
            return False
        known = self.actor(who)["named"].get(f"k/{content['name']}")
        return known is not None and known != (content["port"], {"coins": content["coins"], "left": -1})

    def _owe(self, who: Who, actor: Any, event: str, way: str, name: str, body: Any, due: int) -> None:
        key = f"e/{name}" if event[2:] == name else f"k/{name}"
        if key in actor["sealed"]:
            agree(f"the bytes of {key} of {who}", (way, body), actor["sealed"][key])
            return
        actor["sealed"][key] = (way, body)
        actor["owed"][key] = {"port": way, "body": body, "due": due}
        if key.startswith("k/"):
            actor["named"][key] = (way, body)

    def _apply(self, who: Who, actor: Any, expected: list[Any], facts: list[Any]) -> None:
        state = actor["state"]
        before = state.get("wake")
        for fact in expected:
            evolve(state, fact)
        seq = actor["seq"] + len(expected)
        if who[0] == "jars" and seq - actor["kept"] >= 6:
            expected = [*expected, {"type": "Kept", "jar": {**state, "held": tuple(state["held"].items())}}]
            seq = actor["kept"] = seq + 1
        agree(f"the facts of {who}", facts, expected)
        after = state.get("wake")
        self.loosened += before is not None and (after is None or after > before)
        actor["seq"] = seq


# --- the modules again, over dicts ----------------------------------------------------------------


def decided_on(kind: str, state: Any, event: Told, at: int) -> tuple[list[Any], Any, list[Any]] | None:
    """Facts, reply and what is owed; None where the module raises."""
    if kind == "lamps":
        n = state["lit"]
        body = {"coins": n, "left": 0}
        return [{"type": "Lit", "number": n + 1}], ("coins", n + 1), [(event["port"], event["id"], body, None)]
    coins = state["coins"]
    match event["type"]:
        case "Put":
            return [{"type": "Added", "coins": event["coins"]}], ("coins", coins + event["coins"]), []
        case "Take" if event["coins"] > coins:
            return [], ("by", event["coins"] - coins), []
        case "Take":
            name, left = event["name"] or event["id"], coins - event["coins"]
            body = {"coins": event["coins"], "left": -1 if event["name"] else left}
            due = at + event["later"] * MINUTE if event["later"] else None
            facts = [{"type": "Taken", "name": name, "coins": event["coins"]}]
            return facts, ("coins", left), [(event["port"], name, body, due)]
        case "Move":
            wake = None if event["minutes"] is None else at + event["minutes"] * MINUTE
            return [{"type": "Moved", "at": wake}], ("coins", coins), []
        case "Jam":
            return [{"type": "Jammed", "how": event["how"]}], ("coins", coins), []
        case _:
            return None


def evolve(state: dict[str, Any], fact: Any) -> None:
    held = state.get("held", {})
    match fact["type"]:
        case "Lit":
            state["lit"] = fact["number"]
        case "Added":
            state["coins"] += fact["coins"]
        case "Taken":
            state["coins"] -= fact["coins"]
            held.pop(fact["name"], None)
            held[fact["name"]] = fact["coins"]
        case "Moved":
            state["wake"] = fact["at"]
        case "Jammed":
            state["jam"] = fact["how"]
        case "Rang":
            state.update(wake=None, rang=state["rang"] + 1)
        case "Sent":
            held.pop(fact["name"], None)
        case "Back":
            state["coins"] += held.pop(fact["name"], 0)
        case other:
            raise Wrong(f"a fact of no kind: {other}")


def same_decision(who: Who, actor: Any, event: Told, facts: Any, cell: Any) -> bool:
    decided = decided_on(who[0], actor["state"], event, cell["at"])
    if decided is None:
        return False
    wanted, reply, _ = decided
    return bool(facts[: len(wanted)] == wanted and reply_of(cell["reply"]) == reply)


def reply_of(stored: bytes | None) -> Any:
    """A stored reply as ("coins", n) or ("by", n); None where nobody is answered."""
    if stored is None:
        return None
    reply = {k: v for k, v in json.loads(stored).items() if k != "type"}
    return next(iter(reply.items()))


def leaving(who: Who, key: str) -> str:
    kind, principal, name = who
    return Owed.join(principal, kind, name, key)


def agree(what: str, found: Any, expected: Any) -> None:
    if found != expected:
        raise Wrong(f"{what}: {found!r}, and not {expected!r}")
