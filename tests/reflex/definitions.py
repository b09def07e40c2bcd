"""Definitions for the tests of reflexes: one that has every word, short ones, and strategies for any.

For: tests only.
Never: a definition that a test then has to repair.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from hypothesis import strategies as st

WHOLE: dict[str, Any] = {
    "id": "billing.charge-due",
    "intent": "Collect what subscribers owe for the month.",
    "as": "studio_42",
    "params": {"graceDays": 5},
    "on": {"clock": {"every": "month", "on": 1, "at": "04:30", "tz": "Europe/Vienna"}},
    "select": {
        "query": {"name": "subscriptions.due", "with": {"month": {"$": "occurrence.key"}}},
        "mode": "each",
        "unitKey": "subscription_id",
    },
    "effect": {
        "name": "payments.charge",
        "input": {"subscription": {"$": "row.subscription_id"}, "amount": {"$": "row.amount"}},
    },
    "policy": {
        "retry": {"max": 3, "backoff": "exponential", "baseMs": 30000},
        "timeoutMs": 20000,
        "overlap": "skip",
        "catchUp": "run",
        "order": "any",
        "lateMs": 60000,
    },
    "enabled": True,
}


def whole(**changes: Any) -> dict[str, Any]:
    """The definition that has every word but `when`; a change of None leaves its word out."""
    changed = deepcopy(WHOLE) | changes
    return {word: value for word, value in changed.items() if value is not None}


def plain(id: str = "a", on: Any = None, effect: str = "note", **more: Any) -> dict[str, Any]:
    """The shortest definition; by hand unless it is said."""
    return {"id": id, "intent": "Note it.", "on": on or {"manual": {}}, "effect": {"name": effect}, **more}


# --- any definition -------------------------------------------------------------------------------------

names = st.from_regex(r"[a-z][a-z0-9_-]{0,8}(\.[a-z][a-z0-9_-]{0,8}){0,2}", fullmatch=True).filter(
    lambda name: name not in {"graph", "runs", "tasks", "explain"}
)
words = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=12)
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | words
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3), max_leaves=6
)
objects = st.dictionaries(words, values, max_size=3)
zones = st.sampled_from(["UTC", "Europe/Vienna", "America/Nuuk", "Pacific/Apia", "Asia/Kolkata"])
minutes = st.builds("{:02}:{:02}".format, st.integers(0, 23), st.integers(0, 59))
clocks = st.one_of(
    st.fixed_dictionaries({"every": st.just("day"), "at": minutes, "tz": zones}),
    st.fixed_dictionaries(
        {"every": st.just("week"), "at": minutes, "tz": zones}, optional={"on": st.sampled_from(["mon", "sun"])}
    ),
    st.fixed_dictionaries({"every": st.just("month"), "at": minutes, "tz": zones}, optional={"on": st.integers(1, 31)}),
    st.fixed_dictionaries(
        {"every": st.just("year"), "at": minutes, "tz": zones}, optional={"on": st.sampled_from(["02-29", "12-24"])}
    ),
    st.fixed_dictionaries({"cron": st.sampled_from(["0 9 * * mon-fri", "*/15 * * * *"]), "tz": zones}),
    st.fixed_dictionaries({"at": st.builds("2026-09-14T{}".format, minutes), "tz": zones}),
)
facts = st.one_of(
    st.fixed_dictionaries({"entity": words}, optional={"op": st.sampled_from(["insert", "update", "delete"])}),
    st.fixed_dictionaries({"signal": words}),
    st.fixed_dictionaries({"run": names}),
)
selections = st.one_of(
    st.fixed_dictionaries({"query": values.filter(lambda v: v is not None), "mode": st.just("each"), "unitKey": words}),
    st.fixed_dictionaries({"query": values.filter(lambda v: v is not None), "mode": st.just("batch")}),
)
policies = st.fixed_dictionaries(
    {},
    optional={
        "retry": st.fixed_dictionaries(
            {},
            optional={
                "max": st.integers(0, 50),
                "backoff": st.sampled_from(["fixed", "exponential"]),
                "baseMs": st.integers(1, 604_800_000),
            },
        ),
        "timeoutMs": st.integers(1, 86_400_000),
        "overlap": st.sampled_from(["skip", "allow"]),
        "catchUp": st.sampled_from(["run", "skip", "latest"]),
        "order": st.sampled_from(["any", "serial"]),
        "lateMs": st.integers(0, 10**10),
    },
)


@st.composite
def definitions(draw: st.DrawFn) -> dict[str, Any]:
    """Any definition that is right."""
    on = draw(st.one_of(clocks.map(lambda c: {"clock": c}), facts.map(lambda f: {"fact": f}), st.just({"manual": {}})))
    rest = {"as": words, "params": objects, "select": selections, "policy": policies, "enabled": st.booleans()}
    if "fact" in on:
        rest["when"] = values.filter(lambda v: v is not None)
    needed = {
        "id": names,
        "intent": st.sampled_from(["Collect what is owed.", "Tell Mr. Smith", "Schreibe es auf"]),
        "on": st.just(on),
        "effect": st.fixed_dictionaries({"name": names}, optional={"input": values}),
    }
    found: dict[str, Any] = draw(st.fixed_dictionaries(needed, optional=rest))
    return found
