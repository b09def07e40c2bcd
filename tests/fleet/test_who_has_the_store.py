"""Whoever finds a store in the hands of a fleet is told all of its nodes; `doctor` shows them."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

import onefold
from onefold.cli.doctor import doctor
from onefold.errors import StoreLocked
from tests.fleet.nodes import SECRET, fleet_of
from tests.fleet.shared import Room


@pytest.mark.parametrize("kind", ["postgres", "sqlite"])
async def test_every_node_that_has_the_store_is_named(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ONEFOLD_SECRET", SECRET)
    monkeypatch.chdir(tmp_path)
    async with fleet_of(Room, names="abc", store=None if kind == "postgres" else str(tmp_path / "store")) as fleet:
        with pytest.raises(StoreLocked) as refused:
            async with onefold.App(Room, store=fleet.store):
                pass
        asked = await asyncio.to_thread(CliRunner().invoke, doctor, ["--store", fleet.store, "--json"])
        (main,) = [row for row in json.loads(asked.output)["items"] if row["space"] == "main"]
        for told in (refused.value.holder, main["holder"]):
            assert re.findall(r"node '?(\w)'?,", told) == ["a", "b", "c"], told
        await fleet.nodes.pop("b").stop()
        asked = await asyncio.to_thread(CliRunner().invoke, doctor, ["--store", fleet.store, "--json"])
        assert re.findall(r"node '?(\w)'?,", json.loads(asked.output)["items"][0]["holder"]) == ["a", "c"]
