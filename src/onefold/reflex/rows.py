"""reflex.rows - what a function or a database gives becomes rows of JSON, off the loop where it must be.

For: async generators as they are; plain generators and functions in a thread, a chunk at a time; Decimal, instants,
bytes and their like as the one JSON form has them.
Never: holds up the loop; holds more than a chunk; guesses what a value means that JSON has no form for.
Was wrong once: a list of everything, from a database that had a million rows for a question meant to find twelve.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping
from datetime import date, datetime
from itertools import islice
from typing import Any, Final, TypeVar, cast

from onefold.reflex.seams import Query, Row
from onefold.reflex.words import Json
from onefold.store.worker import Worker, heard
from onefold.terms.codec import below
from onefold.terms.errors import BadArguments, Fault, LoadRefused, StoreUnavailable
from onefold.terms.typed import codec_of

T = TypeVar("T")
CHUNK: Final = 500
"""Rows that cross from a thread to the loop at once: each crossing costs about 0.1 ms."""


async def rows_of(function: Callable[[Query], Any], query: Query, named: str) -> AsyncGenerator[Row, None]:
    """The rows that a function gives for a query, as JSON. Raises: whatever it raises; BadArguments for what is no row."""
    if inspect.isasyncgenfunction(function) or inspect.iscoroutinefunction(function):
        given = function(query)
    else:
        async for row in _in_a_thread(lambda: function(query), named):
            yield as_row(row, named)
        return
    if isinstance(given, Awaitable):
        given = await given
    if hasattr(given, "__aiter__"):
        try:
            async for row in given:
                yield as_row(row, named)
        finally:
            if hasattr(given, "aclose"):
                await given.aclose()
        return
    for row in given:
        yield as_row(row, named)


async def within(rows: AsyncGenerator[T, None], timeout_ms: int, named: str) -> AsyncIterator[T]:
    """The rows, as long as waiting for them takes no longer in all. Raises: StoreUnavailable, and whatever they raise.

    What a thread is doing meanwhile goes on, unheard.
    """
    loop = asyncio.get_running_loop()
    left = timeout_ms / 1000
    try:
        while True:
            since = loop.time()
            try:
                async with asyncio.timeout(left):
                    row = await anext(rows, None)
            except TimeoutError as late:
                if left > loop.time() - since:  # it raised that by itself
                    raise
                raise StoreUnavailable(named, f"it took longer than its {timeout_ms / 1000:g} s") from late
            if row is None:
                return
            left -= loop.time() - since
            yield row
    finally:
        await rows.aclose()


async def _in_a_thread(call: Callable[[], Any], named: str) -> AsyncIterator[Any]:
    """What a plain function gives, a chunk at a time. One that is left half way goes on to its next chunk, unheard."""
    worker = Worker(f"select-{named}")
    try:
        given = await worker.ask(call)
        if hasattr(given, "__aiter__"):  # it only handed on what is async
            async for row in given:
                yield row
            return
        items: Iterator[Any] = iter(given)
        chunk = await worker.ask(lambda: list(islice(items, CHUNK)))
        while chunk:
            for row in chunk:
                yield row
            if len(chunk) < CHUNK:
                break
            chunk = await worker.ask(lambda: list(islice(items, CHUNK)))
        close = getattr(items, "close", None)
        if close is not None:
            worker.ask(close).add_done_callback(heard)
    finally:
        worker.leave()


def as_row(row: Any, named: str) -> Row:
    """A mapping, a dataclass or a model as a row of JSON. Raises: BadArguments."""
    if isinstance(row, Mapping):
        return {_column(key, named): as_cell(value, key, named) for key, value in row.items()}
    told = as_cell(row, "", named)
    if not isinstance(told, dict):
        raise BadArguments(
            [Fault(named, f"gave a row that is a {type(row).__name__}, not an object")], nothing_was="selected"
        )
    return cast(Row, told)


def _column(key: object, named: str) -> str:
    if isinstance(key, str):
        return key
    raise BadArguments([Fault(named, "gave a row with a name that is not text", repr(key))], nothing_was="selected")


def as_cell(value: Any, column: str, named: str) -> Json:
    """One value as JSON. A local time, which a database may keep, stays one: without a zone. Raises: BadArguments."""
    kind = type(value)
    if value is None or kind in (str, bool, int, float):
        return value
    if isinstance(value, Mapping):
        return {_column(key, named): as_cell(item, below(column, key), named) for key, item in value.items()}
    if kind in (list, tuple):
        return [as_cell(item, below(column, at), named) for at, item in enumerate(value)]
    if isinstance(value, date) and (not isinstance(value, datetime) or value.tzinfo is None):
        return value.isoformat()
    try:
        return codec_of(kind).to_json(value)
    except (BadArguments, LoadRefused):
        told = f"gave a {kind.__name__}, which has no form in JSON; give text"
        raise BadArguments([Fault(below(named, column), told)], nothing_was="selected") from None
