"""bench.goals_turns - what turns of cells, programs, mail and processes are to reach, and the lines a run fills it with.

For: figures beside the peers', beside what was promised, and beside the floor they stand on.
Never: measures; compares a synced figure with one that is not without saying so. Koru's are its own, of another
machine, and of writes that nothing synced: they are bounds here, and no ratio of them is made.
"""

from __future__ import annotations

from collections.abc import Iterator

from bench.contenders.counting import ACTORS
from bench.contenders.letters import CAPACITY, LETTERS
from bench.contenders.tallying import CALLS
from bench.goals import Line, Measured, number
from bench.interleave import Rounds
from bench.sharing import ROUTED
from bench.turns import CALLERS, PRODUCERS, apart_s

LEASE_S = 10.0  # as it comes
BEYOND_LEASE_S = 2.0  # what a takeover may add to the lease
KORU_TURN_US = 79
KORU_ROUTED_US = 280
KORU_SETTLED = 4_700
OVER_HTTP = {1: (2.5, 3.5), 8: (5, 10), 64: (10, 20)}


def turn_lines(taken: Measured, only: str | None = None) -> list[Line]:
    """The whole table, or the part of it that is named so."""
    known = {"cells": _cells, "programs": _programs, "mail": _mail, "processes": _processes, "routed": _routed}
    return [
        line for part, lines in known.items() if only in (None, part) for line in lines(taken.turns.get(part, Rounds()))
    ]


def _over(rounds: Rounds, mine: str, theirs: str) -> tuple[float | None, str]:
    """The ratio of two rates, and both as text."""
    ours, others = rounds.rate(mine), rounds.rate(theirs)
    if not ours or not others:
        return None, "-"
    return ours / others, f"{number(ours)} / {number(others)} a second"


def _us(rounds: Rounds, label: str) -> float | None:
    """Microseconds an answer."""
    rate = rounds.rate(label)
    return 1e6 / rate if rate else None


def _callers(many: int) -> str:
    return f"{many} caller{'s' if many > 1 else ''}"


def _cells(rounds: Rounds) -> Iterator[Line]:
    for callers in CALLERS:
        row, mine = f"a cell's turn over HTTP (uvicorn), {_callers(callers)}", f"cell_served turn {callers}"
        ratio, figure = _over(rounds, mine, f"workerd post {callers}")
        p99 = number(rounds.middle(mine, "p99"))
        told = f"Onefold / workerd's durable object: {figure}; p99 {p99} ms"
        yield Line(row, told, ratio, *OVER_HTTP[callers], profile=("cell_served", "turn", callers))
        ratio, figure = _over(rounds, mine, f"restate count {callers}")
        yield Line(row, f"Onefold / Restate's virtual object: {figure}", ratio, None)
        row, mine = f"a cell's turn in process, {_callers(callers)}", f"cell turn {callers}"
        ratio, figure = _over(rounds, mine, f"dbos count {callers}")
        yield Line(row, f"Onefold / DBOS, in process too: {figure}", ratio, None)
        ratio, figure = _over(rounds, mine, f"workerd post {callers}")
        must, aim = (30, 60) if callers == 64 else (None, None)
        told = f"Onefold / workerd's durable object, which has HTTP before it: {figure}"
        yield Line(row, told, ratio, must, aim, profile=("cell", "turn", callers))


def _programs(rounds: Rounds) -> Iterator[Line]:
    raw = _us(rounds, "disk rows 1")
    floor = f"; one raw synced commit takes {number(raw)} us here" if raw else ""
    for workload, calls in (("one", 1), ("ten", CALLS)):
        for callers in (1, 64):
            row = f"a program of {calls} call{'s' if calls > 1 else ''} as a turn, {_callers(callers)}"
            must = KORU_TURN_US if calls == 1 else None
            beside = f" (Koru, not synced: {KORU_TURN_US} us{floor})" if calls == 1 else ""
            us = _us(rounds, f"cell {workload} {callers}")
            look = ("cell", workload, callers)
            yield Line(row, f"durable on SQLite, each{beside}", us, must, None, "us", less=True, profile=look)
            memory = _us(rounds, f"memory {workload} {callers}")
            yield Line(row, "resident alone, with memory for a store", memory, must, None, "us", less=True)
            alone = _us(rounds, f"interpreter {workload} {callers}")
            yield Line(row, "the interpreter alone: no cell, no store", alone, None, None, "us", less=True)
            if callers == 1:
                alone = _us(rounds, f"one_core {workload} 1")
                yield Line(row, "the same, it and its host on one core", alone, None, None, "us", less=True)
            over = us / alone if us and alone else None
            way = "which one call does not need" if calls == 1 else "which it runs in"
            yield Line(row, f"durable / the interpreter alone, {way}", over, None, less=True)


