"""testing.port_suite.calling - what a port promises of its calls, one beside another.

For: bodies and answers, effects and keys, repeats, and looking up.
Never: a host: what becomes of a port in one is `hosted`.
Was wrong once: the repeat made with the same object. A port that kept its answers in it passed.
"""

from __future__ import annotations

import asyncio
from typing import Any

from onefold.terms.errors import BadArguments
from onefold.terms.typed import Codec
from onefold.testing.port_suite.ground import PortUnderTest, Unfulfilled, expect, find, promise, send


@promise("a body and an answer come back from their bytes as they were")
async def check_bytes(subject: PortUnderTest) -> None:
    port = subject.make()
    for body in (subject.body, subject.other):
        _same(port.body, body, "the body")
    _same(port.answer, await send(port, subject.key(), subject.body), "the answer")


def _same(codec: Codec[Any], value: Any, what: str) -> None:
    try:
        back = codec.decode(codec.encode(value))
    except BadArguments as refused:
        raise Unfulfilled(f"{what} {value!r} cannot be written: {refused}") from None
    expect(back, value, f"{what} read again")


@promise("one call is one effect")
async def check_one(subject: PortUnderTest) -> None:
    before = subject.effects()
    await send(subject.make(), subject.key(), subject.body)
    expect(subject.effects() - before, 1, "effects of one call")


@promise("two keys are two effects, also with the same body")
async def check_two_keys(subject: PortUnderTest) -> None:
    port, before = subject.make(), subject.effects()
    for body in (subject.body, subject.body, subject.other):
        await send(port, subject.key(), body)
    expect(subject.effects() - before, 3, "effects of three keys")


@promise("the same key twice is one effect", "dedupes")
async def check_repeat(subject: PortUnderTest) -> None:
    port, key, before = subject.make(), subject.key(), subject.effects()
    await send(port, key, subject.body)
    await send(port, key, subject.body, attempt=2)
    expect(subject.effects() - before, 1, "effects of one key, sent twice")


@promise("the same key twice gets the first answer", "dedupes")
async def check_first_answer(subject: PortUnderTest) -> None:
    port, key = subject.make(), subject.key()
    first = await send(port, key, subject.body)
    expect(await send(port, key, subject.body, attempt=2), first, "the answer to the repeat")


@promise("the same key twice at once is one effect", "dedupes")
async def check_at_once(subject: PortUnderTest) -> None:
    port, key, before = subject.make(), subject.key(), subject.effects()
    await asyncio.gather(*(send(port, key, subject.body, attempt=n) for n in (1, 2, 3)), return_exceptions=True)
    expect(subject.effects() - before, 1, "effects of one key, sent three times at once")


@promise("the same key after a restart is one effect", "dedupes")
async def check_restart(subject: PortUnderTest) -> None:
    key, before = subject.key(), subject.effects()
    await send(subject.make(), key, subject.body)
    await send(subject.make(), key, subject.body, attempt=2)
    expect(subject.effects() - before, 1, "effects of one key, sent again by another process")


@promise("what was sent is found, with its answer", "lookup")
async def check_found(subject: PortUnderTest) -> None:
    key = subject.key()
    answer = await send(subject.make(), key, subject.body)
    expect(await find(subject.make(), key, subject.body), answer, "what was found")


@promise("what was never sent is not found", "lookup")
async def check_not_found(subject: PortUnderTest) -> None:
    port = subject.make()
    await send(port, subject.key(), subject.body)
    expect(await find(port, subject.key(), subject.body), None, "what was found of a key that was never sent")


@promise("looking is no effect", "lookup")
async def check_looking(subject: PortUnderTest) -> None:
    port, key = subject.make(), subject.key()
    await send(port, key, subject.body)
    before = subject.effects()
    await find(port, key, subject.body)
    await find(port, subject.key(), subject.other)
    expect(subject.effects() - before, 0, "effects of looking")


@promise("it can be asked", "lookup")
async def check_asked(subject: PortUnderTest) -> None:
    if subject.make().find is None:
        raise Unfulfilled("the port promises lookup and has no find")


CHECKS = (
    check_bytes,
    check_one,
    check_two_keys,
    check_repeat,
    check_first_answer,
    check_at_once,
    check_restart,
    check_asked,
    check_found,
    check_not_found,
    check_looking,
)
