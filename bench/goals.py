"""bench.goals - the table of what is to be reached, and the lines a run fills it with.

For: figures and ratios out of samples and scenes, each beside its goal and its aim.
Never: measures; rounds in anybody's favour.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from bench.interleave import Rounds

Told = Mapping[str, Any]
PEERS = ("dbos", "restate", "absurd")
START = ("start", "", 0)
GROWTH = 1.5  # of the largest size over the smallest: what the noise of a shared machine may add


@dataclass(frozen=True, slots=True)
class Line:
    """One goal. `value` is held against `must` and `aim`; None: not measured. `less`: smaller is better.

    profile: contender, workload and callers to look at when it falls short; of a start, ("start", "", 0).
    """

    row: str
    figure: str
    value: float | None
    must: float | None
    aim: float | None = None
    unit: str = "x"
    less: bool = False
    profile: tuple[str, str, int] | None = None

    @property
    def reached(self) -> str:
        """`aim`, `yes`, `no`, `-` where there is no goal, or `not measured`."""
        if self.value is None:
            return "not measured"
        if self.aim is not None and self._holds(self.aim):
            return "aim"
        if self.must is None:
            return "-"
        return "yes" if self._holds(self.must) else "no"

    def _holds(self, bound: float) -> bool:
        assert self.value is not None
        return self.value <= bound if self.less else self.value >= bound


@dataclass
class Measured:
    """Everything a run took. `runs` sleepers due within `spread_s` seconds, 0 also at one instant."""

    runs: int
    spread_s: float
    rounds: Rounds = field(default_factory=Rounds)
    minute: Told = field(default_factory=dict)
    instant: Told = field(default_factory=dict)
    waiters: dict[int, Told] = field(default_factory=dict)
    start: Told = field(default_factory=dict)
    tool_start: Told = field(default_factory=dict)
    spaces: Told = field(default_factory=dict)
    histories: Told = field(default_factory=dict)
    wakes: Told = field(default_factory=dict)
    timers: dict[str, Told] = field(default_factory=dict)
    at_rest: dict[int, Told] = field(default_factory=dict)
    fans: Rounds = field(default_factory=Rounds)
    loaded: dict[int, Told] = field(default_factory=dict)
    settled: dict[int, Told] = field(default_factory=dict)
    turns: dict[str, Rounds] = field(default_factory=dict)  # by part
    takeovers: dict[float, Told] = field(default_factory=dict)  # by lease, in seconds

    @property
    def all_rounds(self) -> list[Rounds]:
        return [self.rounds, self.fans, *self.turns.values()]

    def over(self, mine: str, theirs: str, times: float = 1.0) -> tuple[float | None, str]:
        """The ratio of two rates, and both as text."""
        ours, others = self.rounds.rate(mine), self.rounds.rate(theirs) * times
        if not others or mine not in self.rounds.samples:
            return None, "-"
        return ours / others, f"{number(ours)} / {number(others)} a second"

    def best(self, workload: str, callers: int) -> str:
        """The label of the fastest peer."""
        return max((f"{peer} {workload} {callers}" for peer in PEERS), key=self.rounds.rate)


def number(value: float) -> str:
    """A figure as people read it."""
    if value >= 1000:
        return f"{value:,.0f}".replace(",", " ")
    return f"{value:.3g}"


def lines(taken: Measured) -> list[Line]:
    """The whole table."""
    return [
        *_folds(taken),
        *_served(taken),
        *_runs(taken),
        *_charts(taken),
        *_reflexes(taken),
        *_sleepers(taken),
        *_timers(taken),
        *_waiters(taken),
        *_starts(taken),
        *_growth(taken),
    ]


def _folds(taken: Measured) -> Iterator[Line]:
    row = "whole fold in process, 64 callers, SQLite"
    look = ("fold", "fold", 64)
    ratio, figure = taken.over("fold fold 64", "workerd post 64")
    yield Line(row, f"Onefold / workerd: {figure}", ratio, 30, 60, profile=look)
    ratio, figure = taken.over("fold fold 64", "disk rows 64")
    yield Line(row, f"Onefold / one-row limit at 64 a commit: {figure}", ratio, 0.3, 0.5, profile=look)
    ratio, figure = taken.over("fold fold 1", "disk rows 1")
    yield Line(
        "one caller in process", f"Onefold / raw commits: {figure}", ratio, 0.55, 0.75, profile=("fold", "fold", 1)
    )


def _served(taken: Measured) -> Iterator[Line]:
    for callers, must, aim in ((1, 2.5, 3.5), (8, 5, 10), (64, 10, 20)):
        ratio, figure = taken.over(f"served post {callers}", f"workerd post {callers}")
        row = f"over HTTP (uvicorn), {callers} caller{'s' if callers > 1 else ''}"
        p99 = taken.rounds.middle(f"served post {callers}", "p99")
        told = f"Onefold / workerd: {figure}; p99 {number(p99)} ms"
        yield Line(row, told, ratio, must, aim, profile=("served", "post", callers))
    for callers in (8, 64):
        ratio, figure = taken.over(f"tool mcp {callers}", f"package mcp {callers}")
        told = f"Onefold, durable / the package's own server, not durable: {figure}"
        yield Line(f"durable MCP call, {callers} callers", told, ratio, 0.9, 2, profile=("tool", "mcp", callers))


def _runs(taken: Measured) -> Iterator[Line]:
    for callers, must, aim in ((1, 5, 8), (64, 25, 50)):
        best = taken.best("ten", callers)
        ratio, figure = taken.over(f"runs ten {callers}", best)
        told = f"Onefold / the best of DBOS, Restate, Absurd ({best.split()[0]}): {figure}"
        yield Line(f"run of ten steps, {callers} at once", told, ratio, must, aim, profile=("runs", "ten", callers))


def _reflexes(taken: Measured) -> Iterator[Line]:
    """Tasks a second. Who came through with how many of them is in the rates."""
    row = "one trigger, 500 tasks, one settle, with leases"
    rounds = taken.fans
    known = {label.split()[0]: label for label in rounds.samples if " fan " in label}
    for peer, must, aim in (("absurd", 20.0, 50.0), ("procrastinate", None, None), ("dbos", None, None)):
        others = [label for name, label in known.items() if name.split("_")[0] == peer]
        ours, theirs = rounds.rate(known.get("reflexes", "")), max((rounds.rate(label) for label in others), default=0)
        figure = f"Onefold on SQLite / {peer}: {number(ours)} / {number(theirs)} tasks a second"
        yield Line(row, figure, ours / theirs if ours and theirs else None, must, aim)
    for name, store in (("reflexes", "SQLite, in one process"), ("reflexes_pg", "Postgres, in two processes")):
        alone, both = (
            rounds.rate(label) for label in (known.get(name, ""), known.get(name, "").replace("fan", "pair"))
        )
        figure = f"two engines / one, on {store}: {number(both)} / {number(alone)} tasks a second"
        yield Line(row, figure, both / alone if alone and both else None, None)


def _charts(taken: Measured) -> Iterator[Line]:
    ratio, figure = taken.over("chart step 1", "xstate step 1")
    each = taken.rounds.rate("chart step 1")
    told = f"Onefold / XState, each from stored snapshot to stored snapshot: {figure}"
    yield Line("a chart's step", told, ratio, None)
    yield Line("a chart's step", "microseconds", 1e6 / each if each else None, None, None, "us", less=True)


def _sleepers(taken: Measured) -> Iterator[Line]:
    minute = taken.minute
    within = "one minute" if taken.spread_s == 60 else f"{taken.spread_s:g} s"
    row = f"{number(taken.runs)} sleeping runs due in {within}"
    look = ("sleeping", "sleep", taken.runs // 5)
    more = f"{number(minute.get('cpu_ms', 0))} ms of CPU each, armed in {number(minute.get('armed_s', 0))} s"
    yield Line(row, f"lateness p50, durable ({more})", minute.get("p50"), 2, None, "ms", less=True, profile=look)
    yield Line(
        row,
        f"lateness p99 (most {number(minute.get('most', 0))} ms)",
        minute.get("p99"),
        20,
        None,
        "ms",
        less=True,
        profile=look,
    )
    yield Line(row, "woken early", minute.get("early"), 0, None, "runs", less=True)
    yield Line(row, "woken twice", minute.get("twice"), 0, None, "runs", less=True)
    instant = taken.instant
    most = instant.get("most")
    row = f"{number(taken.runs)} sleeping runs due at one instant"
    yield Line(row, "until the last is done", None if most is None else most / 1e3, None, 0.5, "s", less=True)


def _timers(taken: Measured) -> Iterator[Line]:
    for kind, told in taken.timers.items():
        count = told.get("count", taken.runs)
        row = f"{number(count)} timers due in {taken.spread_s:g} s"
        missing = f", {told['missing']} never" if told.get("missing") else ""
        more = f"armed in {number(told.get('armed_s', 0))} s, {number(told.get('cpu_ms', 0))} ms of CPU each{missing}"
        ours = kind == "onefold"
        spread = f"; {number(told.get('with_spread_p50', 0))} from the due instant, the spread included" if ours else ""
        p50, p99 = (2.0, 20.0) if ours else (None, None)
        yield Line(row, f"{kind}: lateness p50 ({more}{spread})", told.get("p50"), p50, None, "ms", less=True)
        most = number(told.get("most", 0))
        yield Line(row, f"{kind}: lateness p99 (most {most} ms)", told.get("p99"), p99, None, "ms", less=True)
        for what in ("early", "twice"):
            yield Line(row, f"{kind}: {what}", told.get(what), 0 if ours else None, None, "timers", less=True)
    for count, told in sorted(taken.at_rest.items())[-1:]:
        row = f"{number(count)} sleeping timers at rest"
        kib = told.get("kib")
        created = number(told.get("a_second", 0))
        yield Line(row, "from the exec to a durable answer", told.get("first_s"), 0.25, None, "s", less=True)
        yield Line(row, "memory of the whole process then", kib and kib / 1024, None, None, "MiB", less=True)
        yield Line(
            row, f"on the disk, each (created at {created} a second)", told.get("bytes_each"), None, None, "bytes"
        )
        yield Line(row, "lateness of a single wake", told.get("late_ms"), None, None, "ms", less=True)


def _waiters(taken: Measured) -> Iterator[Line]:
    count = max(taken.waiters, default=taken.runs)
    told = taken.waiters.get(count, {})
    row = f"{number(count)} waiting runs, kill -9"
    yield Line(
        row, "from the exec to the first new answer", told.get("first_s"), 0.5, 0.15, "s", less=True, profile=START
    )
    yield Line(
        row, "from the exec until all are armed and the overdue are done", told.get("armed_s"), 1, 0.15, "s", less=True
    )
    yield Line(row, "memory each, without SQLite's bounded cache", told.get("each_kib"), 5, 2.5, "KB", less=True)


def _starts(taken: Measured) -> Iterator[Line]:
    row = "start to first durable answer"
    kib = taken.start.get("kib")
    yield Line(row, "an app of one module", taken.start.get("seconds"), 0.25, 0.12, "s", less=True, profile=START)
    yield Line(row, "its memory then", None if kib is None else kib / 1024, 45, None, "MiB", less=True)
    kib = taken.tool_start.get("kib")
    told = "with MCP and pydantic, over HTTP" + ("" if kib is None else f" ({kib / 1024:.0f} MiB)")
    yield Line(row, told, taken.tool_start.get("seconds"), 0.6, None, "s", less=True)
    told = f"over HTTP, with {number(taken.spaces.get('spaces', 0))} tools, each with a space at rest"
    yield Line(row, told, taken.spaces.get("seconds"), 0.5, None, "s", less=True, profile=START)


def _growth(taken: Measured) -> Iterator[Line]:
    starts = {str(size): told for size, told in taken.waiters.items()}
    resting = {str(size): told for size, told in taken.at_rest.items()}
    for what, sizes, name, unit in (
        ("a turn, with the length of history", taken.histories, "warm_us", "us"),
        ("the first turn after a start, with the length of history", taken.histories, "cold_us", "us"),
        ("a wake, with sleeping actors", taken.wakes, "late_ms", "ms late"),
        ("a start, with waiting actors", starts, "first_s", "s"),
        ("a wake, with sleeping timers", resting, "late_ms", "ms late"),
        ("a start, with sleeping timers", resting, "first_s", "s"),
        ("an advance, with loaded reflexes", taken.loaded, "idle_us", "us"),
        ("a fact's way to its effect and settle, with loaded reflexes", taken.loaded, "fact_us", "us"),
        ("an advance, with settled runs in the ledger", taken.settled, "idle_us", "us"),
        ("a fact's way to its effect and settle, with settled runs", taken.settled, "fact_us", "us"),
    ):
        taken_sizes = sorted((int(size), float(told[name])) for size, told in sizes.items() if name in told)
        growth = taken_sizes[-1][1] / taken_sizes[0][1] if len(taken_sizes) > 1 and taken_sizes[0][1] else None
        figure = ", ".join(f"{number(size)}: {number(value)} {unit}" for size, value in taken_sizes)
        yield Line(f"must not grow: {what}", figure or "-", growth, GROWTH, None, "x", less=True)
