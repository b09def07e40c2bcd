"""Waiting for what a server does by itself: asked again and again, without a sleep that hopes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import psycopg


async def until(admin: psycopg.Connection, text: str, tries: int = 2000) -> Sequence[Any]:
    """The rows, once there are any."""
    for _ in range(tries):
        found = admin.execute(text.encode()).fetchall()
        if found:
            return found
        await asyncio.sleep(0.005)
    raise AssertionError(f"never: {text}")