def _mail(rounds: Rounds) -> Iterator[Line]:
    raw = _us(rounds, "disk rows 1")
    floor = f"; one raw synced commit takes {number(raw)} us here" if raw else ""
    for producers in PRODUCERS:
        one = producers == 1
        row = f"{number(LETTERS)} letters, {producers} producer{'' if one else 's'}{'' if one else ', a cell each'}"
        posted, delivered = (each * 1e6 or None for each in apart_s(rounds, producers))
        yield Line(row, "posted, each, while nobody delivers", posted, None, None, "us", less=True)
        yield Line(row, "delivered, each, while nobody posts", delivered, None, None, "us", less=True)
        both = posted + delivered if posted and delivered else None
        told = f"both, each synced on its own (Koru, not synced: {KORU_ROUTED_US} us{floor})"
        yield Line(row, told, both, KORU_ROUTED_US, None, "us", less=True)
    row = "settled turns, 8 producers"
    koru = f"Koru, not synced: {number(KORU_SETTLED)}"
    for workload, told in (
        ("ring", f"a ring of {CAPACITY}, {CAPACITY} takers, a cell each, the turn synced"),
        ("one_ring", f"the same, all to one cell ({koru})"),
        ("box", "the durable box, a cell each, post and turn synced"),
        ("one_box", f"the same, all to one cell ({koru})"),
    ):
        rate = rounds.rate(f"mail {workload} 8") or None
        yield Line(row, told, rate, KORU_SETTLED, None, "a second", profile=("mail", workload, 8))
    hop = rounds.rate("mail hop 8") or None
    yield Line("the ring alone, 8 producers", "offered and settled, in one process", hop, None, None, "a second")


def _processes(rounds: Rounds) -> Iterator[Line]:
    row = "on Postgres, 64 callers in process"
    mine = "alone fold 1"
    ratio, figure = _over(rounds, mine, "dbos count 64")
    yield Line(row, f"Onefold / DBOS on Postgres: {figure}", ratio, 100)
    ratio, figure = _over(rounds, mine, "workerd post 64")
    yield Line(row, f"Onefold / workerd: {figure}", ratio, 10, 20)
    row = "whole folds on one Postgres, 64 callers a process"
    ratio, figure = _over(rounds, "fleet fold 1", mine)
    yield Line(row, f"a fleet of one / a process alone: {figure}", ratio, None)
    for many in (2, 4):
        ratio, figure = _over(rounds, f"fleet fold {many}", "fleet fold 1")
        yield Line(row, f"{many} nodes / one: {figure}", ratio, None)


def _routed(rounds: Rounds) -> Iterator[Line]:
    for callers in ROUTED:
        row = f"a cell's turn between two nodes on one Postgres, {_callers(callers)}"
        there, here = (_us(rounds, f"node {workload} {callers}") for workload in ("there", "here"))
        koru = f" (Koru, not synced: {KORU_ROUTED_US} us)"
        yield Line(row, f"routed, each{koru}", there, KORU_ROUTED_US, None, "us", less=True)
        yield Line(row, "asked where its cell is, each", here, None, None, "us", less=True)
        over = there / here if there and here else None
        yield Line(row, "routed / asked where it is", over, None, less=True)


def takeover_lines(taken: Measured) -> Iterator[Line]:
    """How long a killed node's actors were away. A lease must run out first, and nobody may come before."""
    for lease_s, told in sorted(taken.takeovers.items()) or [(LEASE_S, {})]:
        row = f"a node killed, lease {lease_s:g} s"
        first, last = told.get("first"), told.get("last")
        yield Line(row, "until the first of its actors answers elsewhere", first, None, None, "s", less=True)
        yield Line(row, f"until {ACTORS} of them have", last, lease_s + BEYOND_LEASE_S, None, "s", less=True)
