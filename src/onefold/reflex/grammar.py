"""reflex.grammar - a definition in JSON becomes a Reflex, or a refusal that names everything wrong with it.

For: the shape of every clause, the version of a definition, and drafts whose timers are anchored when they are saved.
Never: looks into a query or a template (they belong to `select` and `transform`); fills in what was not said but
where the policy has a default; knows what else is loaded.
Was wrong once: an unknown word passed over. `"catchup": "skip"` was read as the default, and a week of downtime
was charged at once.

    {"id", "intent", "on", "effect"}                          these four always
    {"as", "params", "select", "when", "policy", "enabled"}   these where they are meant
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, Literal, cast, get_args

from onefold.almanac import clock_rule, zone
from onefold.almanac.occurrence import MAX_WALL, wall_text
from onefold.reflex.findings import Findings, is_null, refuse
from onefold.reflex.words import (
    ByHand,
    Json,
    OnClock,
    OnRun,
    OnSignal,
    OnWrite,
    Op,
    Policy,
    Reflex,
    Selection,
    Trigger,
)
from onefold.terms import codec
from onefold.terms.codec import canonical, digest
from onefold.terms.duration import DAY, WEEK, duration_ms
from onefold.terms.errors import BadArguments, Broken, Finding, LoadRefused
from onefold.terms.faults import short
from onefold.terms.ids import check_name, check_text
from onefold.terms.instant import LAST, Instant
from onefold.terms.limits import MAX_DURATION_MS, MAX_ID_BYTES, MAX_KEY_BYTES

MAX_DEFINITION_BYTES: Final = 64 << 10
"""One definition. It is stored once for each version and read by people; what is bigger is data in the wrong place."""

MAX_INTENT_CHARS: Final = 300
"""One sentence. The longest that reads as one has half of it."""

MAX_RETRIES: Final = 50
"""Doubling from a second, the 50th would wait for millions of years: what is tried oftener is not transient."""

NEEDED: Final = {
    "id": 'give it a name, such as "billing.charge-due"',
    "intent": "say in one sentence what it does",
    "on": 'say what sets it off, such as {"fact": {"signal": "stripe"}}',
    "effect": 'say what it does, such as {"name": "payments.charge", "input": {}}',
}
WORDS: Final = ("id", "intent", "as", "params", "on", "select", "when", "effect", "policy", "enabled")
CLOCK: Final = ("every", "on", "at", "cron", "tz", "in")
FACTS: Final = ("entity", "signal", "run")
OPS: Final = get_args(Op)
SHORT: Final = frozenset("approx assoc corp dept govt incl prof".split())
SENTENCES: Final = re.compile(r"(\w+)[.!?]+\s+(?=[A-ZÄÖÜ])")
EFFECT: Final = re.compile(r"post\.[A-Za-z_][A-Za-z0-9_]{0,63}", re.ASCII)


def parse(definition: Json, path: str = "") -> Reflex:
    """The reflex that a definition states. `path`: where it came from, for the findings.

    Raises: LoadRefused with one ReflexFinding for each thing wrong.
    """
    reflex, found = examined(definition, path)
    refuse(found)
    if reflex is None:
        raise Broken("a definition was neither read nor refused")
    return reflex


def examined(definition: Json, path: str = "") -> tuple[Reflex | None, list[Finding]]:
    """As `parse`, but what is wrong stands beside what could be read; of clauses that could not, nothing is there."""
    found = Findings(path)
    read = _read(definition, found)
    if read is None:
        return None, found.found
    raw, text = read
    id = raw.get("id")
    found.reflex = id if isinstance(id, str) else ""
    found.keys((), raw, WORDS, "a reflex")
    for word, how in NEEDED.items():
        if word not in raw:
            found.add((word,), f"is missing; {how}")
    enabled = raw.get("enabled", True)
    if not isinstance(enabled, bool):
        found.add(("enabled",), "is not true or false")
    on = _trigger(raw["on"], found) if "on" in raw else None
    effect = _effect(raw["effect"], found) if "effect" in raw else None
    reflex = Reflex(
        id=_id(raw.get("id", ""), ("id",), found) if "id" in raw else "",
        intent=_intent(raw["intent"], found) if "intent" in raw else "",
        principal=_principal(raw.get("as"), found),
        on=on or ByHand(),
        effect=effect[0] if effect else "",
        input=effect[1] if effect else {},
        definition={word: value for word, value in raw.items() if word != "enabled"},
        version=_version(raw, text),
        params=_params(raw["params"], found) if "params" in raw else {},
        select=_select(raw["select"], found) if "select" in raw else None,
        when=_when(raw["when"], on, found) if "when" in raw else None,
        policy=_policy(raw["policy"], found) if "policy" in raw else Policy(),
        enabled=enabled is not False,
    )
    return reflex, found.found


def version_of(definition: Mapping[str, Json]) -> str:
    """64 hex digits over everything but `enabled`, whatever the order of its words. Raises: BadArguments for no JSON."""
    return digest(canonical({word: value for word, value in definition.items() if word != "enabled"})).hex()


def written(reflex: Reflex) -> dict[str, Json]:
    """The definition that gives this reflex again."""
    return {**reflex.definition, "enabled": reflex.enabled}


def anchored(definition: Json, at: Instant, path: str = "") -> Json:
    """A draft as it is saved: `{"clock": {"in": "2 minutes"}}` becomes the instant that is then, on a UTC clock or
    that of its `tz`. Anything else is given back as it came. Raises: LoadRefused for a duration that is none."""
    on = definition.get("on") if isinstance(definition, Mapping) else None
    clock = on.get("clock") if isinstance(on, Mapping) else None
    if not isinstance(on, Mapping) or not isinstance(clock, Mapping) or "in" not in clock:
        return definition
    id = definition.get("id")
    found = Findings(path, id if isinstance(id, str) else "")
    for word in clock:
        if word not in ("in", "tz"):
            found.add(("on", "clock", word), 'does not go with "in"')
    later = _instant(clock, at, found)
    found.end()
    return {**definition, "on": {**on, "clock": later}}


def _instant(clock: Mapping[str, Json], at: Instant, found: Findings) -> dict[str, str] | None:
    try:
        second = -(-(at + duration_ms(clock["in"], what="in")) // 1000)
        in_zone = zone(clock.get("tz", "UTC"), what="tz")
    except BadArguments as bad:
        found.taken(("on", "clock"), bad.faults)
        return None
    if second * 1000 > LAST:
        found.add(("on", "clock", "in"), "ends after the year 9999")
        return None
    wall = second + in_zone.segment(second)[2]
    if wall > MAX_WALL or in_zone.first(wall)[0] != second:  # the second pass of an hour has no name of its own
        return {"at": wall_text(second), "tz": "UTC"}
    return {"at": wall_text(wall), "tz": in_zone.name}


# --- the whole -----------------------------------------------------------------------------------------


def _read(definition: Json, found: Findings) -> tuple[dict[str, Any], bytes] | None:
    """A copy of its own of what came, and its canonical text; None with a finding for what is no JSON or too big."""
    if not isinstance(definition, Mapping):
        what = type(definition).__name__
        told = {"list": "a list", "str": "text", "NoneType": "null", "bool": "true or false"}.get(what, "a number")
        how = 'write {"id": ..., "intent": ..., "on": ..., "effect": ...}'
        found.add((), f"a reflex is an object, and this is {told}; {how}")
        return None
    try:
        text = canonical(dict(definition))
        if len(text) <= MAX_DEFINITION_BYTES:
            return codec.parse(text), text
        problem = f"has {len(text)} bytes; at most {MAX_DEFINITION_BYTES} are taken. Keep data in rows, and select them"
        found.add((), problem)
    except BadArguments as bad:
        found.taken((), bad.faults)
    return None


def _version(raw: Mapping[str, Any], text: bytes) -> str:
    return digest(text).hex() if "enabled" not in raw else version_of(raw)


def _id(value: object, path: tuple[str, ...], found: Findings) -> str:
    if not isinstance(value, str):
        found.add(path, is_null(value) or "is not text")
        return ""
    try:
        return check_name(value, "reflex", dots=True)
    except LoadRefused as refused:
        found.add(path, f"{refused.findings[0].problem}; it is {short(value)!r}")
        return ""


def _intent(value: object, found: Findings) -> str:
    """One sentence that says something: a line, and no second sentence behind it."""
    problem = None
    if not isinstance(value, str):
        problem = is_null(value) or "is not text"
    elif not any(letter.isalpha() for letter in value):
        problem = "says nothing; say in one sentence what it does"
    elif len(value) > MAX_INTENT_CHARS:
        problem = f"has {len(value)} characters; one sentence has at most {MAX_INTENT_CHARS}"
    elif any(not (letter.isprintable()) for letter in value):
        problem = "is not one line of plain text"
    elif any(len(end[1]) > 3 and end[1].lower() not in SHORT for end in SENTENCES.finditer(value)):
        problem = "holds more than one sentence; say what it does in one"
    if problem:
        found.add(("intent",), problem)
        return ""
    return cast("str", value)


def _principal(value: object, found: Findings) -> str | None:
    """Nobody is null, or not said."""
    how = "name who it runs as, or leave it out for nobody"
    return None if value is None else _text(value, ("as",), found, how, MAX_ID_BYTES)


def _text(value: object, path: tuple[str, ...], found: Findings, how: str, limit: int = MAX_KEY_BYTES) -> str:
    """Text that any store can hold."""
    try:
        text = check_text(value, path[-1], limit=limit)
    except BadArguments as bad:
        found.add(path, f"{bad.faults[0].problem}; {how}")
        return ""
    return text


def _params(value: object, found: Findings) -> Json:
    return found.mapping(("params",), value, '{"graceDays": 5}') or {}


# --- what sets it off ----------------------------------------------------------------------------------


def _trigger(value: object, found: Findings) -> Trigger | None:
    raw = found.mapping(("on",), value, '{"clock": {...}}, {"fact": {...}} or {"manual": {}}')
    if raw is None:
        return None
    for word in raw:
        if word not in ("clock", "fact", "manual"):
            home = "clock" if word in CLOCK else "fact" if word in (*FACTS, "op") else None
            known = "a trigger is clock, fact or manual"
            found.add(("on", word), f"stands within {home!r}, not beside it" if home else known)
    kinds = [word for word in raw if word in ("clock", "fact", "manual")]
    if len(kinds) != 1:
        told = "says no trigger; give one of" if not kinds else "has more than one trigger; a reflex has one of"
        found.add(("on",), f"{told} clock, fact, manual")
        return None
    if kinds[0] == "clock":
        return _clock(raw["clock"], found)
    if kinds[0] == "fact":
        return _fact(raw["fact"], found)
    if raw["manual"] != {}:
        found.add(("on", "manual"), "takes nothing; write {}")
    return ByHand()


def _clock(value: object, found: Findings) -> OnClock | None:
    if isinstance(value, dict) and "in" in value:
        found.add(("on", "clock", "in"), "is a draft's timer; save the draft, which puts the instant in its place")
        return None
    try:
        rule = clock_rule(value, where="on.clock")
    except BadArguments as bad:
        found.taken((), bad.faults)
        return None
    return OnClock(cast("Mapping[str, Json]", value), rule)


def _fact(value: object, found: Findings) -> Trigger | None:
    at = ("on", "fact")
    raw = found.mapping(
        at, value, '{"entity": "orders", "op": "insert"}, {"signal": "stripe"} or {"run": "another.reflex"}'
    )
    if raw is None:
        return None
    found.keys(at, raw, (*FACTS, "op"), "a fact")
    kinds = [word for word in raw if word in FACTS]
    if len(kinds) != 1:
        told = "says nothing to hear of; give one of" if not kinds else "hears of more than one thing; give one of"
        found.add(at, f"{told} entity, signal, run")
        return None
    kind = kinds[0]
    op: str | None = None
    if "op" in raw and kind == "entity":
        op = found.choice((*at, "op"), raw["op"], OPS)
    elif "op" in raw:
        found.add((*at, "op"), f"does not go with {kind!r}; only a write has one")
    if kind == "run":
        return OnRun(_id(raw["run"], (*at, "run"), found))
    subject = _text(raw[kind], (*at, kind), found, f"give the name of the {kind}")
    return OnSignal(subject) if kind == "signal" else OnWrite(subject, cast("Op | None", op))


# --- what it does --------------------------------------------------------------------------------------


def _select(value: object, found: Findings) -> Selection | None:
    at = ("select",)
    raw = found.mapping(at, value, '{"query": {"name": "orders.due"}, "mode": "each", "unitKey": "order_id"}')
    if raw is None:
        return None
    found.keys(at, raw, ("query", "mode", "unitKey"), "a selection")
    if raw.get("query") is None:
        found.add((*at, "query"), "is missing; say which rows")
    if "mode" not in raw:
        found.add((*at, "mode"), 'is missing; "each" makes one task for each row, "batch" one task of all')
        return None
    mode = cast('Literal["each", "batch"] | None', found.choice((*at, "mode"), raw["mode"], ("each", "batch")))
    key: str | None = None
    if mode == "each" and "unitKey" not in raw:
        found.add((*at, "unitKey"), "is missing; name the field that tells the rows apart")
    elif mode == "batch" and "unitKey" in raw:
        found.add((*at, "unitKey"), 'goes with "each" only; a batch is one task')
    elif "unitKey" in raw:
        key = _text(raw["unitKey"], (*at, "unitKey"), found, "name the field that tells the rows apart")
    return None if mode is None else Selection(raw.get("query"), mode, key)


def _when(value: object, on: Trigger | None, found: Findings) -> Json:
    if value is None:
        found.add(("when",), "is null, which lets nothing pass; leave it out")
    if isinstance(on, OnClock | ByHand):
        found.add(("when",), "goes with a fact only; here let `select` ask for the rows that are meant")
    return value


def _effect(value: object, found: Findings) -> tuple[str, Json] | None:
    at = ("effect",)
    raw = found.mapping(at, value, '{"name": "payments.charge", "input": {}}')
    if raw is None:
        return None
    found.keys(at, raw, ("name", "input"), "an effect")
    if "name" not in raw:
        found.add((*at, "name"), "is missing; name the one thing it does")
        return None
    name = raw["name"]
    if not isinstance(name, str):
        found.add((*at, "name"), is_null(name) or "is not text")
        return None
    if not EFFECT.fullmatch(name):
        try:
            check_name(name, "effect", dots=True)
        except LoadRefused as refused:
            found.add((*at, "name"), f"{refused.findings[0].problem}; it is {short(name)!r}")
    return name, raw.get("input", {})


# --- how it does it ------------------------------------------------------------------------------------


def _policy(value: object, found: Findings) -> Policy:
    at = ("policy",)
    raw = found.mapping(at, value, '{"retry": {"max": 3}, "timeoutMs": 30000}')
    if raw is None:
        return Policy()
    found.keys(at, raw, ("retry", "timeoutMs", "overlap", "catchUp", "order", "lateMs"), "a policy")
    told: dict[str, Any] = {}
    choices = {"overlap": ("skip", "allow"), "catchUp": ("run", "skip", "latest"), "order": ("any", "serial")}
    for word, allowed in choices.items():
        if word in raw:
            told["catch_up" if word == "catchUp" else word] = found.choice((*at, word), raw[word], allowed)
    if "timeoutMs" in raw:
        told["timeout_ms"] = found.whole((*at, "timeoutMs"), raw["timeoutMs"], 1, DAY, "milliseconds")
    if "lateMs" in raw:
        told["late_ms"] = found.whole((*at, "lateMs"), raw["lateMs"], 0, MAX_DURATION_MS, "milliseconds")
    if "retry" in raw:
        told |= _retry(raw["retry"], found)
    return Policy(**{word: item for word, item in told.items() if item is not None})


def _retry(value: object, found: Findings) -> dict[str, Any]:
    at = ("policy", "retry")
    raw = found.mapping(at, value, '{"max": 3, "backoff": "exponential", "baseMs": 60000}')
    if raw is None:
        return {}
    found.keys(at, raw, ("max", "backoff", "baseMs"), "a retry")
    told: dict[str, Any] = {}
    if "max" in raw:
        told["retry_max"] = found.whole((*at, "max"), raw["max"], 0, MAX_RETRIES, "retries")
    if "backoff" in raw:
        told["backoff"] = found.choice((*at, "backoff"), raw["backoff"], ("fixed", "exponential"))
    if "baseMs" in raw:
        told["base_ms"] = found.whole((*at, "baseMs"), raw["baseMs"], 1, WEEK, "milliseconds")
    return told
