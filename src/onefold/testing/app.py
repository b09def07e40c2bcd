"""testing.app - the app under test: the verbs of `onefold.App`, and a hand on its clock, its world and its life.

For: `DurableApp`, which blocks, and `AwaitedApp`, which is awaited. Both are given by `testing.open`.
Never: another engine: the host, the store and the kernel are the real ones.
Was wrong once: a fake app with the same verbs. It folded without a store, and its runs could not be killed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any, cast

from onefold import app as awaited
from onefold import blocking
from onefold.host.approvals import Verdict
from onefold.host.catalog import Part
from onefold.host.config import Config, settle
from onefold.host.host import Host
from onefold.terms.duration import duration_ms
from onefold.terms.errors import NotFound
from onefold.terms.instant import Instant, up
from onefold.testing.acts import NOT_GIVEN, Acts, Called
from onefold.testing.lives import Lives, Standing
from onefold.testing.points import Points
from onefold.testing.stage import Killed, Stage, environ_for
from onefold.testing.stuck import unasked

__tracebackhide__ = True  # a failing test shows the test's own lines

REPLAYS = (None, "every-await")


class AwaitedApp(awaited.App):
    """The app under test, for `async with`. Every verb of `onefold.App`, awaited."""

    def __init__(
        self,
        *parts: Part,
        store: str = "memory:",
        replay: str | None = None,
        seed: int = 0,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        """Raises: ValueError for a `replay` that there is not; LoadRefused."""
        super().__init__(*parts, store=store, config=config or {})
        if replay not in REPLAYS:
            raise ValueError(f'replay is "every-await" or None, not {replay!r}')
        self.points = Points()
        self._stage = Stage(parts, self.settled(), seed=seed)
        self._stage.twice = True
        self._stage.failpoint = self.points.meet
        self._acts = self._stage.stand_in = Acts(self.points, self._stage.said.append)
        if replay is not None:
            from onefold.testing.replaying import run_pass

            self._stage.run_pass = run_pass
        self._lives = Lives(self._stage, self.points)
        self.clock = AwaitedClock(self._lives)

    def settled(self, flags: Mapping[str, Any] | None = None) -> Config:
        """Its settings: as the test says, and neither the environment's nor a file's. Raises: LoadRefused."""
        return settle(code=self.said, flags=flags, environ=environ_for(str(self.said.get("store"))))

    async def __aenter__(self) -> AwaitedApp:
        opened = self._opened
        if opened.host is None:
            loop = asyncio.get_running_loop()
            loop.set_exception_handler(_quietly(loop.get_exception_handler()))
            self._lives.begin()
            await self._stage.open()
            opened.host = cast(Host, Standing(self._lives))
        opened.depth += 1
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Raises: Unsettled when the test passed and left something behind."""
        opened = self._opened
        opened.depth -= 1
        if opened.depth:
            return
        try:
            if kind is None:
                await self._lives.finish()
        finally:
            opened.host = None
            self.points.order = None  # closing is not what the test is about
            await self._stage.close() if not self.points.dead else await self._stage.let_die()

    def acting_as(self, principal: str | None) -> AwaitedApp:
        return cast(AwaitedApp, super().acting_as(principal))

    # --- the world ----------------------------------------------------------------------------

    @property
    def notices(self) -> tuple[str, ...]:
        """What people were asked, a text each. Nothing leaves the test."""
        return tuple(self._stage.said)

    def stub(self, step: Any, *, returns: Any = NOT_GIVEN, raises: Any = NOT_GIVEN, calls: Any = NOT_GIVEN) -> None:
        """From now on a step or port gives `returns`, raises `raises`, or calls another function with its arguments."""
        self._acts.stub(step, returns, raises, calls)

    def calls(self, step: Any) -> list[Called]:
        """How a step or port was called so far, stubbed or not."""
        return self._acts.calls(step)

    async def approve(self, receipt: Any, name: str, by: str, comment: str | None = None, value: Any = None) -> Verdict:
        """A person agrees, once the run has come so far.

        Raises: Stuck when it goes on and asks nothing of this name; NotFound when there is no such run, or it is over.
        """
        await self._lives.settle()
        try:
            return await self.approvals.approve(_run(receipt), name, by, comment, value)
        except NotFound as missing:
            raise await unasked(self._stage.host, _run(receipt), name, missing) from None

    async def reject(self, receipt: Any, name: str, by: str, reason: str | None = None) -> Verdict:
        """A person declines, once the run has come so far. Raises: as `approve`."""
        await self._lives.settle()
        try:
            return await self.approvals.reject(_run(receipt), name, by, reason)
        except NotFound as missing:
            raise await unasked(self._stage.host, _run(receipt), name, missing) from None

    # --- its life -----------------------------------------------------------------------------

    async def settle(self) -> None:
        """Until nothing moves without time passing."""
        await self._lives.settle()

    async def restart(self) -> None:
        """Stop cleanly and open again over the same rows."""
        await self._lives.restart()

    async def crash(self) -> None:
        """Kill it now and open again, five seconds later."""
        await self._lives.crash()

    def crash_at(self, point: str, *, step: str | None = None, hit: int = 1) -> None:
        """Kill it at the `hit`-th failpoint of this name, and open again, five seconds later. Raises: ValueError."""
        self.points.die_at(point, step, hit)

    @property
    def crashed(self) -> tuple[str, ...]:
        """The failpoints at which it died so far."""
        return tuple(self.points.crashed)


