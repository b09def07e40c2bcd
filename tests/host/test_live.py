"""What is told of each happening: of a fault its kind, its message and the author's own line."""

from __future__ import annotations

import asyncio

from pydantic import BaseModel

from onefold import Retry, Run, actuator, testing


class Work(BaseModel):
    id: str


def divide() -> int:
    return 1 // 0


@actuator
async def works(run: Run, work: Work) -> int:
    return await run.step(divide, retry=Retry(attempts=2))()


@actuator
async def rests(run: Run, work: Work) -> None:
    await run.sleep("1 hour")


async def test_a_step_that_fell_and_a_run_that_failed_say_why_and_where() -> None:
    told: list[str] = []
    async with testing.open(works) as app:

        async def watch() -> None:
            async for happening in app.host.watch():
                told.append(happening.text)

        watching = asyncio.create_task(watch())
        await asyncio.sleep(0)
        await app.start(works, Work(id="1"))
        await app.settle()
        await app.clock.advance("1 minute")
        await app.settle()
        watching.cancel()
    line = divide.__code__.co_firstlineno + 1
    why = f": ZeroDivisionError: integer division or modulo by zero (test_live.py:{line})"
    [again] = [text for text in told if "StepFell" in text and "attempt=1" in text]
    assert f"{why}, tried again at 2" in again
    [last] = [text for text in told if "StepFell" in text and "attempt=2" in text]
    [failed] = [text for text in told if "FailedFor" in text]
    assert last.endswith(why)
    assert failed.endswith(why)


async def test_a_pass_that_came_to_rest_is_nothing_that_happened() -> None:
    told: list[str] = []
    async with testing.open(rests) as app:

        async def watch() -> None:
            async for happening in app.host.watch():
                told.append(happening.text)

        watching = asyncio.create_task(watch())
        await asyncio.sleep(0)
        receipt = await app.start(rests, Work(id="1"))
        await app.settle()
        await receipt.cancel()
        watching.cancel()
    assert [text for text in told if "WaitOpened" in text]
    assert [text for text in told if "PassOver" in text] == []
