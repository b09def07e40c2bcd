"""Reflexes inside an app: loaded, woken, driven, looked at, each under its own principal."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import pytest

from onefold.host.caller import Caller
from onefold.host.config import settle
from onefold.reflex import Signal, Write
from onefold.terms.errors import BadArguments, Forbidden, LoadRefused, NotFound, UnknownName
from onefold.testing.stage import Stage, staged
from tests.host.automated import BY_HAND, CLOCKED, Effect, Sell, automated, emitting, reflex, till


async def sell(stage: Stage, id: str, cents: int = 5, principal: str | None = None) -> None:
    module = stage.host.catalog.module("till")
    await stage.host.deliver(module, Sell(id, "north", cents), caller=stage.caller(principal))


@pytest.mark.parametrize("store", ["memory:", "sqlite"])
async def test_a_published_fact_wakes_the_reflex_that_watches_it(tmp_path: Path, store: str) -> None:
    effect = Effect()
    async with staged(
        till, automated(reflex(), effects=[effect]), store=tmp_path if store == "sqlite" else "memory:"
    ) as stage:
        for n in range(3):
            await sell(stage, f"s{n}", n)
        await stage.settle()
        assert [input for *_, input in effect.seen] == [{"cents": 0}, {"cents": 1}, {"cents": 2}]
        runs = (await stage.host.reflex_runs(caller=stage.caller())).items
        assert [(run.state, run.total, run.done) for run in runs] == [("settled", 1, 1)] * 3


async def test_a_fact_reaches_only_the_reflexes_of_its_principal() -> None:
    own, others, nobodys = Effect("own"), Effect("others"), Effect("nobodys")
    with_as = {"effect": {"name": "own", "input": {}}, "as": "anna"}
    definitions = [
        reflex("shop.anna", **with_as),
        reflex("shop.bert", **with_as | {"as": "bert", "effect": {"name": "others", "input": {}}}),
        reflex("shop.nobody", effect={"name": "nobodys", "input": {}}),
    ]
    async with staged(till, automated(*definitions, effects=[own, others, nobodys])) as stage:
        await sell(stage, "s1", principal="anna")
        await stage.settle()
        assert [(len(one.seen)) for one in (own, others, nobodys)] == [1, 0, 0]
        assert own.seen[0][1] == "anna"
        await sell(stage, "s1")
        await stage.settle()
        assert [(len(one.seen)) for one in (own, others, nobodys)] == [1, 0, 1]


async def test_a_clock_is_driven_by_the_virtual_one() -> None:
    effect = Effect()
    async with staged(automated(reflex(**CLOCKED), effects=[effect])) as stage:
        await stage.settle()
        assert stage.host.next_due == datetime(2026, 1, 1, 8, tzinfo=UTC).timestamp() * 1000
        await stage.advance("33 hours")
        assert [input["day"] for *_, input in effect.seen] == ["2026-01-01", "2026-01-02"]


async def test_a_chain_is_drained_in_one_go_and_explained_to_its_first_cause() -> None:
    first, second = Effect("first", ["thanks"], does=emitting), Effect("second")
    chain = automated(
        reflex("a.first", on={"fact": {"signal": "shop"}}, effect={"name": "first", "input": {"$": "fact.payload"}}),
        reflex("b.second", on={"fact": {"entity": "thanks"}}, effect={"name": "second", "input": {"$": "fact.row"}}),
        effects=[first, second],
    )
    async with staged(chain) as stage:
        kept = await stage.host.ingest(Signal("shop", {"n": 1}, dedupe_key="e1"), caller=stage.caller())
        again = await stage.host.ingest(Signal("shop", {"n": 1}, dedupe_key="e1"), caller=stage.caller())
        assert (again.id, again.duplicate, kept.duplicate) == (kept.id, True, False)
        await stage.settle()
        assert second.seen[0][3] == {"of": {"n": 1}}
        (run,) = (await stage.host.reflex_runs("b.second", caller=stage.caller())).items
        (task,) = (await stage.host.reflex_tasks(run.id, caller=stage.caller())).items
        links = await stage.host.reflex_explain(task.id, caller=stage.caller())
        assert [link.kind for link in links] == ["task", "run", "fact", "task", "run", "fact"]
        assert links[-1].id == kept.id


async def test_an_effect_that_raises_is_tried_again_on_the_clock_and_then_failed_and_retried() -> None:
    effect = Effect()

    def refuses(task: object, input: object) -> object:
        raise ValueError("no")

    effect.does = refuses
    async with staged(till, automated(reflex(), effects=[effect])) as stage:
        await sell(stage, "s1")
        await stage.settle()
        assert len(effect.seen) == 1
        await stage.advance("1 second")
        (run,) = (await stage.host.reflex_runs(caller=stage.caller())).items
        assert (len(effect.seen), run.state, run.failed) == (2, "settled", 1)
        (task,) = (await stage.host.reflex_tasks(run.id, caller=stage.caller())).items
        assert (task.state, str(task.error).partition(" (")[0]) == ("failed", "ValueError: no")
        effect.does = lambda task, input: "yes"
        opened = await stage.host.reflex_retry(task.id, caller=stage.caller())
        assert opened.state in ("ready", "claimed")
        await stage.settle()
        (run,) = (await stage.host.reflex_runs(caller=stage.caller())).items
        assert (run.state, run.done, run.failed) == ("settled", 1, 0)


async def test_what_was_under_way_is_taken_up_after_a_crash(tmp_path: Path) -> None:
    effect = Effect()
    async with staged(till, automated(reflex(), effects=[effect]), store=tmp_path) as stage:
        stage.kill_at("after-commit")
        selling = asyncio.create_task(sell(stage, "s1"))
        await stage.let_die()
        selling.cancel()
        stage.live_on()
        await stage.open()
        await stage.settle()
        assert len(effect.seen) == 1


async def test_firing_needs_operate_and_ones_own_principal_also_of_a_disarmed_reflex() -> None:
    effect = Effect()
    mine = reflex("mine", **BY_HAND, enabled=False, **{"as": "anna"})
    async with staged(automated(mine, effects=[effect])) as stage:
        host = stage.host
        with pytest.raises(Forbidden):
            await host.reflex_fire("mine", input=1, caller=stage.caller("anna", rights=["call", "read"]))
        with pytest.raises(BadArguments, match="acts as 'anna'"):
            await host.reflex_fire("mine", input=1, caller=stage.caller("bert"))
        with pytest.raises(UnknownName):
            await host.reflex_show("mine", caller=stage.caller("bert", rights=["read"]))
        with pytest.raises(UnknownName, match="Did you mean 'mine'"):
            await host.reflex_fire("mime", caller=stage.caller("anna"))
        fired = await host.reflex_fire("mine", input={"n": 1}, by="anna herself", caller=stage.caller("anna"))
        await stage.settle()
        assert effect.seen[0][1:] == ("anna", 1, {"said": {"n": 1}})
        chain = await host.reflex_explain(fired.id, caller=stage.caller("anna"))
        assert chain[0].detail["by"] == "anna herself"


async def test_nobody_sees_anothers_rows_and_an_operator_sees_all() -> None:
    effect = Effect()
    async with staged(till, automated(reflex(**{"as": "anna"}), effects=[effect])) as stage:
        host = stage.host
        await sell(stage, "s1", principal="anna")
        await stage.settle()
        anna = stage.caller("anna", rights=["read"])
        bert = stage.caller("bert", rights=["read"])
        operator = stage.caller("ops", rights=["operate"])
        (run,) = (await host.reflex_runs(caller=anna)).items
        (task,) = (await host.reflex_tasks(run.id, caller=anna)).items
        (fact,) = (await host.facts_list(kind="write", caller=anna)).items
        for caller, sees in ((anna, 1), (bert, 0), (operator, 1)):
            assert len((await host.reflex_runs(caller=caller)).items) == sees
            assert len((await host.facts_list(caller=caller)).items) == 2 * sees  # and that of the settled run
            assert len(await host.reflexes_list(caller=caller)) == sees
            assert ("shop.thank" in (await host.reflex_graph(caller=caller)).text) is bool(sees)
        for id in (run.id, task.id, fact.id):
            with pytest.raises(NotFound):
                await host.reflex_explain(id, caller=bert)
            assert await host.reflex_explain(id, caller=operator)
        with pytest.raises(NotFound):
            await host.reflex_tasks(run.id, caller=bert)
        with pytest.raises(UnknownName):
            await host.reflex_preview("shop.thank", caller=bert)
        for acts in (host.fact_release(fact.id, caller=anna), host.reflex_retry(task.id, caller=anna)):
            with pytest.raises(Forbidden):
                await acts
        with pytest.raises(Forbidden):
            await host.ingest(Write("x", "insert", {}), caller=stage.caller("anna", rights=["read"]))


async def test_a_preview_writes_nothing_and_shows_what_would_happen() -> None:
    effect = Effect()
    async with staged(automated(reflex(), reflex("daily", **CLOCKED), effects=[effect])) as stage:
        host = stage.host
        sale = Write("till.Sold", "insert", {"cents": 7})
        seen = await host.reflex_preview("shop.thank", fact=sale, caller=stage.caller())
        assert (seen.cause, seen.tasks[0].input, seen.tasks[0].shows) == (
            "fact",
            {"cents": 7},
            "thank for {'cents': 7}",
        )
        daily = await host.reflex_preview("daily", next=3, caller=stage.caller())
        assert [at.day for at in daily.next_occurrences] == [1, 2, 3]
        await stage.settle()
        assert (effect.seen, (await host.facts_list(caller=stage.caller())).items) == ([], [])


async def test_backfill_makes_past_occurrences_once() -> None:
    effect = Effect()
    async with staged(automated(reflex(**CLOCKED), effects=[effect])) as stage:
        since, until = (datetime(2025, 12, day, tzinfo=UTC) for day in (1, 4))

        async def fill() -> int:
            return await stage.host.reflex_backfill("shop.thank", since=since, until=until, caller=stage.caller())

        assert (await fill(), await fill()) == (3, 0)
        await stage.settle()
        assert sorted(input["day"] for *_, input in effect.seen) == ["2025-12-01", "2025-12-02", "2025-12-03"]


async def test_a_set_that_came_by_hand_outlives_a_restart_and_a_file_wins(tmp_path: Path) -> None:
    effect = Effect()
    by_hand = automated(effects=[effect])
    async with staged(till, by_hand, store=tmp_path / "one") as stage:
        loaded = await stage.host.reflexes_load([reflex()], caller=stage.caller())
        assert loaded.armed == ("shop.thank",)
        with pytest.raises(Forbidden):
            await stage.host.reflexes_load([], caller=stage.caller(rights=["operate"]))
        with pytest.raises(LoadRefused, match="no file"):
            await stage.host.reflexes_load(caller=stage.caller())
        await stage.restart()
        assert [row.id for row in await stage.host.reflexes_list(caller=stage.caller())] == ["shop.thank"]
        await sell(stage, "s1")
        await stage.settle()
        assert len(effect.seen) == 1
    async with staged(till, automated(reflex(), effects=[effect]), store=tmp_path / "two") as stage:
        with pytest.raises(LoadRefused, match="the code says what is loaded"):
            await stage.host.reflexes_load([], caller=stage.caller())
        assert (await stage.host.reflexes_load(caller=stage.caller())).armed == ("shop.thank",)


async def test_an_app_without_the_part_takes_up_the_set_that_its_store_has(tmp_path: Path) -> None:
    definition = reflex(on={"manual": {}}, effect={"name": "deliver.till", "input": {}})
    async with staged(till, automated(definition), store=tmp_path):
        pass
    async with staged(till, store=tmp_path) as stage:
        assert [row.id for row in await stage.host.reflexes_list(caller=stage.caller())] == ["shop.thank"]


async def test_what_is_wrong_is_refused_at_the_start_all_at_once(tmp_path: Path) -> None:
    wrong = [
        reflex("a", effect={"name": "thnk"}),
        reflex("b", on={"clock": {"every": "day", "at": "25:00", "tz": "x"}}),
    ]
    with pytest.raises(LoadRefused) as refused:
        async with staged(automated(*wrong, effects=[Effect()])):
            pass
    assert len(refused.value.findings) >= 2
    with pytest.raises(LoadRefused, match=r"effect thank: stands twice"):
        async with staged(automated(effects=[Effect()]), automated(effects=[Effect()])):
            pass
    with pytest.raises(LoadRefused, match=r"effect deliver.till: exists by itself"):
        async with staged(till, automated(effects=[Effect("deliver.till")])):
            pass


async def test_a_draft_is_anchored_and_arms_nothing() -> None:
    async with staged(automated(effects=[Effect()])) as stage:
        draft = await stage.host.reflex_draft(reflex(on={"clock": {"in": "2 minutes"}}), caller=stage.caller())
        assert "in" not in draft.definition["on"]["clock"]
        wrong = await stage.host.reflex_draft(reflex(effect={"name": "nope"}), caller=stage.caller())
        assert [finding.level for finding in wrong.findings] == ["refused"]
        assert await stage.host.reflexes_list(caller=stage.caller()) == []


async def test_sweeps_take_what_settled_and_was_delivered_by_hand_and_by_setting(tmp_path: Path) -> None:
    effect = Effect()
    kept = {"retention": {"reflex_runs": "1 hour", "intake": "1 hour"}}
    async with staged(till, automated(reflex(), effects=[effect]), settings=kept) as stage:
        host = stage.host
        for n in range(3):
            await sell(stage, f"s{n}")
        await stage.settle()
        await stage.advance("10 minutes")
        would = await host.sweep(reflex_runs=300_000, intake=300_000, dry_run=True, caller=stage.caller())
        assert (would.reflex_runs, would.intake) == (3, 0) or would.reflex_runs == 3
        went = await host.sweep(reflex_runs=300_000, caller=stage.caller())
        assert (went.reflex_runs, went.intake) == (3, 0)
        assert (await host.reflex_runs(caller=stage.caller())).items == []
        await sell(stage, "s9")
        await stage.settle()
        await stage.advance("2 hours")
        assert (await host.reflex_runs(caller=stage.caller())).items == []
        with pytest.raises(Forbidden):
            await host.sweep(intake=1, caller=Caller("x", frozenset({"read"})))


async def test_readiness_tells_of_the_oldest_that_is_overdue(tmp_path: Path) -> None:
    async with staged(till, automated(reflex(**CLOCKED), effects=[Effect()]), store=tmp_path) as stage:
        await stage.settle()
        stage.host.rest()
        stage.clock.step_to(stage.clock.now() + 12 * 3_600_000)
        ready = await stage.host.ready()
        assert ready["oldest_overdue_seconds"] == 4 * 3600
        (late,) = await stage.host.reflex_overdue(caller=stage.caller())
        assert (late.reflex, late.late_seconds) == ("shop.thank", 4 * 3600)


def test_signals_need_their_secrets_at_the_start() -> None:
    config = settle(code={"signals": {"shop": {"scheme": "stripe", "secret_env": "NOT_SET"}}}, environ={})
    assert [finding.where for finding in config.lacking()] == ["NOT_SET"]
