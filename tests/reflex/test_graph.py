"""Loops are found before anything is armed, however they close, and facts never lead to another principal."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from onefold.reflex.grammar import parse
from onefold.reflex.graph import Edge, Graph, is_guarded
from onefold.reflex.loops import loops, ring
from onefold.reflex.words import OnRun, OnWrite, Reflex
from tests.reflex.definitions import plain
from tests.reflex.ground import Act

EXAMPLES = int(os.environ.get("ONEFOLD_REFLEX_EXAMPLES", "100"))
WHEN = {"$": "fact.row.open"}
SELECT = {"query": {"name": "open"}, "mode": "batch"}


def on_write(entity: str) -> Any:
    return {"fact": {"entity": entity}}


def on_run(id: str) -> Any:
    return {"fact": {"run": id}}


def graph(*definitions: dict[str, Any], **writes: Sequence[str] | None) -> Graph:
    """`writes`: of each effect, by name; `note` writes nothing."""
    effects = {"note": Act("note", writes=())} | {name: Act(name, writes=told) for name, told in writes.items()}
    return Graph([parse(definition) for definition in definitions], effects)


def told(graph: Graph) -> list[tuple[str, str]]:
    return [(found.level, found.problem) for found in graph.findings()]


# --- loops -----------------------------------------------------------------------------------------------


def test_a_reflex_that_wakes_itself_for_ever_is_refused() -> None:
    ((level, problem),) = told(graph(plain("a", on_write("x"), "writer"), writer=["x"]))
    assert level == "refused"
    assert "a (on x) → a" in problem
    assert '"when"' in problem


def test_a_loop_through_another_reflex_is_refused_with_its_way() -> None:
    ((level, problem),) = told(
        graph(plain("a", on_write("x"), "to_y"), plain("b", on_write("y"), "to_x"), to_x=["x"], to_y=["y", "z"])
    )
    assert level == "refused"
    assert "a (on x) → b (on y) → a" in problem


def test_a_guard_anywhere_on_the_loop_makes_it_a_report() -> None:
    for guard in ({"when": WHEN}, {"select": SELECT}):
        ((level, problem),) = told(
            graph(plain("a", on_write("x"), "to_y", **guard), plain("b", on_write("y"), "to_x"), to_x=["x"], to_y=["y"])
        )
        assert level == "warning"
        assert "It ends when the guard of a lets nothing pass" in problem


def test_a_loop_that_only_a_settled_run_closes_is_found() -> None:
    """B fires on A's run, C on B's; C writes what wakes A."""
    found = told(graph(plain("a", on_write("x")), plain("b", on_run("a")), plain("c", on_run("b"), "to_x"), to_x=["x"]))
    assert [level for level, _ in found] == ["refused"]
    assert "a (on x) → b (on the run of a) → c (on the run of b) → a" in found[0][1]


def test_a_reflex_that_waits_for_its_own_run_is_refused() -> None:
    assert [level for level, _ in told(graph(plain("a", on_run("a"))))] == ["refused"]
    assert [level for level, _ in told(graph(plain("a", on_run("a"), when=WHEN)))] == ["warning"]


def test_a_guarded_way_round_does_not_excuse_an_unguarded_one() -> None:
    found = told(
        graph(
            plain("a", on_write("x"), "to_y"),
            plain("b", on_write("y"), "to_x"),
            plain("c", on_write("y"), "to_x", when=WHEN),
            to_x=["x"],
            to_y=["y"],
        )
    )
    assert sorted(level for level, _ in found) == ["refused", "warning"]


def test_a_hand_a_clock_and_a_signal_close_no_loop() -> None:
    clock = {"clock": {"every": "day", "at": "09:00", "tz": "UTC"}}
    on: list[Any] = [{"manual": {}}, clock, {"fact": {"signal": "x"}}]
    for trigger in on:
        assert told(graph(plain("a", trigger, "to_x"), to_x=["x"])) == []


def test_what_writes_nothing_here_closes_no_loop() -> None:
    assert told(graph(plain("a", on_write("x"), "to_y"), plain("b", on_write("x")), to_y=["y"])) == []


# --- principals ------------------------------------------------------------------------------------------


def test_no_loop_leads_over_another_principal() -> None:
    def pair(one: Any, other: Any) -> Graph:
        return graph(
            plain("a", on_write("x"), "to_y", **one), plain("b", on_write("y"), "to_x", **other), to_x=["x"], to_y=["y"]
        )

    assert told(pair({"as": "s1"}, {"as": "s2"})) == []
    assert told(pair({}, {"as": "None"})) == []
    assert len(told(pair({"as": "s1"}, {"as": "s1"}))) == 1
    assert len(told(pair({}, {}))) == 1


def test_a_run_of_another_principal_is_never_heard_and_that_is_said() -> None:
    ((level, problem),) = told(graph(plain("a", **{"as": "s1"}), plain("b", on_run("a"), **{"as": "s2"})))
    assert level == "warning"
    assert "another principal" in problem


def test_a_run_that_nothing_makes_is_told_with_the_nearest_name() -> None:
    ((level, problem),) = told(graph(plain("billing.charge"), plain("b", on_run("billing.chrage"))))
    assert level == "warning"
    assert "did you mean 'billing.charge'?" in problem


# --- what nobody declared --------------------------------------------------------------------------------


def test_an_effect_that_does_not_say_what_it_writes_is_named_once() -> None:
    found = told(graph(*(plain(f"r{n:02}", effect="blind") for n in range(20)), blind=None))
    ((level, problem),) = found
    assert level == "warning"
    assert "'blind' does not say what it writes" in problem
    assert "and 11 more" in problem


def test_where_effects_are_not_known_nothing_is_called_blind() -> None:
    assert Graph([parse(plain("a", on_write("x"), "whatever"))], None).findings() == []


def test_very_many_loops_are_told_by_their_beginning() -> None:
    found = graph(*(plain(f"r{n}", on_run(f"r{n}")) for n in range(120))).findings()
    assert len(found) == 51
    assert "70 more" in found[-1].problem


# --- arrows and pictures ---------------------------------------------------------------------------------


def test_the_arrows_are_those_of_the_definitions() -> None:
    drawn = graph(
        plain("a", on_write("x"), "to_y", **{"as": "s"}),
        plain("b", on_run("a"), "blind", **{"as": "s"}),
        plain("c", on_run("a")),
        to_y=["y", "y"],
        blind=None,
    )
    assert set(drawn.edges) == {
        Edge("wakes", "x", "a", "s"),
        Edge("writes", "a", "y", "s"),
        Edge("follows", "a", "b", "s"),
        Edge("blind", "b", "blind", "s"),
    }
    assert len(drawn.edges) == 4


def test_the_text_says_what_wakes_what() -> None:
    clock = {"clock": {"every": "month", "on": 1, "at": "04:30", "tz": "Europe/Vienna"}}
    drawn = graph(
        plain("charge", clock, "pay", select=SELECT, **{"as": "studio_42"}),
        plain("paid", on_write("charges"), when=WHEN, enabled=False, **{"as": "studio_42"}),
        plain("digest", on_run("charge"), "mail", **{"as": "studio_42"}),
        plain("hand"),
        pay=["charges", "log"],
        mail=None,
    )
    assert drawn.text() == (
        "as nobody\n"
        "  hand: by hand → note\n"
        "as studio_42\n"
        "  charge: every month on 1 at 04:30 Europe/Vienna [all rows] → pay\n"
        "    writes charges → paid [when] [disarmed]\n"
        "    writes log → nobody here\n"
        "    settles → digest\n"
        "  digest: settled run of charge → mail\n"
        "    writes what it does not say\n"
        "  paid: any write of charges [when] [disarmed] → note\n"
    )


def test_the_picture_escapes_what_people_wrote_and_keeps_principals_apart() -> None:
    drawn = graph(
        plain("a", on_write('x"\\'), "to_x", when=WHEN, **{"as": 's"1'}),
        plain("b", on_write('x"\\'), "blind"),
        to_x=['x"\\'],
        blind=None,
    ).dot()
    assert drawn.startswith("digraph reflexes {\n")
    assert drawn.count("subgraph") == 2
    assert 'label="as s\\"1"' in drawn
    assert drawn.count('[label="x\\"\\\\", shape=ellipse') == 2
    assert drawn.count("{") == drawn.count("}")
    for line in drawn.splitlines():
        assert re.sub(r"\\.", "", line).count('"') % 2 == 0


def test_an_empty_set_has_an_empty_picture() -> None:
    assert graph().text() == "no reflexes\n"
    assert graph().findings() == []
    assert graph().edges == ()


# --- against every way there is --------------------------------------------------------------------------


@dataclass(frozen=True)
class Set:
    reflexes: tuple[Reflex, ...]
    writes: Mapping[str, Sequence[str]]


@st.composite
def sets(draw: st.DrawFn) -> Set:
    count = draw(st.integers(1, 6))
    ids, entities = [f"r{n}" for n in range(count)], ["x", "y", "z"]
    writes = {f"e{n}": draw(st.lists(st.sampled_from(entities), max_size=2)) for n in range(3)}
    made = []
    for id in ids:
        on = draw(st.sampled_from([*map(on_write, entities), *map(on_run, ids), {"manual": {}}]))
        more: dict[str, Any] = {"when": WHEN} if "fact" in on and draw(st.booleans()) else {}
        if (principal := draw(st.sampled_from([None, "s"]))) is not None:
            more["as"] = principal
        made.append(parse(plain(id, on, draw(st.sampled_from(sorted(writes))), **more)))
    return Set(tuple(made), writes)


def wakes(one: Reflex, other: Reflex, writes: Mapping[str, Sequence[str]]) -> bool:
    """The rule itself, for two reflexes."""
    if one.principal != other.principal:
        return False
    if isinstance(other.on, OnRun):
        return other.on.reflex == one.id
    return isinstance(other.on, OnWrite) and other.on.entity in writes[one.effect]


def reached(start: Reflex, allowed: Sequence[Reflex], writes: Mapping[str, Sequence[str]]) -> set[str]:
    found: set[str] = set()
    waiting = [start]
    while waiting:
        one = waiting.pop()
        for other in allowed:
            if other.id not in found and wakes(one, other, writes):
                found.add(other.id)
                waiting.append(other)
    return found


@settings(max_examples=EXAMPLES)
@given(sets())
def test_loops_are_those_that_every_way_there_is_would_find(given: Set) -> None:
    found = Graph(given.reflexes, {name: Act(name, writes=told) for name, told in given.writes.items()})
    bare = [reflex for reflex in given.reflexes if not is_guarded(reflex)]
    endless = {reflex.id for reflex in bare if reflex.id in reached(reflex, bare, given.writes)}
    ending = {r.id for r in given.reflexes if is_guarded(r) and r.id in reached(r, given.reflexes, given.writes)}
    for guarded, expected in ((False, endless), (True, ending)):
        told = list(found._rings(guarded=guarded))
        shown = {reflex.id for ring in told for reflex in ring}
        assert bool(told) is bool(expected)
        assert shown <= endless if not guarded else any(is_guarded(r) for ring in told for r in ring) or not told
        for way in told:
            assert all(wakes(one, after, given.writes) for one, after in zip(way, [*way[1:], way[0]], strict=True))
        # every knot is told of: what is on a loop reaches one that is shown, and is reached from it
        within = bare if not guarded else given.reflexes
        for id in expected:
            start = next(reflex for reflex in given.reflexes if reflex.id == id)
            there = reached(start, within, given.writes)
            assert any(
                other in there and id in reached(next(r for r in within if r.id == other), within, given.writes)
                for other in shown
            )


@settings(max_examples=EXAMPLES)
@given(st.lists(st.lists(st.integers(0, 7), max_size=4), min_size=8, max_size=8))
def test_knots_are_what_reaches_itself(graphed: list[list[int]]) -> None:
    def ways(start: int) -> set[int]:
        found: set[int] = set()
        waiting = [start]
        while waiting:
            for to in graphed[waiting.pop()]:
                if to not in found:
                    found.add(to)
                    waiting.append(to)
        return found

    reach = {n: ways(n) for n in range(8)}
    expected = {tuple(m for m in range(8) if m in reach[n] and n in reach[m]) for n in range(8) if n in reach[n]}
    assert {tuple(knot) for knot in loops(graphed)} == expected
    for knot in loops(graphed):
        way = ring(graphed, set(knot), knot[0])
        assert set(way) <= set(knot)
        assert all(after in graphed[one] for one, after in zip(way, [*way[1:], way[0]], strict=True))


def test_a_hundred_thousand_in_one_chain_are_one_loop() -> None:
    """A search that calls itself ends at a thousand; one from each reflex would not end today."""
    size = 100_000
    assert [len(knot) for knot in loops([[(n + 1) % size] for n in range(size)])] == [size]
    assert loops([[n + 1] for n in range(size - 1)] + [[]]) == []


def test_an_entity_with_many_writers_and_many_watchers_has_few_arrows() -> None:
    parsed = [parse(plain("a", on_write("x"), "to_y")), parse(plain("b", on_write("y"), "to_y", when=WHEN))]
    many = [
        Reflex(**{**{f: getattr(reflex, f) for f in reflex.__slots__}, "id": f"{reflex.id}{n}"})
        for reflex in parsed
        for n in range(2_000)
    ]
    found = Graph(many, {"to_y": Act("to_y", writes=["y"])})
    assert len(found.edges) == 8_000
    assert sum(map(len, found._graphed(found.reflexes))) < 10_000
    assert [item.level for item in found.findings()] == ["warning"]