class AwaitedClock:
    """The app's time, which only a test moves."""

    def __init__(self, lives: Lives) -> None:
        self._lives = lives

    def now(self) -> datetime:
        return self._lives.stage.clock.moment

    async def advance(self, duration: str | timedelta) -> None:
        """Let time pass; whatever falls due on the way happens at its instant. Raises: BadArguments."""
        await self._lives.advance_to(self._lives.stage.clock.now() + duration_ms(duration))

    async def advance_to(self, instant: datetime) -> None:
        """As `advance`; an instant that is past moves nothing. Raises: BadArguments for a naive one."""
        await self._lives.advance_to(max(up(instant), Instant(self._lives.stage.clock.now())))


class DurableApp(blocking.App):
    """The app under test, for `with` and the fixture `durable`. Every verb of `onefold.blocking.App`."""

    awaited: AwaitedApp

    def __enter__(self) -> DurableApp:
        super().__enter__()
        return self

    def acting_as(self, principal: str | None) -> DurableApp:
        return DurableApp(self.awaited.acting_as(principal), self._loop)

    @property
    def clock(self) -> Clock:
        return Clock(self)

    @property
    def notices(self) -> tuple[str, ...]:
        """What people were asked, a text each. Nothing leaves the test."""
        return self.awaited.notices

    def stub(self, step: Any, *, returns: Any = NOT_GIVEN, raises: Any = NOT_GIVEN, calls: Any = NOT_GIVEN) -> None:
        """From now on a step or port gives `returns`, raises `raises`, or calls another function with its arguments."""
        self.awaited.stub(step, returns=returns, raises=raises, calls=calls)

    def calls(self, step: Any) -> list[Called]:
        """How a step or port was called so far, stubbed or not, once nothing moves."""
        self.settle()
        return self.awaited.calls(step)

    def approve(self, receipt: Any, name: str, by: str, comment: str | None = None, value: Any = None) -> Verdict:
        """A person agrees, once the run has come so far. Raises: Stuck, NotFound."""
        return self.wait_for(self.awaited.approve(receipt, name, by, comment, value))

    def reject(self, receipt: Any, name: str, by: str, reason: str | None = None) -> Verdict:
        """A person declines, once the run has come so far. Raises: Stuck, NotFound."""
        return self.wait_for(self.awaited.reject(receipt, name, by, reason))

    def settle(self) -> None:
        """Until nothing moves without time passing."""
        self.wait_for(self.awaited.settle())

    def restart(self) -> None:
        """Stop cleanly and open again over the same rows."""
        self.wait_for(self.awaited.restart())

    def crash(self) -> None:
        """Kill it now and open again, five seconds later."""
        self.wait_for(self.awaited.crash())

    def crash_at(self, point: str, *, step: str | None = None, hit: int = 1) -> None:
        """Kill it at the `hit`-th failpoint of this name, and open again, five seconds later. Raises: ValueError."""
        self.awaited.crash_at(point, step=step, hit=hit)

    @property
    def crashed(self) -> tuple[str, ...]:
        """The failpoints at which it died so far."""
        return self.awaited.crashed


class Clock:
    """The app's time, which only a test moves."""

    def __init__(self, app: DurableApp) -> None:
        self._app = app

    def now(self) -> datetime:
        return self._app.awaited.clock.now()

    def advance(self, duration: str | timedelta) -> None:
        """Let time pass; whatever falls due on the way happens at its instant. Raises: BadArguments."""
        self._app.wait_for(self._app.awaited.clock.advance(duration))

    def advance_to(self, instant: datetime) -> None:
        """As `advance`; an instant that is past moves nothing. Raises: BadArguments for a naive one."""
        self._app.wait_for(self._app.awaited.clock.advance_to(instant))


def _quietly(before: Any) -> Callable[[asyncio.AbstractEventLoop, dict[str, Any]], None]:
    """A loop's handler of faults, for good: what died with its process is told late, and is no fault to read of."""

    def handle(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        if isinstance(context.get("exception"), Killed):
            return
        if before is None:
            loop.default_exception_handler(context)
        else:
            before(loop, context)

    return handle


def _run(receipt: Any) -> str:
    return receipt if isinstance(receipt, str) else str(receipt.run_id)
