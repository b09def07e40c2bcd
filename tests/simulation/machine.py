"""The rules by which the real host is played, and Hypothesis picks among them.

For: `Machine`: each rule is one step of a `Play`; whatever it finds is printed as lines that cases.py can hold.
Never: asserts anything itself: the play and its invariants do, after every step.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from onefold.host.host import Host
from tests.contracts.backends import store_of
from tests.simulation.jar import Event, Jam, Light, Move, Put, Take, Trip
from tests.simulation.play import Fault, Play

# A disk in memory: kills here are of a process, not of a machine.
SHARED = Path("/dev") / "shm"
MEMORY_DISK = str(SHARED) if SHARED.is_dir() else None

IDS = st.sampled_from([f"e{n}" for n in range(8)])
KEYS = st.sampled_from(["x", "y"])
COINS = st.sampled_from([1, 2, 6, 25])  # of twenty: mostly there are enough
PORTS = st.sampled_from(["pay", "ask", "wire"])
MINUTES = st.sampled_from([0, 1, 10, 90])

events: st.SearchStrategy[Event] = st.one_of(
    st.builds(Put, IDS, KEYS, st.integers(1, 9)),
    st.builds(Take, IDS, KEYS, COINS, PORTS),
    st.builds(Take, IDS, KEYS, COINS, PORTS, st.sampled_from(["", "n1", "n2"]), st.sampled_from([0, 0, 5])),
    st.builds(Move, IDS, KEYS, st.none() | MINUTES),
    st.builds(Jam, IDS, KEYS, st.sampled_from(["", "raises", "idle"])),
    st.builds(Trip, IDS, KEYS),
    st.builds(Light, IDS, KEYS, PORTS),
)
WHO = st.sampled_from([None, "anna"])
SENT = st.tuples(WHO, events)
POINTS = ["statement", "before-commit", "after-commit"]
commits = st.builds(Fault, st.just("disk"), st.just("before-commit"), st.integers(1, 2))  # what most twins need
disks = st.builds(Fault, st.just("disk"), st.sampled_from(POINTS), st.integers(1, 4), st.integers(1, 2))
kills = st.builds(
    Fault, st.just("kill"), st.sampled_from([*POINTS, "before-send", "after-send", "before-reply"]), st.integers(1, 6)
)
faults = commits | disks | kills
PICK = st.integers(0, 7)


class Machine(RuleBasedStateMachine):
    """`store`: "memory", "sqlite" or "postgres". `fit`: of a broken twin."""

    store = "memory"
    fit: Callable[[Host], None] | None = None

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.mkdtemp(dir=MEMORY_DISK) if self.store == "sqlite" else None
        store = self.folder or store_of(self.store, Path())
        self.fallen = False
        self.loop = asyncio.new_event_loop()
        self.loop.set_exception_handler(lambda loop, context: None)  # whoever was killed is not missed
        self.play = Play(store, type(self).fit)
        self.do(self.play.open())

    def do(self, step: Any) -> Any:
        try:
            return self.loop.run_until_complete(step)
        except BaseException:
            self.fallen = True
            raise

    def teardown(self) -> None:
        try:
            if not self.fallen:
                self.do(self.play.end())
        finally:
            self.loop.run_until_complete(self.play.stage.host.abandon())
            self.loop.close()
            if self.folder is not None:
                shutil.rmtree(self.folder)

    # --- events -------------------------------------------------------------------------------

    @rule(who=WHO, event=events)
    def deliver(self, who: str | None, event: Event) -> None:
        self.do(self.play.deliver((who, event)))

    @rule(sent=st.lists(SENT, min_size=2, max_size=4))
    def deliver_at_once(self, sent: list[tuple[str | None, Event]]) -> None:
        self.do(self.play.deliver(*sent))

    @rule(sent=st.lists(SENT, min_size=1, max_size=3), fault=faults)
    def deliver_under(self, sent: list[tuple[str | None, Event]], fault: Fault) -> None:
        self.do(self.play.deliver(*sent, fault=fault))

    @rule(who=WHO, key=KEYS, coins=st.lists(COINS, min_size=2, max_size=3), fault=commits)
    def take_at_once_under(self, who: str | None, key: str, coins: list[int], fault: Fault) -> None:
        """Of one jar, so that what one decides stands on what the other has."""
        first = len(self.play.sent)
        sent = [(who, Take(f"t{first}.{n}", key, each, "pay")) for n, each in enumerate(coins)]
        self.do(self.play.deliver(*sent, fault=fault))

    @precondition(lambda self: self.play.sent)
    @rule(pick=PICK)
    def redeliver(self, pick: int) -> None:
        self.do(self.play.deliver(self.play.sent[pick % len(self.play.sent)]))

    @rule(who=WHO, event=events)
    def deliver_and_crash(self, who: str | None, event: Event) -> None:
        """What was answered survives a crash that comes before anything else does."""
        self.do(self.play.deliver((who, event), rest=False))
        self.do(self.play.crash())

    @rule(who=WHO, key=KEYS)
    def fill_up_to_a_snapshot(self, who: str | None, key: str) -> None:
        self.do(self.play.fill(who, key))

    @rule(who=WHO, key=KEYS)
    def prune(self, who: str | None, key: str) -> None:
        self.do(self.play.prune(who, key))

    @rule(who=WHO, key=KEYS, fault=faults)
    def prune_under(self, who: str | None, key: str, fault: Fault) -> None:
        self.do(self.play.prune(who, key, fault))

    # --- time, the other side, the process ------------------------------------------------------

    @rule(ms=st.sampled_from([1, 1_000, 60_000, 11 * 60_000]))
    def tick(self, ms: int) -> None:
        self.do(self.play.pass_time(ms))

    @rule()
    def tick_to_the_next_alarm(self) -> None:
        self.do(self.play.jump())

    @rule(fault=faults)
    def drain_under(self, fault: Fault) -> None:
        self.do(self.play.jump(fault))

    @rule()
    def wear_out(self) -> None:
        """Try until what fails is parked."""
        self.do(self.play.wear_out())

    @rule()
    def drain_and_crash(self) -> None:
        self.do(self.play.be("well"))
        self.do(self.play.crash())

    @rule(mood=st.sampled_from(["down", "slow", "forgetful", "well"]))
    def pause_or_resume(self, mood: Any) -> None:
        self.do(self.play.be(mood))

    @rule()
    def crash(self) -> None:
        self.do(self.play.crash())

    @rule(asleep_ms=st.sampled_from([0, 60_000, 3_600_000]))
    def restart(self, asleep_ms: int) -> None:
        self.do(self.play.restart(asleep_ms))

    @rule(pick=PICK)
    def evict(self, pick: int) -> None:
        self.do(self.play.evict(pick))

    @rule(who=WHO, kind=st.sampled_from(["jars", "lamps"]), key=KEYS)
    def read(self, who: str | None, kind: str, key: str) -> None:
        self.do(self.play.read(who, kind, key))

    @rule(who=WHO, key=KEYS)
    def ask_for_the_alarm(self, who: str | None, key: str) -> None:
        self.do(self.play.ask_for_the_alarm(who, key))

    @rule(pick=PICK, drop=st.booleans())
    def person(self, pick: int, drop: bool) -> None:
        self.do(self.play.person(pick, drop=drop))
