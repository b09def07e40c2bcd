"""bench.scale.tables - what docs/scale.md shows, by name: the same bytes on every machine.

For: `every()`, which the script prints, `written`, which puts it into a document, and the test that compares the two.
Never: rounds so that a limit that is passed looks as if it were kept.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from bench.scale.constants import COSTS, LOAD, SERVER, Server, listed
from bench.scale.happenings import SHAPES, evenness, told
from bench.scale.worlds import Limit, World, limits

WORLDS = (1, 10, 20, 40, 100)
FORTY = 40
FEWER = (1_000, 120)
EVEN = ((25, 1_024), (100, 1_024), (100, 16_384), (1_000, 16_384))
MARK = re.compile(r"(<!-- scale: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
DIGITS = 3
WIDE = 125
SPACE = "\u00a0"  # no line ends within a number


def figure(value: float) -> str:
    """Three digits that count, thousands apart."""
    if value == 0:
        return "0"
    if abs(value) >= 100:
        whole = round(value, DIGITS - len(str(int(abs(value)))))
        return f"{whole:,.0f}".replace(",", SPACE)
    text = f"{value:.{DIGITS}g}"
    return f"{float(text):f}".rstrip("0").rstrip(".") if "e" in text else text


def whole(value: float) -> str:
    """All digits, thousands apart."""
    return f"{value:,.0f}".replace(",", SPACE)


def paragraph(text: str) -> str:
    return "\n".join(textwrap.wrap(text, WIDE, break_on_hyphens=False))


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


# --- worlds -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Line:
    """One row: what it is, the figure, and until which figure a server is planned with."""

    what: str
    of: Callable[[World], float]
    until: float | None = None
    scale: float = 1.0
    say: Callable[[float], str] = figure

    def cell(self, world: World) -> str:
        value = self.of(world)
        said = self.say(value / self.scale)
        return f"**{said}**" if self.until is not None and value > self.until else said


def lines(server: Server = SERVER) -> list[Line]:
    return [
        Line("nodes in each, and million actors", lambda w: w.nodes),
        Line("slots", lambda w: w.slots, say=whole),
        Line("turns a second, at the peak", lambda w: w.turns),
        Line("commits a second, at the peak", lambda w: w.commits),
        Line("renewals a second", lambda w: w.beats),
        Line("cores for renewals", lambda w: w.renewal_cores, server.looks * server.cores),
        Line("thousand rows looked at a second", lambda w: w.look_rows, scale=1e3),
        Line("cores for looks", lambda w: w.look_cores, server.looks * server.cores),
        Line("alarms a second, mean", lambda w: w.alarms),
        Line("cores to look for alarms", lambda w: w.alarm_cores),
        Line("core-seconds to find those of ten minutes", lambda w: w.backlog_s, server.drain_s * server.cores),
        Line("cores of the server, at the peak, all of it", lambda w: w.cores, server.cores),
        Line("WAL of guards, MB/s", lambda w: w.guard_wal, scale=1e6),
        Line("WAL, MB/s, at the peak", lambda w: w.wal, server.wal, 1e6),
        Line("rows and indexes, TB", lambda w: w.disk, server.disk, 1e12),
        Line("connections", lambda w: w.connections, server.connections),
        Line("ms of each node's loop to plan anew", lambda w: w.plan_ms, server.pause_ms),
        Line("hours until 200 million transactions are to be frozen", lambda w: w.freeze_h),
    ]


def worlds() -> str:
    found = [World(LOAD.nodes / count) for count in WORLDS]
    rows = [[line.what, *(line.cell(world) for world in found)] for line in lines()]
    return table(["of each world and its server", *(f"{n} worlds" if n > 1 else "1 world" for n in WORLDS)], rows)


def breaking() -> str:
    def row(limit: Limit) -> list[str]:
        return [limit.what, whole(limit.nodes), limit.how, "" if limit.moved is None else whole(limit.moved)]

    return table(["what gives way", "at nodes", "what moves it", "to"], [row(limit) for limit in limits()])


def fewer() -> str:
    """The same load, in as many worlds, on fewer nodes."""
    rows = []
    for count in FEWER:
        one = World(count / FORTY, load=replace(LOAD, nodes=count))
        row = [one.node_cores * 100, one.resident_bytes / 1e6, one.together, one.cores * FORTY, one.connections * FORTY]
        rows.append([whole(count), whole(count / FORTY), *map(figure, row)])
    heads = ["nodes", "in each world", "% of one core each", "MB of residents each", "turns of a commit"]
    return table([*heads, "cores of all servers", "connections"], rows)


def nodes() -> str:
    one = World(LOAD.nodes / FORTY)
    return paragraph(
        f"A node has {figure(one.residents)} residents, {figure(one.resident_bytes / 1e6)} MB, and is at"
        f" {figure(one.node_cores * 100)} % of one core. All its slots are handed over in {figure(one.hand_ms)} ms of the server"
        f" and {figure(one.hand_wal / 1e3)} KB of WAL. Whoever takes them reads the actors back as they are wanted: each waits"
        f" {figure(one.costs.read_ms)} ms longer, once, for which the server gives {figure(one.read_cores)} cores at the peak."
    )


def assumed() -> str:
    return f"{load()}\n\n{server()}"


def load() -> str:
    one = LOAD
    return paragraph(
        "The load: "
        f"{whole(one.actors / 1e6)} million actors on {whole(one.nodes)} nodes; {figure(one.turns_a_day)} turns a day for each,"
        f" and {figure(one.letters * 100)} letters for a hundred turns; {figure(one.asleep * 100)} % asleep with an alarm,"
        f" {figure(one.wakes_a_day)} wake a day; {figure(one.resident * 100)} % used within the hour; {figure(one.kept)} turns"
        f" kept of each; the busiest hour {figure(one.peak)} times the mean; a lease of {figure(one.lease_s)} s, a beat of a"
        " quarter."
    )


def server() -> str:
    one = SERVER
    return paragraph(
        "A server, half of it kept back: "
        f"{figure(one.cores)} cores of sixteen; {figure(one.wal / 1e6)} MB/s of WAL, written, archived and sent to a replica;"
        f" {figure(one.disk / 1e12)} TB of rows and indexes; {figure(one.connections)} connections; looks and renewals may"
        f" take {figure(one.looks * 100)} % of its cores each; what fell due in"
        f" ten minutes of standstill is to be found in {figure(one.drain_s)} s; a node's loop may stand still for"
        f" {figure(one.pause_ms)} ms."
    )


# --- happenings -------------------------------------------------------------------------------------


def happenings() -> str:
    sides = [told(shape) for shape in SHAPES]
    heads = ["what happens"]
    for shape in SHAPES:
        name = f"{shape.worlds} × {shape.nodes}"
        heads += [f"{name}: slots moved", "commits", "slot-seconds without an owner, longest"]
    rows = []
    for pair in zip(*sides, strict=True):
        row = [pair[0].what]
        for one in pair:
            row += [figure(one.moved), figure(one.commits), f"{figure(one.waited)}, {figure(one.longest)} s"]
        rows.append(row)
    return table(heads, rows)


def without() -> str:
    """What a restart of all is for one slot, by its way."""
    shape = SHAPES[0]
    says, silent, again = [one.waited / shape.worlds / shape.slots for one in told(shape) if "restarted" in one.what]
    return paragraph(
        f"A restart leaves each slot without an owner for {figure(says)} s where its node hands over and says so,"
        f" {figure(silent)} s where it tells nobody, and the next owner learns of it on its next beat, and {figure(again)} s"
        " where it just comes back: the start of a process."
    )


def even() -> str:
    said = [f"{figure(evenness(n, slots))} for {whole(n)} nodes on {whole(slots)} slots" for n, slots in EVEN]
    return paragraph(f"The fullest node over the mean: {'; '.join(said)}.")


# --- constants --------------------------------------------------------------------------------------


def costs() -> str:
    return table(["measured", "", ""], [[what, figure(value), unit] for what, value, unit in listed(COSTS)])


BLOCKS: Mapping[str, Callable[[], str]] = {
    "assumed": assumed,
    "worlds": worlds,
    "breaking": breaking,
    "nodes": nodes,
    "fewer": fewer,
    "happenings": happenings,
    "without": without,
    "even": even,
    "costs": costs,
}


def every() -> dict[str, str]:
    """All blocks by name."""
    return {name: make() for name, make in BLOCKS.items()}


def written(document: str, blocks: Mapping[str, str]) -> str:
    """The document with each marked block as it is in `blocks`. Raises: KeyError for one that is not."""
    return MARK.sub(lambda found: f"{found[1]}{blocks[found[2]]}\n{found[3]}", document)
