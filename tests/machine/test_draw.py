"""A chart is drawn from the table that is stepped: every state, every arrow, nothing else."""

from __future__ import annotations

import pytest

from onefold.machine.draw import dot, mermaid
from onefold.machine.table import Chart
from tests.machine.seed_charts import schedule_chart
from tests.machine.small import chart

SCHEDULE_DOT = r"""digraph "schedule" {
  compound=true; rankdir=LR;
  node [shape=box, style=rounded]; edge [fontsize=10];
  subgraph "cluster schedule" {
    label="schedule"; style=rounded;
    "in schedule" [shape=point, style=invis, label=""];
    subgraph "cluster schedule.active" {
      label="active\nSUPERSEDE / bumpGeneration (enters anew)"; style=rounded;
      "in schedule.active" [shape=point, style=invis, label=""];
      "schedule.active.waiting" [label="waiting"];
      "schedule.active.ticking" [label="ticking\nruns tick\nALARM / forward to tick\nACKED / forward to tick\nSEALED / forward to tick\nSENT / forward to tick\nSEND_FAILED / forward to tick"];
      "start schedule.active" [shape=point, label=""];
      "start schedule.active" -> "schedule.active.waiting";
    }
    "schedule.ended" [label="ended", peripheries=2];
    "start schedule" [shape=point, label=""];
    "start schedule" -> "in schedule.active" [lhead="cluster schedule.active"];
  }
  "in schedule.active" -> "schedule.ended" [label="END", ltail="cluster schedule.active"];
  "schedule.active.waiting" -> "schedule.active.ticking" [label="ALARM [dueReached]"];
  "schedule.active.waiting" -> "schedule.ended" [label="always [noNextInstant]"];
  "schedule.active.ticking" -> "schedule.active.waiting" [label="done tick / nextFromNow"];
}
"""
TICK_MERMAID = """stateDiagram-v2
  [*] --> tick_live
  state "live" as tick_live {
    [*] --> tick_live_due
    state "due" as tick_live_due
    state "sealed" as tick_live_sealed
    state "owed" as tick_live_owed
  }
  state "sent" as tick_sent
  state "acked" as tick_acked
  tick_acked --> [*]
  state "void" as tick_void
  tick_void --> [*]
  tick_live --> tick_void : FENCED
  tick_live_due --> tick_live_sealed : SEALED [fresh] / send
  tick_live_sealed --> tick_sent : SENT
  tick_live_sealed --> tick_live_owed : SEND_FAILED
  tick_live_owed --> tick_live_sealed : ALARM
  tick_sent --> tick_acked : ACKED
"""


def everything() -> Chart:
    """A chart with one of each thing, and with names that need care."""
    choose = {"choose": [{"guard": "few", "actions": "add"}, {"actions": [{"raise": "E"}]}]}
    region = {
        "initial": {"target": "one", "actions": "add"},
        "states": {
            "one": {"on": {"E": "two"}},
            "two": {"type": "final"},
            "h": {"type": "history", "history": "deep", "target": "two"},
        },
    }
    guard = {"and": ["few", {"not": "never"}]}
    parallel = {
        "type": "parallel",
        "onDone": "z",
        "on": {"X": {"target": ".r.h", "guard": guard}, "Q": {"actions": ["add", {"sendTo": "#self", "event": "E"}]}},
        "states": {"r": region, 'b "x"; c:d': {"entry": ["add", choose], "exit": "in a"}},
    }
    return chart({"p": parallel, "z": {"on": {"E": {"target": "p", "reenter": True}}}}, "p")


def test_dot_is_the_chart() -> None:
    assert dot(schedule_chart()) == SCHEDULE_DOT


def test_mermaid_is_the_chart() -> None:
    assert mermaid(schedule_chart().actors["tick"]) == TICK_MERMAID


@pytest.mark.parametrize("draw", [dot, mermaid])
def test_every_state_and_every_arrow_is_drawn(draw) -> None:
    made = everything()
    drawn = draw(made)
    for word in (
        "one",
        "two",
        "H*",
        "X [few and not never]",
        "Q / add, send to",
        "E (enters anew)",
        "entry / add, [few] add | [else] raise",
    ):
        assert word in drawn, word
    assert drawn.count("->") + drawn.count("-->") >= sum(len(arrow.targets or ()) for arrow in made.arrows)


def test_text_cannot_break_out_of_its_place() -> None:
    assert r'"c.p.b \"x\"; c:d"' in dot(everything())
    assert 'state "b #34;x#34;#59; c#58;d" as c_p_b__x___c_d' in mermaid(everything())


def test_regions_are_parted() -> None:
    assert mermaid(everything()).count("--\n") == 1
    assert dot(everything()).count("style=dashed") == 1
