"""A definition is taken whole or refused whole, and a refusal says what, where, and what was perhaps meant."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onefold.almanac import Calendar, Cron, Once
from onefold.reflex.findings import ReflexFinding
from onefold.reflex.grammar import MAX_DEFINITION_BYTES, anchored, parse, version_of, written
from onefold.reflex.words import ByHand, OnClock, OnRun, OnSignal, OnWrite, Policy, Reflex
from onefold.terms.codec import canonical
from onefold.terms.codec import parse as read
from onefold.terms.errors import Finding, LoadRefused
from onefold.terms.instant import Instant, up
from tests.reflex.definitions import definitions, plain, values, whole

EXAMPLES = int(os.environ.get("ONEFOLD_REFLEX_EXAMPLES", "60"))


def refused(definition: Any, path: str = "") -> dict[str, str]:
    """What was found, by its path."""
    with pytest.raises(LoadRefused) as caught:
        parse(definition, path)
    assert all(isinstance(found, ReflexFinding) for found in caught.value.findings)
    return {found.path: found.problem for found in caught.value.findings if isinstance(found, ReflexFinding)}


# --- what is taken ---------------------------------------------------------------------------------------


def test_every_clause_is_read() -> None:
    reflex = parse(whole())
    assert (reflex.id, reflex.principal, reflex.params) == ("billing.charge-due", "studio_42", {"graceDays": 5})
    assert isinstance(reflex.on, OnClock)
    assert isinstance(reflex.on.rule, Calendar)
    assert reflex.select is not None
    assert (reflex.select.mode, reflex.select.unit_key) == ("each", "subscription_id")
    assert reflex.effect == "payments.charge"
    assert reflex.input["amount"] == {"$": "row.amount"}
    assert reflex.policy == Policy(3, "exponential", 30_000, 20_000, "skip", "run", "any", 60_000)
    assert reflex.enabled
    assert "enabled" not in reflex.definition


def test_what_is_not_said_has_the_defaults_of_the_api() -> None:
    reflex = parse(plain())
    assert reflex.policy == Policy(3, "exponential", 60_000, 30_000, "skip", "run", "any", 3_600_000)
    assert (reflex.principal, reflex.params, reflex.select, reflex.when, reflex.input, reflex.enabled) == (
        None,
        {},
        None,
        None,
        {},
        True,
    )


@pytest.mark.parametrize(
    "on, trigger",
    [
        ({"fact": {"entity": "orders"}}, OnWrite("orders")),
        ({"fact": {"entity": "bank.Deposited", "op": "insert"}}, OnWrite("bank.Deposited", "insert")),
        ({"fact": {"signal": "stripe"}}, OnSignal("stripe")),
        ({"fact": {"run": "billing.charge-due"}}, OnRun("billing.charge-due")),
        ({"manual": {}}, ByHand()),
    ],
)
def test_a_trigger_is_a_fact_or_a_hand(on: Any, trigger: Any) -> None:
    assert parse(plain(on=on)).on == trigger


@pytest.mark.parametrize(
    "clause, rule",
    [
        ({"every": "year", "on": "02-29", "at": "09:00", "tz": "UTC"}, Calendar),
        ({"at": "2026-09-14T09:00", "tz": "Europe/Vienna"}, Once),
        ({"cron": "0 9 * * mon-fri", "tz": "Europe/Vienna"}, Cron),
    ],
)
def test_a_clock_is_what_almanac_takes(clause: Any, rule: type) -> None:
    on = parse(plain(on={"clock": clause})).on
    assert isinstance(on, OnClock)
    assert isinstance(on.rule, rule)
    assert on.clause == clause


def test_nobody_is_null_or_not_said_and_never_a_word() -> None:
    assert parse({**plain(), "as": None}).principal is None
    assert parse({**plain(), "as": "None"}).principal == "None"


def test_a_cells_letter_is_an_effect_by_its_shapes_name() -> None:
    assert parse(plain(effect="post.Room")).effect == "post.Room"


def test_a_definition_is_a_copy_that_its_writer_cannot_change() -> None:
    raw = whole()
    reflex = parse(raw)
    raw["params"]["graceDays"] = 99
    assert reflex.params == {"graceDays": 5}
    assert reflex.definition["params"] == {"graceDays": 5}


# --- what is refused -------------------------------------------------------------------------------------

TWO_TRIGGERS = {"manual": {}, "fact": {"signal": "x"}}
REFUSALS: list[tuple[dict[str, Any], str, str]] = [
    (whole(id=None), "id", "is missing"),
    (whole(intent=None), "intent", "is missing; say in one sentence what it does"),
    (whole(on=None), "on", "is missing"),
    (whole(effect=None), "effect", "is missing"),
    (whole(id="graph"), "id", "Onefold's own"),
    (whole(id="Billing.charge"), "id", "lower-case"),
    (whole(id="billing..charge"), "id", "words joined by dots"),
    (whole(id="x" * 300), "id", "at most 32"),
    (whole(id=7), "id", "is not text"),
    (whole(intent="   "), "intent", "says nothing"),
    (whole(intent="Charge.\nMail."), "intent", "one line"),
    (whole(intent="Charge everybody. Then mail them."), "intent", "more than one sentence"),
    (whole(intent="a" * 301), "intent", "has 301 characters"),
    (whole(**{"as": 7}), "as", "must be text; name who"),
    (whole(**{"as": ""}), "as", "must not be empty"),
    (whole(**{"as": "a\0"}), "as", "NUL"),
    (whole(params=[1]), "params", "is not an object"),
    (whole(enabled="yes"), "enabled", "is not true or false"),
    (whole(polcy={}), "polcy", "did you mean 'policy'?"),
    (whole(on="manual"), "on", "is not an object; write"),
    (whole(on={}), "on", "says no trigger"),
    (whole(on=TWO_TRIGGERS), "on", "more than one trigger"),
    (whole(on={"every": "day", "at": "09:00", "tz": "UTC"}), "on.every", "stands within 'clock'"),
    (whole(on={"entity": "orders"}), "on.entity", "stands within 'fact'"),
    (whole(on={"manual": {"by": "me"}}), "on.manual", "takes nothing"),
    (whole(on={"clock": {"every": "month", "at": "09:00", "tz": "Europe/Wien"}}), "on.clock.tz", "Europe/Vienna"),
    (whole(on={"clock": {"every": "month", "at": "24:00", "tz": "UTC"}}), "on.clock.at", "00:00"),
    (whole(on={"clock": {"in": "2 minutes"}}), "on.clock.in", "a draft's timer"),
    (whole(on={"fact": {}}), "on.fact", "nothing to hear of"),
    (whole(on={"fact": {"entity": "a", "signal": "b"}}), "on.fact", "more than one thing"),
    (whole(on={"fact": {"entity": "a", "op": "upsert"}}), "on.fact.op", "'insert', 'update', 'delete'"),
    (whole(on={"fact": {"signal": "a", "op": "insert"}}), "on.fact.op", "only a write has one"),
    (whole(on={"fact": {"entity": ""}}), "on.fact.entity", "must not be empty"),
    (whole(on={"fact": {"run": "Not A Name"}}), "on.fact.run", "lower-case"),
    (whole(on={"fact": {"entty": "a"}}), "on.fact.entty", "did you mean 'entity'?"),
    (whole(when={"$": "true"}), "when", "goes with a fact only"),
    (plain(when={"$": "true"}), "when", "goes with a fact only"),
    ({**plain(on={"fact": {"signal": "x"}}), "when": None}, "when", "lets nothing pass"),
    (whole(select={"query": 1, "mode": "each"}), "select.unitKey", "tells the rows apart"),
    (whole(select={"query": 1, "mode": "batch", "unitKey": "id"}), "select.unitKey", 'with "each" only'),
    (whole(select={"query": 1, "mode": "eahc", "unitKey": "id"}), "select.mode", "did you mean 'each'?"),
    (whole(select={"query": 1}), "select.mode", "is missing"),
    (whole(select={"mode": "batch"}), "select.query", "is missing"),
    (whole(select={"query": 1, "mode": "each", "unit_key": "id"}), "select.unit_key", "did you mean 'unitKey'?"),
    (whole(effect="payments.charge"), "effect", "is not an object; write"),
    (whole(effect={"input": {}}), "effect.name", "is missing"),
    (whole(effect={"name": 4}), "effect.name", "is not text"),
    (whole(effect={"name": "Pay!"}), "effect.name", "lower-case"),
    (whole(effect={"name": "pay", "imput": 1}), "effect.imput", "did you mean 'input'?"),
    (whole(policy=[]), "policy", "is not an object"),
    (whole(policy={"catchup": "run"}), "policy.catchup", "did you mean 'catchUp'?"),
    (whole(policy={"timeout_ms": 1}), "policy.timeout_ms", "did you mean 'timeoutMs'?"),
    (whole(policy={"catchUp": "latst"}), "policy.catchUp", "did you mean 'latest'?"),
    (whole(policy={"overlap": "queue"}), "policy.overlap", "is not one of 'skip', 'allow'"),
    (whole(policy={"order": None}), "policy.order", "is null; leave it out"),
    (whole(policy={"timeoutMs": 0}), "policy.timeoutMs", "from 1 to 86400000"),
    (whole(policy={"timeoutMs": 86_400_001}), "policy.timeoutMs", "milliseconds"),
    (whole(policy={"timeoutMs": 1.0}), "policy.timeoutMs", "whole number"),
    (whole(policy={"lateMs": -1}), "policy.lateMs", "from 0"),
    (whole(policy={"retry": 3}), "policy.retry", "is not an object"),
    (whole(policy={"retry": {"max": True}}), "policy.retry.max", "whole number"),
    (whole(policy={"retry": {"max": 51}}), "policy.retry.max", "from 0 to 50"),
    (whole(policy={"retry": {"baseMs": 0}}), "policy.retry.baseMs", "from 1"),
    (whole(policy={"retry": {"backoff": "linear"}}), "policy.retry.backoff", "'fixed', 'exponential'"),
    (whole(params={"a": float("nan")}), "params.a", "finite"),
    (whole(params={"a": {1: 2}}), "params.a", "not text"),
    (whole(params={"a": {1, 2}}), "params.a", "not JSON"),
    (whole(params={"a": 2**70}), "params.a", "64 bits"),
    (whole(params={"a": "x" * MAX_DEFINITION_BYTES}), "", "at most 65536"),
]  # fmt: skip


@pytest.mark.parametrize("definition, path, problem", REFUSALS, ids=[f"{at}-{told[:24]}" for _, at, told in REFUSALS])
def test_what_is_wrong_is_refused_at_its_path(definition: Any, path: str, problem: str) -> None:
    assert problem in refused(definition)[path]


@pytest.mark.parametrize("definition", [None, [], "x", 5, True, 1.5, b"{}"])
def test_what_is_no_object_is_no_reflex(definition: Any) -> None:
    assert "a reflex is an object" in refused(definition)[""]


def test_everything_wrong_is_told_at_once() -> None:
    wrong = whole(id="X", as_=1, policy={"order": "x", "retry": {"max": -1}}, effect={"name": "a", "x": 1})
    assert set(refused(wrong)) == {"id", "as_", "policy.order", "policy.retry.max", "effect.x"}


def test_a_finding_says_where_it_is_from_the_file_to_the_word() -> None:
    with pytest.raises(LoadRefused) as caught:
        parse(whole(policy={"order": "x"}), "billing.json[2]")
    (found,) = caught.value.findings
    assert str(found).startswith("billing.json[2], reflex billing.charge-due, policy.order: is not one of")


def test_nesting_without_end_is_refused() -> None:
    deep: Any = {}
    for _ in range(5_000):
        deep = {"a": deep}
    assert "nested deeper" in refused(whole(params=deep))[""]


def test_many_faults_are_told_by_their_beginning() -> None:
    found = refused(whole(**{f"word{n}": 1 for n in range(3_000)}))
    assert len(found) == 51
    assert "2950 more" in found[""]


def test_a_key_that_stands_twice_is_refused_by_the_reader_of_the_text() -> None:
    text = canonical(whole()).replace(b'"mode":"each"', b'"mode":"each","mode":"batch"')
    with pytest.raises(Exception, match="stands twice"):
        read(text)


# --- the version -----------------------------------------------------------------------------------------


def test_the_version_does_not_depend_on_the_order_of_words() -> None:
    turned = {word: whole()[word] for word in reversed(whole())}
    assert parse(turned).version == parse(whole()).version == version_of(turned)


def test_the_version_leaves_out_enabled_and_counts_params() -> None:
    version = parse(whole()).version
    assert len(version) == 64
    assert parse(whole(enabled=False)).version == parse(whole(enabled=None)).version == version
    assert parse(whole(params={"graceDays": 7})).version != version
    assert parse(whole(params={"graceDays": 5.0})).version != version


@settings(max_examples=EXAMPLES)
@given(definitions())
def test_reading_what_a_reflex_writes_gives_it_again(definition: dict[str, Any]) -> None:
    reflex = parse(definition)
    assert parse(written(reflex)) == reflex
    assert parse(read(canonical(written(reflex)))) == reflex
    assert reflex.version == version_of(definition)


# --- hostile input ---------------------------------------------------------------------------------------


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(found for key, item in items for found in places(item, (*path, key)))]


def changed(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = changed(value[path[0]], path[1:], new)
    return copy


def taken_or_refused(definition: Any) -> Reflex | Sequence[Finding]:
    try:
        return parse(definition)
    except LoadRefused as caught:
        return caught.findings if len(str(caught)) < 20_000 else ()


WRONG = [
    None,
    True,
    0,
    -1,
    2**80,
    1.5,
    float("inf"),
    "",
    "x",
    "\0",
    "\ud800",
    "e" * 100_000,
    [],
    [[]],
    {},
    {"": {}},
    object(),
    b"x",
    {1: 1},
]


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: repr(wrong)[:12].replace("\0", "NUL"))
@pytest.mark.parametrize(
    "base", [whole(), plain(on={"fact": {"entity": "a", "op": "insert"}}, when=1)], ids=["clock", "fact"]
)
def test_a_wrong_type_at_any_place_is_taken_or_refused_and_never_breaks(base: Any, wrong: Any) -> None:
    for path in places(base):
        taken = taken_or_refused(changed(base, path, wrong))
        assert isinstance(taken, Reflex) or 0 < len(taken) <= 51


@settings(max_examples=EXAMPLES)
@given(definitions(), st.data())
def test_any_value_at_any_place_is_taken_or_refused(definition: dict[str, Any], data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(places(definition)))
    wrong = changed(definition, path, data.draw(values))
    taken = taken_or_refused(wrong)
    assert parse(written(taken)) == taken if isinstance(taken, Reflex) else taken


# --- drafts ----------------------------------------------------------------------------------------------

NOON = up(datetime(2026, 9, 14, 12, tzinfo=UTC))


def falls(draft: Any, at: Instant) -> Instant:
    """When the anchored draft's one occurrence falls."""
    on = parse(anchored(draft, at)).on
    assert isinstance(on, OnClock)
    coming = on.rule.latest(Instant(2**47))
    assert coming is not None
    return coming.at


