"""The MCP Inspector's command line, which nobody of us wrote: it lists and calls the example in both eras."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from onefold.terms.codec import parse
from tests.example.caller import TOOL
from tests.example.shop import PATIENCE_S, Shop, shop

pytestmark = pytest.mark.needs_node
eras = pytest.mark.parametrize("era", ["legacy", "modern"])
IS_ERROR = 5  # its exit code for a tool that says isError


@dataclass
class Inspector:
    """One shop, seen through the command line."""

    shop: Shop
    command: list[str]

    async def __call__(self, *arguments: str) -> tuple[int, Any, str]:
        """Exit code, what it printed as JSON, and what it complained of."""
        address = f"{self.shop.app.url}/mcp"
        process = await asyncio.create_subprocess_exec(
            *self.command,
            address,
            *arguments,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        async with asyncio.timeout(PATIENCE_S):
            out, err = await process.communicate()
        assert process.returncode is not None
        return process.returncode, parse(out, "what the Inspector printed"), err.decode()

    async def call(self, era: str, amount: str) -> tuple[int, Any, str]:
        given = {"order_id": f"{era}-{amount}", "bill_id": f"bill-{era}-{amount}", "amount": amount}
        told = [part for name, value in given.items() for part in ("--tool-arg", f"{name}={value}")]
        return await self("--method", "tools/call", "--tool-name", TOOL, *told, "--protocol-era", era)


@pytest.fixture
async def inspect(tmp_path: Path, inspector: list[str]) -> AsyncIterator[Inspector]:
    async with shop(tmp_path) as one:
        await one.opens()
        yield Inspector(one, inspector)


@eras
async def test_it_lists_the_tools_and_finds_no_fault_in_their_schemas(inspect: Inspector, era: str) -> None:
    code, listed, complaints = await inspect("--method", "tools/list", "--strict", "--protocol-era", era)
    assert code == 0, complaints
    assert [tool["name"] for tool in listed["tools"]][:2] == [TOOL, "get_run"]
    assert "Error:" not in complaints


@eras
async def test_it_calls_below_and_above_the_limit_and_with_bad_arguments(inspect: Inspector, era: str) -> None:
    (code, done, _), (waits_code, waits, _), (bad_code, bad, _) = await asyncio.gather(
        *(inspect.call(era, amount) for amount in ("40", "150", "900"))
    )
    assert (code, done["structuredContent"]["result"]["type"]) == (0, "Refunded")
    assert (waits_code, waits["structuredContent"]["status"]) == (0, "waiting")
    assert waits["content"][0]["text"].startswith("Not finished: ")
    assert (bad_code, bad["isError"]) == (IS_ERROR, True)
    assert bad["content"][0]["text"].splitlines() == [
        f"{TOOL}: nothing was started.",
        "- amount: must be at most 500; sent 900",
    ]
