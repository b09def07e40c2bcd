"""reflex.schema - the grammar of a draft as JSON Schema, for whoever writes one without knowing this package.

For: an agent, a form or an editor, given the effects and selections that a host registered.
Never: the judge. `grammar` is; this says beforehand what it will take, and a test holds the two together.
Was wrong once: a schema with `enabled` in it. An agent that filled it in had armed its own work; here the word does
not exist, and a person writes it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from onefold.almanac.calendar import WEEKDAYS
from onefold.reflex.grammar import EFFECT, MAX_INTENT_CHARS, MAX_RETRIES
from onefold.reflex.seams import ROOTS, Effect
from onefold.reflex.words import Json
from onefold.terms.duration import DAY, WEEK
from onefold.terms.limits import MAX_DURATION_MS

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
WORD: Final = r"[a-z][a-z0-9_-]{0,31}"
NAME: Final = rf"^{WORD}(\.{WORD})*$"
CLOCK: Final = r"^([01][0-9]|2[0-3]):[0-5][0-9]$"
LATEST_DAY: Final = {"minimum": 1, "maximum": 31}

TEMPLATE: Final = (
    'Any JSON. An object with the one key "$" is an expression, and becomes its value: '
    '{"$": "row.amount * 2"}. It sees ' + ", ".join(ROOTS) + " and nothing else: params are the reflex's own; "
    "occurrence {key, at} is there for a clock, fact for a fact; row is the selected row (mode each), rows all of them "
    "(mode batch)."
)


def draft_schema(
    effects: Iterable[Effect] = (), selects: Iterable[str] = (), reflexes: Iterable[str] = ()
) -> dict[str, Any]:
    """What a draft may say, as JSON Schema (2020-12).

    effects, selects: those that are registered; only they may be named. reflexes: the ids that a run trigger may name
    beside the draft's own. Without any of a kind, every name of the right form is taken. There is no `enabled`.
    """
    named = tuple(effects)
    schema = _closed(
        {
            "id": {"type": "string", "pattern": NAME, "description": "Words with dots: billing.charge-due."},
            "intent": _text("One sentence, for the person who arms it: what happens, to whom, when.")
            | {"maxLength": MAX_INTENT_CHARS},
            "as": {
                "type": ["string", "null"],
                "description": "Whose it is. It hears the facts of this principal only.",
            },
            "on": _trigger(reflexes),
            "params": {"type": "object", "description": "Knobs of its own, seen by templates as params."},
            "select": _select(selects),
            "when": {
                "description": f"For facts only: a template; the fact passes unless it gives false, null, 0, "
                f'"" or []. {TEMPLATE}'
            },
            "effect": _effect(named),
            "policy": _policy(),
        },
        required=("id", "intent", "on", "effect"),
    )
    facts_only = {"properties": {"on": {"required": ["fact"]}}}
    return {
        "$schema": DIALECT,
        "title": "A draft of a reflex",
        "description": "An automation as data: when this happens, for these rows, do this one thing. A draft arms nothing.",
        **schema,
        "dependentSchemas": {"when": facts_only},
    }


def _closed(properties: dict[str, Any], required: Iterable[str] = (), **more: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
        **more,
    }


def _text(description: str) -> dict[str, Any]:
    return {"type": "string", "minLength": 1, "description": description}


def _one_of(names: Iterable[str], description: str) -> dict[str, Any]:
    known = sorted(names)
    named: dict[str, Any] = {"enum": known} if known else {"pattern": f"{NAME}|^{EFFECT.pattern}$"}
    return {"type": "string", **named, "description": description}


def _trigger(reflexes: Iterable[str]) -> dict[str, Any]:
    known = sorted(reflexes)
    others = f" Loaded now: {', '.join(known)}." if known else ""
    entity = _text("What was written: bank.Deposited, charge_attempts.")
    facts = [
        _closed({"entity": entity, "op": {"enum": ["insert", "update", "delete"]}}, ("entity",)),
        _closed({"signal": _text("The name of what happened elsewhere: stripe.")}, ("signal",)),
        _closed(
            {"run": {"type": "string", "pattern": NAME, "description": f"When all its tasks ended.{others}"}}, ("run",)
        ),
    ]
    return {
        "description": "What makes it run. Any reflex can be fired by hand as well.",
        "oneOf": [
            _closed({"clock": _clock()}, ("clock",)),
            _closed({"fact": {"oneOf": facts}}, ("fact",)),
            _closed({"manual": _closed({})}, ("manual",)),
        ],
    }


def _clock() -> dict[str, Any]:
    at = {"type": "string", "pattern": CLOCK, "description": "Local time: 09:00. 00:00 begins the day."}
    tz = _text("An IANA zone: Europe/Vienna.")

    def every(period: str, on: Json | None) -> dict[str, Any]:
        return _closed(
            {"every": {"const": period}, **({"on": on} if on else {}), "at": at, "tz": tz}, ("every", "at", "tz")
        )

    day_of_month = {"type": "integer", **LATEST_DAY, "description": "31 is the last day of any month."}
    day_of_year = {"type": "string", "pattern": r"^(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])$", "description": "MM-DD"}
    return {
        "oneOf": [
            every("day", None),
            every("week", {"enum": list(WEEKDAYS)}),
            every("month", day_of_month),
            every("year", day_of_year),
            _closed({"at": _text("Once, local: 2026-09-14T09:00."), "tz": tz}, ("at", "tz")),
            _closed({"cron": _text("Five fields; prefer every."), "tz": tz}, ("cron", "tz")),
            _closed({"in": _text("Once, counted from when the draft is saved: 2 minutes.")}, ("in",)),
        ]
    }


def _select(selects: Iterable[str]) -> dict[str, Any]:
    known = sorted(selects)
    query: dict[str, Any] = {"description": TEMPLATE}
    if known:
        given = {"type": "object", "description": f"What it is asked with. {TEMPLATE}"}
        query = _closed({"name": _one_of(known, "A registered selection."), "with": given}, ("name",))
    by_row = {"required": ["unitKey"], "properties": {"mode": {"const": "each"}}}
    at_once = {"properties": {"mode": {"const": "batch"}, "unitKey": False}}
    return _closed(
        {
            "query": query,
            "mode": {"enum": ["each", "batch"], "description": "each: one task a row. batch: one task for all rows."},
            "unitKey": _text("The row's field that names it; two rows with the same one refuse the run."),
        },
        ("query", "mode"),
        description="The rows it acts on, asked for when it runs. Left out: the trigger itself, or a write's row.",
        oneOf=[by_row, at_once],
    )


def _effect(effects: tuple[Effect, ...]) -> dict[str, Any]:
    told = "; ".join(
        f"{each.name} "
        + ("(nobody said what it writes)" if each.writes is None else f"writes {', '.join(each.writes)}")
        for each in sorted(effects, key=lambda one: one.name)
        if each.writes is None or each.writes
    )
    name = _one_of((each.name for each in effects), f"The one thing it does. {told}".strip())
    return _closed(
        {"name": name, "input": {"description": f"What it is given, once for each task. {TEMPLATE}"}}, ("name",)
    )


def _policy() -> dict[str, Any]:
    whole = {"type": "integer", "minimum": 0}
    retry = _closed(
        {
            "max": {**whole, "maximum": MAX_RETRIES, "description": "Attempts after the first. Default 3."},
            "backoff": {"enum": ["fixed", "exponential"]},
            "baseMs": {**whole, "minimum": 1, "maximum": WEEK, "description": "Default 60000."},
        }
    )
    return _closed(
        {
            "retry": retry,
            "timeoutMs": {**whole, "minimum": 1, "maximum": DAY, "description": "Of one attempt. Default 30000."},
            "overlap": {
                "enum": ["skip", "allow"],
                "description": "Whether a repeat starts while the last run is open.",
            },
            "catchUp": {"enum": ["run", "skip", "latest"], "description": "What becomes of times missed while down."},
            "order": {"enum": ["any", "serial"], "description": "serial: one task at a time, in order."},
            "lateMs": {
                **whole,
                "maximum": MAX_DURATION_MS,
                "description": "From when on an occurrence counts as missed. Default 3600000.",
            },
        },
        description="Leave it out unless the defaults are wrong.",
    )