def test_a_drafts_timer_becomes_a_one_shot_clock() -> None:
    draft = plain(on={"clock": {"in": "2 minutes"}})
    assert anchored(draft, NOON)["on"] == {"clock": {"at": "2026-09-14T12:02", "tz": "UTC"}}
    assert draft["on"] == {"clock": {"in": "2 minutes"}}


def test_an_anchored_timer_is_never_early() -> None:
    draft = plain(on={"clock": {"in": "90 ms", "tz": "Asia/Kolkata"}})
    assert falls(draft, Instant(NOON + 1)) == NOON + 1_000


def test_a_timer_into_the_second_pass_of_an_hour_is_not_an_hour_early() -> None:
    """02:30 comes twice in Vienna on that night; a local time means the first of them."""
    second_pass = up(datetime(2026, 10, 25, 1, 28, tzinfo=UTC))
    draft = plain(on={"clock": {"in": "2 minutes", "tz": "Europe/Vienna"}})
    assert falls(draft, second_pass) == second_pass + 120_000


@pytest.mark.parametrize("definition", [whole(), plain(), None, [], "x", {"on": 1}, {"on": {"clock": []}}])
def test_what_has_no_timer_is_left_as_it_came(definition: Any) -> None:
    assert anchored(definition, NOON) is definition


@pytest.mark.parametrize(
    "clock, path",
    [
        ({"in": "5"}, "on.clock.in"),
        ({"in": None}, "on.clock.in"),
        ({"in": "5m", "tz": 3}, "on.clock.tz"),
        ({"in": "5m", "at": "09:00"}, "on.clock.at"),
    ],
)
def test_a_timer_that_is_none_is_refused(clock: Any, path: str) -> None:
    with pytest.raises(LoadRefused) as caught:
        anchored(plain(on={"clock": clock}), NOON)
    assert [found.path for found in caught.value.findings if isinstance(found, ReflexFinding)] == [path]


@settings(max_examples=EXAMPLES)
@given(
    st.integers(0, 4_000_000_000_000),
    st.integers(0, 10**9),
    st.sampled_from(["UTC", "Europe/Vienna", "America/Nuuk", "Pacific/Apia"]),
)
def test_every_timer_falls_where_it_was_asked_for(at: int, ms: int, tz: str) -> None:
    due = falls(plain(on={"clock": {"in": f"{ms} ms", "tz": tz}}), Instant(at))
    assert 0 <= due - (at + ms) < 1_000
