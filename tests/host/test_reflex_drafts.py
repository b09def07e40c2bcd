"""What an app gives whoever drafts: a schema, a draft that is tried unloaded; and what it keeps where nobody said how long."""

from __future__ import annotations

import pytest

from onefold.terms.errors import BadArguments, LoadRefused
from onefold.testing.stage import staged
from tests.host.automated import CLOCKED, Effect, Sell, automated, reflex, till


async def test_a_draft_is_tried_as_its_author_and_nothing_is_loaded() -> None:
    effect = Effect()
    async with staged(till, automated(reflex(), effects=[effect])) as stage:
        mine = reflex("daily", **CLOCKED) | {"as": "anna"}
        seen = await stage.host.reflex_preview(mine, next=2, caller=stage.caller("anna"))
        assert seen.cause.startswith("occurrence:")
        assert len(seen.next_occurrences) == 2
        with pytest.raises(BadArguments, match="another principal"):
            await stage.host.reflex_preview(mine, caller=stage.caller())
        with pytest.raises(LoadRefused):
            await stage.host.reflex_preview(reflex("x", effect={"name": "nope"}), caller=stage.caller())
        await stage.advance("3 days")
        assert [row.id for row in await stage.host.reflexes_list(caller=stage.caller())] == ["shop.thank"]
        assert effect.seen == []


async def test_the_schema_names_what_this_app_has_and_nothing_of_anybody_else() -> None:
    definitions = [reflex("anna.thank") | {"as": "anna"}, reflex("bert.thank") | {"as": "bert"}]
    async with staged(till, automated(*definitions, effects=[Effect()])) as stage:
        schema = await stage.host.reflex_schema(caller=stage.caller("anna"))
        assert "deliver.till" in schema["properties"]["effect"]["properties"]["name"]["enum"]
        assert "enabled" not in schema["properties"]
        assert "bert.thank" not in str(schema)


async def test_where_nobody_says_how_long_everything_is_kept_for_ever() -> None:
    async with staged(till, automated(reflex(), effects=[Effect()])) as stage:
        module = stage.host.catalog.module("till")
        await stage.host.deliver(module, Sell("s1", "north", 5), caller=stage.caller())
        await stage.settle()
        await stage.advance("3 days")
        with pytest.raises(BadArguments, match="say how long"):
            await stage.host.sweep(caller=stage.caller())
        assert len((await stage.host.reflex_runs(caller=stage.caller())).items) == 1
