"""Too much is refused with what, size, limit and what to do, over HTTP, MCP and the command line, and stores nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from pydantic import BaseModel

from onefold import App, Run, actuator
from onefold.actuators.declare import INPUT_LIMIT
from onefold.cli.root import root
from onefold.errors import TooLarge
from onefold.serve import asgi_app
from onefold.terms.codec import canonical, parse
from onefold.terms.limits import MAX_ROW_BYTES
from onefold.testing import staged
from tests.guarantees.documents import Printer, Write, documents, everything
from tests.serve.conftest import LOCAL, client_of


class Said(BaseModel):
    text: str


@actuator
async def echo(run: Run, said: Said) -> str:
    return said.text


BESIDES = len(canonical({"text": ""}))
FITS, TOO_MUCH = "x" * (INPUT_LIMIT - BESIDES), "x" * (INPUT_LIMIT - BESIDES + 1)
TOLD = f"the input of echo has {INPUT_LIMIT + 1} bytes; the limit is {INPUT_LIMIT}. Nothing was stored. Send less, or put it into a blob"


async def test_over_http_it_is_413_with_size_limit_and_what_to_do() -> None:
    async with staged(documents, Printer().port(), echo) as stage:
        front = asgi_app(stage.host)
        async with client_of(front) as client:
            before = await everything(stage)
            big = {"type": "Write", "id": "w", "doc": "d", "reply": MAX_ROW_BYTES + 1}
            refused = await client.post("/modules/document/events", json=big)
            told = refused.json()
            assert (refused.status_code, told["code"], told["retry"]) == (413, "too_large", "never")
            assert (
                f"the reply of document d has {MAX_ROW_BYTES + 1} bytes; the limit is {MAX_ROW_BYTES}" in told["detail"]
            )
            assert "put it into a blob" in told["detail"]
            refused = await client.post("/tools/echo", json={"text": TOO_MUCH})
            assert (refused.status_code, refused.json()["detail"][: len(TOLD)]) == (413, TOLD)
            assert await everything(stage) == before
            assert await everything(stage, "echo") == [[], [], [], [], []]
            taken = await client.post("/tools/echo", json={"text": FITS})
            assert (taken.status_code, taken.json()["result"]) == (200, FITS)
        await front.aclose()


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_over_mcp_it_is_an_error_in_words(mode: Any) -> None:
    async with staged(echo) as stage:
        front = asgi_app(stage.host)
        async with client_of(front) as client:
            transport = streamable_http_client(f"{LOCAL}/mcp", http_client=client)
            async with Client(transport, mode=mode) as agent:
                refused = await agent.call_tool("echo", {"text": TOO_MUCH})
                assert refused.is_error
                assert TOLD in refused.content[0].text  # type: ignore[union-attr]
        assert await everything(stage, "echo") == [[], [], [], [], []]
        await front.aclose()


def test_on_the_command_line_it_ends_with_3(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "said.py").write_text(
        "from onefold import App\nfrom tests.guarantees.test_the_ceiling_is_told_at_every_door import echo\napp = App(echo)\n"
    )
    (tmp_path / "onefold.toml").write_text('app = "said.py"\nlisten = "127.0.0.1:9"\n')
    (tmp_path / "big.json").write_bytes(canonical({"text": TOO_MUCH}))
    ended = CliRunner().invoke(root, ["call", "echo", "-f", "big.json"])
    assert ended.exit_code == 3
    assert TOLD in ended.stderr
    asked = CliRunner().invoke(root, ["call", "echo", "-f", "big.json", "--json"])
    assert (asked.exit_code, parse(asked.stdout.encode())["code"]) == (3, "too_large")
    listed = CliRunner().invoke(root, ["runs", "--json"])
    assert parse(listed.stdout.encode())["items"] == []


async def test_in_process_it_is_raised_and_a_blob_is_the_way_round(tmp_path: Path) -> None:
    async with App(documents, Printer().port(), echo, store=tmp_path) as app:
        with pytest.raises(TooLarge, match="put it into a blob, send its digest"):
            await app.deliver(documents, Write("w", "d", text="t" * MAX_ROW_BYTES))
        with pytest.raises(TooLarge):
            await app.call(echo, Said(text=TOO_MUCH))
        name = await app.blobs.put(b"t" * MAX_ROW_BYTES * 3)
        await app.deliver(documents, Write("w", "d", text=name))
        assert await app.call(echo, Said(text=name)) == name
        (text,) = (await app.read(documents, "d")).texts
        assert len(await app.blobs.get(text)) == MAX_ROW_BYTES * 3
