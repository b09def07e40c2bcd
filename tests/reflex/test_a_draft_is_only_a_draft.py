"""What an agent is given to write a draft with: a schema that takes what the grammar takes, and cannot arm anything."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from onefold.reflex.grammar import anchored, parse
from onefold.reflex.schema import draft_schema
from onefold.reflex.words import ByHand
from onefold.terms.errors import BadArguments, LoadRefused
from onefold.terms.instant import Instant
from tests.reflex.definitions import definitions
from tests.reflex.ground import STORES, Act, ground, reflex
from tests.reflex.test_a_preview_is_the_engine import everything

MONTHLY = {"clock": {"every": "month", "on": 31, "at": "02:30", "tz": "Europe/Vienna"}}
EFFECT = {"name": "payments.charge", "input": {"who": {"$": "row.id"}}}
WHOLE: dict[str, Any] = {
    "id": "billing.charge-due",
    "intent": "Collect what every member owes for the month.",
    "as": "studio_42",
    "params": {"graceDays": 5},
    "on": MONTHLY,
    "select": {"query": {"name": "subscriptions.due", "with": {}}, "mode": "each", "unitKey": "id"},
    "effect": EFFECT,
    "policy": {"retry": {"max": 4, "backoff": "fixed", "baseMs": 60_000}, "timeoutMs": 5, "overlap": "allow"},
}
SMALL: dict[str, Any] = {"id": "a", "intent": "It says so.", "on": {"manual": {}}, "effect": EFFECT}
TAKEN: list[dict[str, Any]] = [
    WHOLE,
    SMALL,
    {**SMALL, "on": {"fact": {"entity": "orders", "op": "insert"}}, "when": {"$": "fact.row.paid"}},
    {**SMALL, "on": {"fact": {"signal": "stripe"}}},
    {**SMALL, "on": {"fact": {"run": "billing.charge-due"}}},
    {**SMALL, "on": {"clock": {"every": "week", "on": "fri", "at": "09:00", "tz": "UTC"}}},
    {**SMALL, "on": {"clock": {"every": "year", "on": "02-29", "at": "09:00", "tz": "UTC"}}},
    {**SMALL, "on": {"clock": {"at": "2026-09-14T09:00", "tz": "UTC"}}},
    {**SMALL, "on": {"clock": {"cron": "0 9 * * 1-5", "tz": "UTC"}}},
]
REFUSED: list[dict[str, Any]] = [
    {**SMALL, "enabled": True},
    {**SMALL, "intent": ""},
    {**SMALL, "id": "Billing"},
    {**SMALL, "on": {}},
    {**SMALL, "on": {"clock": {"every": "month", "on": 32, "at": "09:00", "tz": "UTC"}}},
    {**SMALL, "on": {"clock": {"every": "day", "on": 1, "at": "09:00", "tz": "UTC"}}},
    {**SMALL, "on": {"clock": {"every": "day", "at": "24:00", "tz": "UTC"}}},
    {**SMALL, "on": {"fact": {"entity": "orders", "op": "upsert"}}},
    {**SMALL, "on": {**MONTHLY, "manual": {}}},
    {**SMALL, "on": MONTHLY, "when": {"$": "true"}},
    {**SMALL, "select": {"query": {"name": "subscriptions.due"}, "mode": "each"}},
    {**SMALL, "select": {"query": {"name": "subscriptions.due"}, "mode": "batch", "unitKey": "id"}},
    {**SMALL, "policy": {"retry": {"max": -1}}},
    {**SMALL, "polcy": {}},
    {word: value for word, value in SMALL.items() if word != "intent"},
]
SCHEMA: dict[str, Any] = draft_schema(
    [Act("payments.charge", writes=["charge_attempts"]), Act("mail.send", writes=None)],
    ["subscriptions.due"],
    ["billing.charge-due"],
)
JUDGE = Draft202012Validator(SCHEMA)
OPEN = Draft202012Validator(draft_schema())


def test_it_is_a_schema() -> None:
    meta = Draft202012Validator(Draft202012Validator.META_SCHEMA)
    assert meta.is_valid(SCHEMA)
    assert meta.is_valid(draft_schema())


@pytest.mark.parametrize("draft", TAKEN)
def test_it_takes_what_can_be_loaded(draft: dict[str, Any]) -> None:
    assert list(JUDGE.iter_errors(draft)) == []


@pytest.mark.parametrize("draft", TAKEN)
def test_the_grammar_takes_it_too(draft: dict[str, Any]) -> None:
    assert parse(draft).definition == draft


@pytest.mark.parametrize("draft", [draft for draft in REFUSED if "enabled" not in draft])
def test_the_grammar_refuses_it_too(draft: dict[str, Any]) -> None:
    with pytest.raises(LoadRefused):
        parse(draft)


@given(definitions())
def test_whatever_the_grammar_takes_the_schema_takes(definition: dict[str, Any]) -> None:
    """With the names open: which effects there are is the host's to say."""
    draft = {word: value for word, value in definition.items() if word != "enabled"}
    parse(draft)
    assert list(OPEN.iter_errors(draft)) == []


