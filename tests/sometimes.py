"""What must happen sometimes: a run of all tests that never retried, parked or crashed proved nothing about it.

For: `STATES`, each reached in every full run or the run fails as vacuous; `saw`, for tests that look at rows
themselves; `Looker`, which sees the rest at every stage that a test opens.
Never: asks anything of the product that it does not tell anyway; judges a run of some tests only.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

import pytest

from onefold.host.host import Host
from onefold.kernel.fold import Folded
from onefold.kernel.tables import TURN
from onefold.node.resident import Resident
from onefold.terms.errors import AlreadyDone, Busy, KeyConflict, OutcomeUnknown, WaitsForCode
from onefold.terms.ids import ActorId
from onefold.testing.stage import WATCHERS, Stage

STATES: Mapping[str, str] = {
    "alarm folded": "a wake came and was folded",
    "answer folded": "what a port gave back was folded as an event",
    "backlog drained": "what had piled up was sent once the other side was well again",
    "busy": "a queue was full and refused at its door",
    "conflict": "an id or a key came again with other content",
    "crash after the send": "killed when the port had acted and its answer was not committed",
    "crash before the commit": "killed while a commit was being written",
    "crash between commit and reply": "killed when it was committed and nobody had been told",
    "declined": "a decision without facts was stored",
    "disk failed": "the disk failed before or in a commit",
    "dropped by a person": "a person gave up on something owed, and its actor heard of it",
    "eviction under load": "an actor was dropped from memory while others had turns or sends under way",
    "latch": "a repeat came while the first was under way, waited for it, and got its reply",
    "lost answer": "a commit was done and its answer lost",
    "outcome unknown": "a caller was told that the outcome is not known",
    "parked alarm": "a wake that failed was given up on",
    "parked send": "a send that failed was given up on",
    "reply gone": "a repeat came after its reply was swept",
    "retry": "a send failed, and is owed still",
    "snapshot taken": "a fold wrote the snapshot that it made due",
    "spurious wake": "an alarm rang early, changed nothing, and was set exactly",
    "uncertain send": "a send was cut off at a port that can neither dedupe nor be asked",
    "waits for code": "an actor was left alone, since its facts are of newer code",
}
COUNTS: Counter[str] = Counter()
BESIDE = ("cli", "example", "fleet")
"""Folders that `make test` runs in a run of their own, beside the one that is judged."""
ERRORS: Mapping[type[BaseException], str] = {
    KeyConflict: "conflict",
    Busy: "busy",
    OutcomeUnknown: "outcome unknown",
    AlreadyDone: "reply gone",
    WaitsForCode: "waits for code",
}
BEFORE, AFTER = ("statement", "before-commit"), ("after-commit", "before-reply")
_EVENT, _REPLY = TURN.at["event"], TURN.at["reply"]


def saw(state: str) -> None:
    """This happened now. Raises: KeyError for what is in no list."""
    assert STATES[state]
    COUNTS[state] += 1


class Looker:
    """Looks on at every stage: at what folds, at callers' answers, at failpoints, at what memory holds."""

    def __init__(self) -> None:
        self._dead: WeakSet[Stage] = WeakSet()
        self._evicted: WeakKeyDictionary[Host, int] = WeakKeyDictionary()

    def opened(self, stage: Stage) -> None:
        host, core = stage.host, stage.host._core
        self._dead.discard(stage)
        core.heard.append(lambda resident, folded: self._folded(host, resident, folded))
        core.looks.append(lambda at: self._look(host, at))
        vars(host)["deliver"] = told(host.deliver)

    def failed(self, stage: Stage, point: str, fault: BaseException) -> None:
        """A kill counts where it struck first: what comes after it is dead already."""
        if isinstance(fault, OSError):
            saw("lost answer" if point == "after-commit" else "disk failed")
        elif stage not in self._dead:
            self._dead.add(stage)
            if point in BEFORE:
                saw("crash before the commit")
            elif point in AFTER:
                saw("crash between commit and reply")
            elif point == "after-send":
                saw("crash after the send")

    def leaving(self, stage: Stage) -> None:
        if stage.host._core.sender.failures:
            saw("retry")

    def _folded(self, host: Host, resident: Resident, folded: Folded) -> None:
        event = str(folded.turn[_EVENT])
        if event.startswith("o/"):
            saw("answer folded")
        elif event.startswith("a/"):
            saw("alarm folded")
        elif event.startswith("d/") and not folded.facts and not folded.owed:
            saw("declined")
        if folded.facts and folded.snapshot_seq == folded.seq:
            saw("snapshot taken")
        node = host._core.node
        if node.evictions > self._evicted.get(host, 0) and any(not one.idle for one in node._residents.values()):
            saw("eviction under load")
        self._evicted[host] = node.evictions

    def _look(self, host: Host, at: ActorId) -> None:
        resident = host._core.node.resident(at)
        for row in () if resident is None else tuple(resident.owed.values()):
            if row.next_at is None:
                saw("uncertain send" if row.state == "uncertain" else "parked send")


def told(deliver: Callable[..., Any]) -> Callable[..., Any]:
    """`deliver`, and a look at what its caller is told."""
    under_way: Counter[tuple[Any, ...]] = Counter()

    async def delivering(module: Any, event: Any, **given: Any) -> Any:
        same = (module.name, repr(given), repr(event))
        under_way[same] += 1
        second = under_way[same] > 1
        try:
            reply = await deliver(module, event, **given)
        except (asyncio.CancelledError, Exception) as fault:
            if type(fault) in ERRORS:
                saw(ERRORS[type(fault)])
            raise
        finally:
            under_way[same] -= 1
        if second:
            saw("latch")
        return reply

    return delivering


class Sometimes:
    """The pytest plugin: fails a full run in which one of `states` was never reached."""

    def __init__(
        self, states: Mapping[str, str], counts: Counter[str], root: Path, looker: Looker | None = None
    ) -> None:
        """A run is full that was asked for `root`, the folder of all tests, and for no choice among them."""
        self.states, self.counts, self.root = states, counts, root
        self.looker = looker
        self.full = False

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        config = session.config
        asked = [(config.invocation_params.dir / arg.split("::")[0]).resolve() for arg in config.args]
        chosen = any(config.getoption(name, None) for name in ("keyword", "lf", "deselect", "collectonly"))
        left_out = {(config.invocation_params.dir / each).resolve() for each in config.getoption("ignore", None) or ()}
        chosen = chosen or not left_out <= {self.root / each for each in BESIDE}
        marks = config.getoption("markexpr", "") in ("", "not needs_root")
        self.full = asked == [self.root] and not any("::" in arg for arg in config.args) and marks and not chosen
        if self.looker is not None:
            WATCHERS.append(self.looker)

    def missing(self) -> list[str]:
        return [name for name in self.states if not self.counts[name]]

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        if self.looker is not None:
            WATCHERS.remove(self.looker)
        if self.full and exitstatus == pytest.ExitCode.OK and self.missing():
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self.full:
            return
        terminalreporter.section("sometimes")
        for name in sorted(self.states):
            terminalreporter.line(f"{self.counts[name]:8}  {name}", red=not self.counts[name])
        for name in self.missing():
            terminalreporter.line(f"VACUOUS: never reached: {name}, {self.states[name]}", red=True)
