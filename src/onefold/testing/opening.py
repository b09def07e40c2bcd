"""testing.opening - `testing.open`, and a flow that is killed at each of its failpoints in turn.

For: `with testing.open(...)`, `async with testing.open(...)`, the type of the fixture, `every_crash`.
Never: a server, a thread that sleeps, a file unless a folder is named.
Was wrong once: one store for all passes of `every_crash`. The second pass met the first one's run under its key, and
nothing was left to be killed.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Protocol

from onefold.host.catalog import Part
from onefold.host.settings import on_postgres
from onefold.testing.app import AwaitedApp, DurableApp

Replay = Literal["every-await"]
MEMORY = "memory:"


@dataclass
class Opening:
    """An app to be entered, with `with` or `async with`. Fresh rows each time, unless a folder is named."""

    parts: tuple[Part, ...]
    replay: Replay | None = None
    store: str | Path = MEMORY
    seed: int = 0
    config: Mapping[str, Any] | None = None
    _entered: Any = None

    def _app(self) -> AwaitedApp:
        return AwaitedApp(*self.parts, store=str(self.store), replay=self.replay, seed=self.seed, config=self.config)

    def __enter__(self) -> DurableApp:
        self._entered = DurableApp(self._app())
        app: DurableApp = self._entered.__enter__()
        return app

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._entered.__exit__(kind, fault, trace)

    async def __aenter__(self) -> AwaitedApp:
        self._entered = self._app()
        app: AwaitedApp = await self._entered.__aenter__()
        return app

    async def __aexit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._entered.__aexit__(kind, fault, trace)


def open(
    *parts: Part,
    replay: Replay | None = None,
    store: str | Path = MEMORY,
    seed: int = 0,
    config: Mapping[str, Any] | None = None,
) -> Opening:
    """The real engine on a clock that a test moves, with seeded ids, in memory or in a folder.

    replay: "every-await" replays each pass from its top whenever something was journaled. config: settings as in
    onefold.toml; neither a file nor the environment is read. Raises, when entered: LoadRefused.
    """
    return Opening(parts, replay, store, seed, config)


class Durable(Protocol):
    """The type of the fixture `durable`: it opens an app for the length of the test."""

    def __call__(
        self,
        *parts: Part,
        replay: Replay | None = None,
        store: str | Path = MEMORY,
        seed: int = 0,
        config: Mapping[str, Any] | None = None,
    ) -> DurableApp: ...


@dataclass(frozen=True)
class Crashes:
    """An app for each failpoint of a flow, killed there once, and a last one that meets no crash."""

    opening: Opening

    def _fresh(self, hit: int) -> Opening:
        store = self.opening.store
        if on_postgres(str(store)):
            raise ValueError("every crash needs a fresh store: name a folder, or leave the store out; not a database")
        return self.opening if store == MEMORY else replace(self.opening, store=Path(store) / f"crash-{hit}")

    def __iter__(self) -> Iterator[DurableApp]:
        for hit in count(1):
            with self._fresh(hit) as app:
                app.awaited.points.die_at(None, hit=hit)
                app.awaited.points.expected = False
                yield app
            if not app.crashed:
                return

    async def __aiter__(self) -> AsyncIterator[AwaitedApp]:
        for hit in count(1):
            async with self._fresh(hit) as app:
                app.points.die_at(None, hit=hit)
                app.points.expected = False
                yield app
            if not app.crashed:
                return


def every_crash(
    *parts: Part,
    replay: Replay | None = None,
    store: str | Path = MEMORY,
    seed: int = 0,
    config: Mapping[str, Any] | None = None,
) -> Crashes:
    """`for app in every_crash(…)`: in its k-th pass the app dies at the k-th failpoint it meets, and is opened again.

    It ends with the pass that meets no crash. A verb cut by the crash is sent again if it has a key, an event or an
    approval counting as one, and else raises OutcomeUnknown. `async for` gives awaited apps.
    """
    return Crashes(open(*parts, replay=replay, store=store, seed=seed, config=config))
