"""What a reflex parks is listed, told once, tried again or given up."""

from __future__ import annotations

from pathlib import Path

import pytest

from onefold.reflex import Signal, Task
from onefold.terms.errors import LoadRefused, NotFound
from onefold.testing.stage import Stage, staged
from onefold.testing.store_suite.ground import turns
from tests.guarantees.shop import make
from tests.host.automated import Effect, automated, emitting, reflex

TELL = {"alerts": ["boss"], "people": {"boss": {"notify": []}}}


def ring() -> Effect:
    """An effect whose emit wakes its own reflex: a chain without an end."""
    return Effect("ring", ["thanks"], does=emitting)


RING = reflex(
    "ring",
    on={"fact": {"entity": "thanks"}},
    when={"$": "true"},
    effect={"name": "ring", "input": {}},
)
START = reflex("start", on={"fact": {"signal": "go"}}, effect={"name": "ring", "input": {}})


async def started(stage: Stage) -> None:
    await stage.host.ingest(Signal("go", {}), caller=stage.caller("anna"))
    await stage.settle()


def chained(effect: Effect) -> object:
    return automated({**RING, "as": "anna"}, {**START, "as": "anna"}, effects=[effect])


async def test_a_chain_without_an_end_is_parked_told_of_once_and_let_pass_by_a_person(tmp_path: Path) -> None:
    effect = ring()
    async with staged(chained(effect), settings=TELL, store=tmp_path) as stage:
        await started(stage)
        acted = len(effect.seen)
        (item,) = await stage.host.parked_list(caller=stage.caller())
        assert (item.kind, item.program) == ("fact", "thanks")
        assert "links" in item.cause
        assert (await stage.host.ready())["parked"] == 1
        told = [text for text in stage.said if item.id in text]
        assert len(told) == 1
        await stage.restart()
        await stage.settle()
        assert len([text for text in stage.said if item.id in text]) == 1
        shown = await stage.host.parked_show(item.id, caller=stage.caller())
        assert (shown.principal, shown.retry) == ("anna", "lets it pass, however long its chain")
        await stage.host.parked_retry(item.id, caller=stage.caller())
        await stage.settle()
        assert len(effect.seen) > acted
        (again,) = await stage.host.parked_list(caller=stage.caller())
        assert again.id != item.id


async def test_a_parked_fact_that_is_dropped_wakes_nobody_and_keeps_the_reason(tmp_path: Path) -> None:
    effect = ring()
    async with staged(chained(effect)) as stage:
        await started(stage)
        acted = len(effect.seen)
        (item,) = await stage.host.parked_list(caller=stage.caller())
        with pytest.raises(NotFound):
            await stage.host.parked_drop("fact_999", reason="no", caller=stage.caller())
        await stage.host.parked_drop(item.id, reason="a loop of ours", caller=stage.caller())
        await stage.settle()
        assert len(effect.seen) == acted
        assert await stage.host.parked_list(caller=stage.caller()) == []
        (fact, *_) = (await stage.host.facts_list(kind="write", caller=stage.caller())).items
        assert (fact.state, str(fact.note).endswith("dropped: a loop of ours")) == ("delivered", True)
        for act in (stage.host.parked_show, stage.host.parked_retry):
            with pytest.raises(NotFound):
                await act(item.id, caller=stage.caller())


async def test_a_task_that_kills_its_process_is_parked_and_can_be_opened_again_or_given_up(tmp_path: Path) -> None:
    effect = Effect()
    deaths = 0

    def kills(task: Task, input: object) -> object:
        nonlocal deaths
        deaths += 1
        stage.kill_at("before-commit")
        return None

    effect.does = kills
    one = automated(reflex(on={"fact": {"signal": "go"}}, effect={"name": "thank", "input": {}}), effects=[effect])
    async with staged(one, settings=TELL, store=tmp_path) as stage:
        await stage.host.ingest(Signal("go", {}), caller=stage.caller())
        for _ in range(10):
            await turns(50)
            if not stage.killed:
                break
            await stage.let_die()
            stage.live_on()
            stage.clock.step_to(stage.clock.now() + 120_000)
            await stage.open()
        await stage.settle()
        (item,) = await stage.host.parked_list(caller=stage.caller())
        assert (item.kind, item.program) == ("task", "shop.thank")
        assert 2 <= deaths <= 6
        assert len([text for text in stage.said if item.id in text]) == 1
        effect.does = lambda task, input: "fine"
        await stage.host.parked_retry(item.id, caller=stage.caller())
        await stage.settle()
        assert await stage.host.parked_list(caller=stage.caller()) == []
        (run,) = (await stage.host.reflex_runs(caller=stage.caller())).items
        assert (run.state, run.done, run.failed) == ("settled", 1, 0)


async def test_a_module_may_not_take_the_name_of_what_tells() -> None:
    taken = make()
    taken.name = "reflex_alerts"
    with pytest.raises(LoadRefused, match="the app itself uses"):
        async with staged(taken):
            pass
