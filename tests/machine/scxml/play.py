"""Plays one file of a suite: events in, configurations compared, delays given back by a clock that only counts.

For: `verdict`, one word and a reason for each file. Between two events the snapshot is written as JSON and
read again, so that nothing lives on.
Never: judges by the log. Where the chart is decides.
"""

from __future__ import annotations

import heapq
import json
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from onefold.machine.definition import load
from onefold.machine.snapshot import states_of
from onefold.machine.step import start, step
from onefold.machine.table import Chart
from onefold.machine.words import Plain
from onefold.terms.codec import canonical, parse
from onefold.terms.errors import BadArguments, LoadRefused
from tests.machine.scxml.convert import converted
from tests.machine.scxml.data import Beyond

BEGIN: Final = datetime(2026, 1, 1, tzinfo=UTC)
MOST: Final = 200  # delayed events in one file


@dataclass(frozen=True)
class Verdict:
    """`passed`, `beyond` with what is beyond, or `failed` with where it went."""

    word: str
    reason: str = ""


def verdict(file: Path) -> Verdict:
    """How a chart of a suite fares."""
    told = file.with_suffix(".json")
    try:
        chart, functions = converted(file)
        loaded = load(chart, guards=functions.guards, actions=functions.actions, effects=functions.effects)
        if file.name.startswith("test") and "w3c" in str(file.parent):
            return _ended(loaded)
        return _played(loaded, json.loads(told.read_text(encoding="utf-8")))
    except Beyond as beyond:
        return Verdict("beyond", str(beyond))
    except LoadRefused as refused:
        if "there is no state" in str(refused):
            return Verdict("beyond", "the file leads to a state that it does not have; refused at load")
        raise


def _ended(chart: Chart) -> Verdict:
    """The W3C's charts say themselves how they fare, by the state they end in; the one without `pass` by ending."""
    player = Player(chart)
    player.until(None)
    where = player.where()
    if where == {"pass"} or ("pass" not in chart.ids and player.done):
        return Verdict("passed")
    return Verdict("failed", f"ended in {', '.join(sorted(where))}")


def _played(chart: Chart, script: dict[str, Any]) -> Verdict:
    """SCION's say which states are active after each event."""
    player = Player(chart)
    where = player.where()
    if where != set(script["initialConfiguration"]):
        return Verdict("failed", f"began in {', '.join(sorted(where))}")
    for at, line in enumerate(script["events"]):
        player.until(player.ms + int(line.get("after", 0)))
        player.tell(line["event"]["name"], line["event"].get("data"))
        where = player.where()
        if where != set(line["nextConfiguration"]):
            return Verdict("failed", f"was in {', '.join(sorted(where))} after event {at}")
    return Verdict("passed")


@dataclass
class Player:
    """A chart, its snapshot as bytes, and the events that are due."""

    chart: Chart
    ms: int = 0
    raw: bytes = b""
    due: list[tuple[int, int, Any]] = field(default_factory=list)
    sent: int = 0

    def __post_init__(self) -> None:
        self._keep(*start(self.chart, BEGIN))

    def where(self) -> set[str]:
        """The ids of the active leaves."""
        value = parse(self.raw)["value"]
        return {node.id for node in states_of(self.chart, value) if node.atomic}

    @property
    def done(self) -> bool:
        return bool(parse(self.raw)["status"] == "done")

    def tell(self, name: str, data: Any) -> None:
        self.sent += 1
        now = BEGIN + timedelta(milliseconds=self.ms)
        event = Plain(name, {} if data is None else {"data": data}, str(self.sent))
        self._keep(*step(self.chart, parse(self.raw), event, now))

    def until(self, ms: int | None) -> None:
        """Give back what is due up to an instant, or everything."""
        while self.due and self.sent < MOST and (ms is None or self.due[0][0] <= ms):
            self.ms, _, effect = heapq.heappop(self.due)
            self.tell(effect["event"], effect["data"])
        self.ms = self.ms if ms is None else ms

    def _keep(self, snapshot: dict[str, Any], effects: tuple[Any, ...]) -> None:
        try:
            self.raw = canonical(snapshot)
        except BadArguments as bad:
            if "type function" in str(bad):
                raise Beyond("a function as data; a snapshot is JSON") from None
            raise
        for effect in effects:
            if effect.value["do"] == "cancel":
                self.due = [item for item in self.due if item[2]["id"] != effect.value["id"]]
                heapq.heapify(self.due)
            else:
                self.sent += 1
                heapq.heappush(self.due, (self.ms + _delay(effect.value["delay"]), self.sent, effect.value))


def _delay(text: str) -> int:
    found = re.fullmatch(r"\s*(\d*\.?\d+)\s*(ms|s)\s*", str(text))
    if found is None:
        raise Beyond(f"the delay {text!r}")
    return round(float(found[1]) * (1000 if found[2] == "s" else 1))
