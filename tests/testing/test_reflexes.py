"""Automations under test: on a clock that a test moves, with stubs, killed wherever there is a place to die."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from onefold import testing
from onefold.errors import OutcomeUnknown
from onefold.reflex import Reflexes, Signal, Task, Write
from onefold.testing import Durable, every_crash
from onefold.testing.stuck import Unsettled
from tests.testing.reflexes import CHARGE, ORDER, REPORT, Charged, Order, charge, receipt, report, shop


def test_effects_are_stubbed_with_their_own_types_and_their_calls_are_seen(durable: Durable) -> None:
    app = durable(shop)
    app.stub(charge, returns=Charged(reference="re_1"))
    kept = app.ingest(ORDER)
    app.settle()
    (called,) = app.calls(charge)
    assert (called.name, called.args, called.principal) == ("pay.charge", ({"order": "7", "cents": 900},), None)
    (run,) = app.reflexes.runs("shop.charge").items
    (task,) = app.reflexes.tasks(run.id).items
    assert task.output == {"reference": "re_1"}
    assert app.calls(receipt) == []  # the stub emitted nothing
    assert [link.id for link in app.reflexes.explain(task.id)][-1] == kept.id


def test_a_stub_may_be_a_function_of_task_and_input(durable: Durable) -> None:
    app = durable(shop)

    def pays(task: Task, order: Order) -> Charged:
        if task.attempt == 1:
            raise ConnectionError("once")
        return Charged(reference=f"{order.order}/{task.attempt}")

    app.stub(charge, calls=pays)
    app.ingest(ORDER)
    app.settle()
    assert len(app.calls(charge)) == 1
    app.clock.advance("1 minute")
    (run,) = app.reflexes.runs("shop.charge").items
    assert (run.state, app.reflexes.tasks(run.id).items[0].output) == ("settled", {"reference": "7/2"})
    assert len({call.key for call in app.calls(charge)}) == 1


def test_the_clock_fires_each_occurrence_at_its_instant(durable: Durable) -> None:
    app = durable(shop)
    app.clock.advance("31 days")
    days = [call.args[0]["day"] for call in app.calls(report)]
    assert days == [f"2026-01-{day:02}" for day in range(1, 32)]
    assert {(call.now.hour, call.now.minute) for call in app.calls(report)} == {(17, 0)}


def test_a_year_is_run_in_one_go_with_both_clock_changes(durable: Durable) -> None:
    app = durable(shop)
    app.clock.advance_to(datetime(2026, 12, 31, 23, tzinfo=UTC))
    assert len({call.args[0]["day"] for call in app.calls(report)}) == 365
    assert {call.now.hour for call in app.calls(report)} == {16, 17}


def test_killed_anywhere_each_order_is_charged_under_one_key_and_receipted_once_by_each_charge() -> None:
    passes = 0
    for app in every_crash(shop):
        app.ingest(ORDER)
        app.settle()
        app.clock.advance("10 minutes")
        assert len({call.key for call in app.calls(charge)}) == 1
        assert len({call.key for call in app.calls(receipt)}) == 1
        runs = app.reflexes.runs().items
        assert [(run.reflex, run.state, run.done) for run in runs] == [
            ("shop.receipt", "settled", 1),
            ("shop.charge", "settled", 1),
        ]
        passes += 1
    assert passes > 8


def test_killed_anywhere_on_files_too(tmp_path: Path) -> None:
    for app in every_crash(shop, store=tmp_path):
        app.ingest(ORDER)
        app.settle()
        app.clock.advance("10 minutes")
        assert [run.state for run in app.reflexes.runs().items] == ["settled", "settled"]


def test_a_fire_that_a_crash_cut_is_unknown_and_a_fact_with_a_key_is_sent_again(durable: Durable) -> None:
    app = durable(shop)
    app.crash_at("before-reply")
    with pytest.raises(OutcomeUnknown):
        app.reflexes.fire("shop.report", input={})
    app.crash_at("before-reply")
    assert app.ingest(ORDER).duplicate is True
    app.settle()


def test_a_restart_goes_on_where_it_was(durable: Durable, tmp_path: Path) -> None:
    app = durable(shop, store=tmp_path)
    app.stub(charge, raises=ConnectionError("down"))
    app.ingest(ORDER)
    app.settle()
    app.restart()
    app.stub(charge, returns=Charged(reference="re_2"))
    app.clock.advance("1 minute")
    (run,) = app.reflexes.runs("shop.charge").items
    assert (run.done, run.failed) == (1, 0)


def test_a_principal_sees_and_fires_its_own(durable: Durable) -> None:
    app = durable(Reflexes([{**CHARGE, "as": "anna"}], effects=[charge]))
    anna, bert = app.acting_as("anna"), app.acting_as("bert")
    bert.ingest(ORDER)
    app.settle()
    assert app.calls(charge) == []
    assert anna.ingest(ORDER).duplicate is False  # keys are a principal's own
    app.settle()
    assert [call.principal for call in app.calls(charge)] == ["anna"]


def test_the_verbs_of_a_script(durable: Durable) -> None:
    app = durable(shop)
    seen = app.reflexes.preview("shop.charge", fact=ORDER)
    assert seen.tasks[0].input == {"order": "7", "cents": 900}
    assert [row.id for row in app.reflexes.list()] == ["shop.charge", "shop.receipt", "shop.report"]
    assert "shop.receipt" in app.reflexes.graph().text
    assert app.reflexes.load().armed == ("shop.charge", "shop.receipt", "shop.report")
    assert app.reflexes.draft({"id": "x"}).findings
    assert app.reflexes.overdue() == []
    since = datetime(2025, 12, 1, tzinfo=UTC)
    assert app.reflexes.backfill("shop.report", since=since, until=since + timedelta(days=2)) == 2
    fired = app.reflexes.fire("shop.report", input={}, by="me")
    app.settle()
    assert app.reflexes.explain(fired.id)[0].detail["by"] == "me"
    assert [fact.kind for fact in app.reflexes.facts(kind="manual").items] == ["manual"]
    app.clock.advance("1 hour")
    assert app.reflexes.sweep(runs="1 minute", dry_run=True).reflex_runs == 3
    assert app.sweep(reflex_runs="1 minute", intake="1 minute").reflex_runs == 3
    assert app.reflexes.runs().items == []


async def test_the_same_verbs_awaited() -> None:
    async with testing.open(shop) as app:
        await app.ingest(ORDER)
        await app.settle()
        (run,) = (await app.reflexes.runs("shop.receipt")).items
        (task,) = (await app.reflexes.tasks(run.id)).items
        assert [link.kind for link in await app.reflexes.explain(task.id)][-1] == "fact"
        await app.clock.advance("1 day")
        assert len(app.calls(report)) == 1


def test_what_an_effect_that_is_not_here_should_do_fails_the_test(tmp_path: Path) -> None:
    with testing.open(Reflexes([CHARGE], effects=[charge]), store=tmp_path) as app:
        app.stub(charge, raises=ConnectionError("down"))
        app.ingest(ORDER)
        app.settle()
    with (
        pytest.raises(Unsettled, match="no effect of this app takes it"),
        testing.open(Reflexes([REPORT], effects=[report]), store=tmp_path) as app,
    ):
        app.clock.advance("1 hour")


def test_what_leaves_the_app_is_only_told(durable: Durable) -> None:
    hook: dict[str, Any] = {
        "id": "shop.hook",
        "intent": "Tell a neighbour.",
        "on": {"fact": {"signal": "sale"}},
        "effect": {"name": "http", "input": {"url": "https://example.com/hook", "body": {"n": 1}}},
    }
    app = durable(Reflexes([hook], egress=["https://example.com"]))
    app.ingest(Signal("sale", {}))
    app.settle()
    (run,) = app.reflexes.runs().items
    assert (run.state, run.done) == ("settled", 1)
    assert any("example.com" in told for told in app.notices)


def test_a_fact_of_tomorrow_waits_for_tomorrow(durable: Durable) -> None:
    app = durable(shop)
    app.ingest(Write("orders", "insert", {"order": "8", "cents": 1}, not_before=app.clock.now() + timedelta(days=1)))
    app.settle()
    assert app.calls(charge) == []
    app.clock.advance("1 day")
    assert len(app.calls(charge)) == 1
