"""Charts made by chance, for another interpreter to agree with. The same seed, the same chart.

Loops end by themselves: an `always` and a raised event stand behind a counter, and nothing a child
says makes its parent speak to it again.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from random import Random
from typing import Any

from onefold.machine.acts import Function

OUTSIDE = ("E1", "E2", "E3", "e.a", "e.b")
FIELDS = ("x", "y")
BOOMS: list[str] = []


def guard_named(name: str) -> Function:
    kind, field, *limit = name.split("_")

    def holds(context: Mapping[str, Any], event: object, now: datetime) -> bool:
        return bool(context[field] < int(limit[0])) if kind == "lt" else context[field] % 2 == 1

    return holds


def action_named(name: str) -> Function:
    field = name.split("_")[-1]

    def change(context: Mapping[str, Any], event: object, now: datetime) -> Mapping[str, Any]:
        if name == "boom":
            BOOMS.append(name)
            raise ValueError("boom")
        return {**context, field: context[field] + 1}

    return change


def effect_named(name: str) -> Function:
    return lambda context, event, now: context["x"]


GUARDS = {name: guard_named(name) for name in [f"lt_{f}_{n}" for f in FIELDS for n in range(1, 7)] + ["odd_x", "odd_y"]}
ACTIONS = {name: action_named(name) for name in [*(f"add_{f}" for f in FIELDS), "boom"]}
EFFECTS = {f"do_{letter}": effect_named(letter) for letter in "abcd"}


class Maker:
    """One chart. `child`: it may speak to its parent. `invokes`: names of charts it may invoke."""

    def __init__(self, rng: Random, *, child: bool = False, invokes: tuple[str, ...] = (), size: int = 12) -> None:
        self.rng = rng
        self.child = child
        self.invokes = invokes
        self.left = size
        self.ids: list[str] = []
        self.homes: dict[str, dict[str, Any]] = {}
        self.kids: list[str] = []

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def chart(self) -> dict[str, Any]:
        root = self._state("m", None, 0)
        root.pop("type", None) if root.get("type") == "final" else None
        if "states" not in root:
            root["initial"] = "a"
            root["states"] = {"a": self._state("m.a", "m", 3)}
        root["id"] = "m"
        root["context"] = {"x": {"$": "input.x"} if self.child else 0, "y": 0}
        root["output"] = {"$": "event.output"}
        for id, state in list(self.homes.items()):
            self._fill(id, state)
        ends = [id for id, state in self.homes.items() if state.get("type") == "final" and id.count(".") == 1]
        if self.child and ends:
            root.setdefault("on", {})[self.rng.choice(OUTSIDE)] = [{"target": f"#{ends[0]}", "actions": ["add_y"]}]
        return root

    # --- shape --------------------------------------------------------------------------------

    def _state(self, id: str, parent: str | None, depth: int) -> dict[str, Any]:
        state: dict[str, Any] = {}
        self.homes[id] = state
        if parent is not None:
            self.ids.append(id)
        self.left -= 1
        if depth >= 3 or self.left <= 0 or (depth and self.chance(0.4)):
            return state
        parallel = self.chance(0.3)
        count = self.rng.randint(2, 3) if parallel else self.rng.randint(1, 4)
        keys = self.rng.sample("abcdefgijkl", count)  # in no order of their own
        state["states"] = {key: self._state(f"{id}.{key}", id, depth + 1) for key in keys}
        if parallel:
            state["type"] = "parallel"
        else:
            state["initial"] = self.rng.choice(keys)
            if self.chance(0.7 if self.child else 0.35):
                last = state["states"][keys[-1]]
                if "states" not in last and keys[-1] != state["initial"]:
                    last["type"] = "final"
        if depth and self.chance(0.3):
            memory: dict[str, Any] = {"type": "history", "history": self.rng.choice(["shallow", "deep"])}
            if self.chance(0.4):
                memory["target"] = self.rng.choice(keys)
            state["states"]["h"] = memory
            self.ids.append(f"{id}.h")
        return state

    # --- what it does -------------------------------------------------------------------------

    def _fill(self, id: str, state: dict[str, Any]) -> None:
        final = state.get("type") == "final"
        if self.chance(0.4):
            state["entry"] = self._acts(entry=True)
        if self.chance(0.3):
            state["exit"] = self._acts(entry=True)
        if final:
            if self.chance(0.5):
                state["output"] = {"of": id, "x": {"$": "context.x"}}
            return
        if isinstance(state.get("initial"), str) and self.chance(0.2):
            state["initial"] = {"target": state["initial"], "actions": self._acts(entry=True)}
        on = {}
        for event in self.rng.sample([*OUTSIDE, "R1", "R2", "P1", "*", "e.*"], self.rng.randint(0, 3)):
            on[event] = [self._arrow(id, event) for _ in range(self.rng.randint(1, 2))]
        if on:
            state["on"] = on
        if self.chance(0.15):
            state["always"] = [self._always(id)]
        if "states" in state and id != "m" and self.chance(0.5):
            state["onDone"] = [self._arrow(id, "done")]
        if self.invokes and self.chance(0.25):
            self._invoke(id, state)

    def _invoke(self, id: str, state: dict[str, Any]) -> None:
        kid = f"k{len(self.kids)}"
        self.kids.append(kid)
        state["invoke"] = {"id": kid, "src": self.rng.choice(self.invokes), "input": {"x": {"$": "context.y"}}}
        for key, share in (("onDone", 0.7), ("onError", 0.8)):
            if self.chance(share):
                state["invoke"][key] = self._arrow(id, "P1")
        on = state.setdefault("on", {})
        for event in self.rng.sample(OUTSIDE, 2):
            send = (
                {"forwardTo": kid}
                if self.chance(0.6)
                else {"sendTo": kid, "event": {"type": "E1", "n": {"$": "context.x"}}}
            )
            on[event] = [*on.get(event, []), {"actions": [send]}] if self.chance(0.5) else [{"actions": [send]}]

    def _target(self, id: str) -> str | list[str]:
        if self.chance(0.1):
            sides = [i for i, s in self.homes.items() if s.get("type") == "parallel" and len(s["states"]) > 1]
            if sides:
                side = self.rng.choice(sides)
                regions = [key for key in self.homes[side]["states"] if key != "h"]
                return [f"#m{self._within(f'{side}.{key}')[1:]}" for key in self.rng.sample(regions, 2)]
        return "#" + self.rng.choice(self.ids)

    def _within(self, id: str) -> str:
        return self.rng.choice([other for other in self.ids if other == id or other.startswith(id + ".")])

    def _arrow(self, id: str, event: str) -> dict[str, Any]:
        arrow: dict[str, Any] = {}
        if self.chance(0.7):
            arrow["target"] = self._target(id)
            if self.chance(0.25):
                arrow["reenter"] = True
        if self.chance(0.35):
            arrow["guard"] = self._guard()
        if self.chance(0.5):
            arrow["actions"] = self._acts(entry=event not in OUTSIDE)
        return arrow

    def _always(self, id: str) -> dict[str, Any]:
        field = self.rng.choice(FIELDS)
        arrow: dict[str, Any] = {"guard": f"lt_{field}_{self.rng.randint(1, 6)}", "actions": [f"add_{field}"]}
        if self.chance(0.8):
            arrow["target"] = self._target(id)
        return arrow

    def _guard(self, depth: int = 0, *, inside: bool = True) -> Any:
        pick = self.rng.random()
        if depth > 1 or pick < 0.6 or (not inside and pick < 0.85):
            return self.rng.choice(list(GUARDS))
        if pick < 0.7:
            return {"not": self._guard(depth + 1, inside=inside)}
        if pick < 0.85:
            return {"in": "#" + self.rng.choice([id for id in self.ids if not id.endswith(".h")])}
        return {self.rng.choice(["and", "or"]): [self._guard(depth + 1, inside=inside) for _ in range(2)]}

    def _acts(self, *, entry: bool) -> list[Any]:
        return [self._act(entry=entry) for _ in range(self.rng.randint(1, 3))]

    def _act(self, *, entry: bool) -> Any:
        pick = self.rng.random()
        if pick < 0.45:
            return self.rng.choice(list(EFFECTS))
        if pick < 0.7:
            return "add_" + self.rng.choice(FIELDS)
        if pick < 0.78:
            guarded = {"guard": "lt_x_5", "actions": ["add_x", {"raise": self.rng.choice(["R1", "R2"])}]}
            return {"choose": [guarded, {"actions": ["do_d"]}]}
        if pick < 0.84 and not entry and not self.child:
            return {"sendTo": "#self", "event": "R1"}
        if pick < 0.93 and self.child and not entry:
            return "boom"
        if pick < 0.97 and self.child:
            return {"sendParent": {"type": "P1", "y": {"$": "context.y"}}}
        return {"choose": [{"guard": self._guard(inside=False), "actions": ["do_a", "add_y"]}, {"actions": ["do_b"]}]}


def random_chart(seed: int) -> tuple[dict[str, Any], list[str]]:
    """A chart with up to two children's charts, and the events to feed it."""
    rng = Random(seed)
    names = ("one", "two")[: rng.randint(0, 2)]
    actors = {name: Maker(rng, child=True, size=6).chart() for name in names}
    chart = Maker(rng, invokes=names, size=rng.randint(4, 16)).chart()
    if actors:
        chart["actors"] = actors
    return chart, [rng.choice(OUTSIDE) for _ in range(rng.randint(3, 12))]