def test_a_draft_may_be_timed_from_when_it_is_saved() -> None:
    draft = {**SMALL, "on": {"clock": {"in": "2 minutes"}}}
    assert JUDGE.is_valid(draft)
    assert JUDGE.is_valid(anchored(draft, Instant(0))), "and so is what it is saved as"


@pytest.mark.parametrize("draft", REFUSED)
def test_it_refuses_what_could_not_be_loaded_and_what_would_arm(draft: dict[str, Any]) -> None:
    assert not JUDGE.is_valid(draft)


def test_only_what_is_registered_can_be_named() -> None:
    assert not JUDGE.is_valid({**SMALL, "effect": {"name": "payments.refund", "input": {}}})
    unknown = {"query": {"name": "everything"}, "mode": "batch"}
    assert not JUDGE.is_valid({**SMALL, "select": unknown})


def test_it_says_what_an_effect_writes() -> None:
    told = SCHEMA["properties"]["effect"]["properties"]["name"]["description"]
    assert "payments.charge writes charge_attempts" in told
    assert "mail.send (nobody said what it writes)" in told


async def test_an_engine_gives_the_schema_of_what_it_has_and_of_nobody_elses() -> None:
    async with ground("memory") as at:
        engine = await at.engine()
        await at.load(engine, [reflex("mine", ByHand(), principal="studio_42"), reflex("theirs", ByHand())])
        schema = engine.schema("studio_42")
    effect = schema["properties"]["effect"]["properties"]["name"]
    heard = schema["properties"]["on"]["oneOf"][1]["properties"]["fact"]["oneOf"][2]["properties"]["run"]
    assert effect["enum"] == ["act"]
    assert heard["description"].endswith("Loaded now: mine.")


MINE: dict[str, Any] = {
    "id": "desk.write",
    "intent": "Write to whoever is there.",
    "as": "studio_42",
    "on": {"clock": {"in": "2 minutes"}},
    "select": {"query": {"from": "people"}, "mode": "each", "unitKey": "id"},
    "effect": {"name": "act", "input": {"to": {"$": "row.id"}}},
}


@pytest.mark.parametrize("store", STORES)
async def test_a_draft_is_checked_and_tried_without_being_loaded(store: str) -> None:
    async with ground(store) as at:
        at.rows.tables["people"] = [{"id": "ada"}, {"id": "ben"}]
        engine = await at.engine()
        await at.load(engine, [reflex("other", ByHand())])
        before = await everything(at)
        draft = engine.draft(MINE, at.now)
        assert draft.findings == ()
        assert draft.definition["on"] == {"clock": {"at": "2026-03-01T00:02", "tz": "UTC"}}
        for definition in (MINE, draft.definition):
            seen = await engine.preview(definition, now=at.now, principal="studio_42")
            assert (seen.cause, [task.unit for task in seen.tasks]) == ("occurrence:2026-03-01T00:02", ["ada", "ben"])
        assert at.rows.asked[-1][1] == "studio_42", "its selection saw what its own principal sees"
        await at.pass_until(engine, at.now + timedelta(days=1))
        assert await everything(at) == before, "and nothing came of it"
        assert at.act.inputs == []


async def test_a_draft_is_never_tried_as_somebody_else() -> None:
    async with ground("memory") as at:
        at.rows.tables["people"] = [{"id": "ada"}]
        engine = await at.engine()
        for whose in (None, "studio_7"):
            with pytest.raises(BadArguments, match="another principal"):
                await engine.preview(MINE, now=at.now, principal=whose)
        assert at.rows.asked == []


async def test_a_draft_that_could_not_be_loaded_is_not_tried() -> None:
    async with ground("memory") as at:
        engine = await at.engine()
        with pytest.raises(LoadRefused, match="there is no effect 'atc'; did you mean 'act'"):
            await engine.preview({**SMALL, "effect": {"name": "atc"}}, now=at.now)


async def test_what_a_person_arms_is_what_was_tried() -> None:
    """The last step is a load, and what then happens is what the preview of the draft had shown."""
    async with ground("memory") as at:
        at.rows.tables["people"] = [{"id": "ada"}, {"id": "ben"}]
        engine = await at.engine()
        saved = engine.draft(MINE, at.now).definition
        seen = await engine.preview(saved, now=at.now, principal="studio_42")
        await engine.load([{**saved, "enabled": True}], at.now)
        await at.pass_until(engine, at.now + timedelta(minutes=3))
        assert at.act.inputs == [task.input for task in seen.tasks]
