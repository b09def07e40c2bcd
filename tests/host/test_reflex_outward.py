"""The effects that leave the app, as its settings allow."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from onefold.host.config import Config, Person
from onefold.host.reflex_outward import outward
from onefold.ports.notify import Reaching
from onefold.reflex import Reflexes, Task
from onefold.terms.errors import BadArguments, LoadRefused

TOKEN = "t0psecret-t0psecret"


def effects(*parts: Reflexes, **environ: str) -> dict[str, Any]:
    config = Config(people={"owner": Person(("mailto:o@example.com",))}, environ=environ)
    reaching = Reaching({}, {}, lambda text: None, show_links=True)
    return {effect.name: effect for effect in outward(config, parts, [b"s" * 32], lambda: 0, reaching)}


def test_an_app_that_lists_no_origin_calls_none() -> None:
    assert set(effects()) == {"http", "notify"}
    with pytest.raises(BadArguments, match="not on the list"):
        effects()["http"].show({"url": "https://a.example.com/x"})


def test_only_listed_origins_are_called() -> None:
    made = effects(Reflexes(egress=["https://a.example.com"]), Reflexes(egress=["https://b.example.com:8443"]))
    assert made["http"].show({"url": "https://a.example.com/x"}) == "POST https://a.example.com/x"
    assert made["http"].show({"url": "https://b.example.com:8443/x?t=1"}) == "POST https://b.example.com:8443/x"
    with pytest.raises(BadArguments, match="not on the list"):
        made["http"].show({"url": "https://b.example.com/"})
    with pytest.raises(BadArguments, match="add it to `egress`"):
        effects(Reflexes())["http"].show({"url": "https://a.example.com/"})


def test_a_token_is_named_and_must_be_there() -> None:
    part = Reflexes(egress={"https://a.example.com": "env:A_TOKEN"})
    assert TOKEN not in repr(vars(effects(part, A_TOKEN=TOKEN)["http"]))
    with pytest.raises(LoadRefused, match="A_TOKEN"):
        effects(part)
    with pytest.raises(LoadRefused, match="env:NAME") as told:
        effects(Reflexes(egress={"https://a.example.com": TOKEN}))
    assert TOKEN not in str(told.value)
    with pytest.raises(LoadRefused, match="no exact origin"):
        effects(Reflexes(egress=["https://*.example.com"]))


async def test_people_are_those_of_the_settings() -> None:
    notify = effects(Reflexes())["notify"]
    with pytest.raises(BadArguments, match="nobody in"):
        await notify.run(Task("k", datetime(2026, 3, 1, tzinfo=UTC), 1, None, print), {"to": ["onwer"], "message": "x"})
    assert notify.show({"to": ["owner"], "message": "x"}) == "tell owner: x"
