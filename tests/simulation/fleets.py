"""Nodes of one fleet, each a process, over one Postgres: started, stopped, killed, cut off, and looked at from outside.

For: `Fleet`, whose `node(name)` starts one; what the store's rows say of owners and their epochs.
Never: sleeps for luck: whoever waits names what for, and by when; leaves a process behind.
"""

from __future__ import annotations

import asyncio
import signal
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import httpx2
import psycopg

from onefold.terms.ids import ActorId, slot_of
from tests.example.shop import Child

T = TypeVar("T")
HERE = Path(__file__).parent
TARGET = HERE / "counting.py"
LEASE_MS = 1_600  # renewed four times: on a machine under load a process may well stand still for half a second
SLOTS = 32
TAKEN_OVER_S = LEASE_MS / 1000 * 1.25 + 8.0  # a lease and a quarter is promised; the rest is for a machine under load
PATIENCE_S = 30.0
LOOK_S = 0.03
SECRET = "a secret of this test's fleet alone"


async def within(seconds: float, what: str, true: Callable[[], Awaitable[T]]) -> T:
    """What `true` gives, as soon as that is something. Fails when it is nothing for so long."""
    loop = asyncio.get_running_loop()
    until = loop.time() + seconds
    while not (found := await true()):
        assert loop.time() < until, f"within {seconds:.1f} s: {what}"
        await asyncio.sleep(LOOK_S)
    return found


class Member:
    """One process. `url`: where callers reach it."""

    def __init__(self, name: str, child: Child, url: str) -> None:
        self.name = name
        self.child = child
        self.url = url

    def send(self, number: int) -> None:
        self.child.process.send_signal(number)

    async def kill(self) -> None:
        await self.child.kill()

    async def stop(self) -> None:
        """SIGTERM, and until it has ended. Its last lines are the fault's when it ended badly."""
        self.send(signal.SIGTERM)
        code = await self.child.ended()
        assert code == 0, "\n".join(self.child.said[-40:])


class Fleet:
    """All of it. `store`: the URL of a database of its own."""

    def __init__(self, store: str, folder: Path) -> None:
        self.store = store
        self.ledger = folder / "ledger"
        self.members: dict[str, Member] = {}
        self.epochs: dict[tuple[str, int], set[tuple[str, int]]] = defaultdict(set)
        self.history: dict[str, int] = {}
        self.faults: list[str] = []
        self._folder = folder
        self._everybody: list[Child] = []
        self._watching: asyncio.Task[None] | None = None
        self._sees: psycopg.AsyncConnection[Any] | None = None

    async def __aenter__(self) -> Fleet:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)
        for child in self._everybody:
            if child.process.returncode is None:
                child.process.send_signal(signal.SIGCONT)
            await child.kill()
        if self._sees is not None:
            await self._sees.close()
        for child in self._everybody:
            print("---", *child.said[-30:], sep="\n")  # noqa: T201 - shown where it failed

    # --- processes --------------------------------------------------------------------------------

    async def node(
        self,
        name: str,
        *,
        target: Path = TARGET,
        store: str | None = None,
        advertise: str | None = None,
        twins: Sequence[str] = (),
        at: str = "127.0.0.1",
        environ: Mapping[str, str] | None = None,
    ) -> Member:
        """Start one, and wait until it serves. `at`: the address it listens on."""
        place = self.place(name)
        place.mkdir(exist_ok=True)
        line = ["serve", str(target), "--store", store or self.store, "--node", name, "--listen", f"{at}:0"]
        line += ["--advertise", advertise] if advertise is not None else []
        told = {
            "ONEFOLD_SECRET": SECRET,
            "ONEFOLD_NODE__LEASE": f"{LEASE_MS} ms",
            "ONEFOLD_SLOTS": str(SLOTS),
            "LEDGER": str(self.ledger),
            **(environ or {}),
        }
        child = await Child.start(str(HERE / "fleet_child.py"), ",".join(twins), "--", *line, folder=place, **told)
        self._everybody.append(child)
        found = await child.hears(r"serves .* on (http://\S+)")
        member = self.members[name] = Member(name, child, found[1])
        return member

    async def nodes(self, names: str, **more: Any) -> list[Member]:
        """Several. The first makes the tables; then all at once."""
        first, others = names[0], names[1:]
        begun = [await self.node(first, **more)]
        return begun + list(await asyncio.gather(*(self.node(name, **more) for name in others)))

    def place(self, name: str) -> Path:
        """Where a node runs."""
        return self._folder / name

    @property
    def urls(self) -> list[str]:
        return [member.url for member in self.members.values()]

    # --- as the rows have it ------------------------------------------------------------------------

    async def asked(self, query: str) -> list[Any]:
        if self._sees is None:
            self._sees = await psycopg.AsyncConnection.connect(self.store, autocommit=True)
        return await (await self._sees.execute(query)).fetchall()

    async def owners(self) -> dict[str, tuple[str, int, int]]:
        """Who has each name: node, incarnation, epoch. Notes an epoch that was given twice, or went back."""
        found = await self.asked("select name, node, incarnation, epoch from onefold.owner where epoch > 0")
        for name, node, incarnation, epoch in found:
            lives = self.epochs[(name, epoch)]
            lives.add((node, incarnation))
            if len(lives) > 1 or epoch < self.history.get(name, 0):
                self.faults.append(f"{name}: epoch {epoch} is {sorted(lives)}'s, after {self.history.get(name)}")
            self.history[name] = epoch
        return {name: (node, incarnation, epoch) for name, node, incarnation, epoch in found}

    async def cells_of(self, node: str, keys: Sequence[str]) -> list[str]:
        """Those of these cells that a node owns."""
        owners = await self.owners()
        return [key for key in keys if owners[f"slot/{slot_of(ActorId('Tally', None, key), SLOTS)}"][0] == node]

    async def lives(self) -> dict[str, tuple[int, str]]:
        """Each node's incarnation and state."""
        return {n: (i, state) for n, i, state in await self.asked("select name, incarnation, state from onefold.node")}

    def watch(self) -> None:
        """Look at the owners all the time from now on."""

        async def watching() -> None:
            while True:
                await self.owners()
                await asyncio.sleep(LOOK_S)

        self._watching = asyncio.create_task(watching())

    async def settled(self, names: str) -> None:
        """Until each slot is owned by one of exactly these nodes, in its living incarnation, and each of them has some."""

        async def true() -> bool:
            owners, lives = await self.owners(), await self.lives()
            slots = [each for name, each in owners.items() if name.startswith("slot/")]
            alive = {name: incarnation for name, (incarnation, state) in lives.items() if state == "live"}
            return (
                len(slots) == SLOTS
                and {node for node, _, _ in slots} == set(names)
                and all(alive.get(node) == incarnation for node, incarnation, _ in slots)
            )

        await within(PATIENCE_S, f"{SLOTS} slots are spread over {', '.join(names)}", true)

    def effects(self, what: str) -> list[str]:
        """The keys of the ledger's lines of one sort, as often as each was done."""
        if not self.ledger.exists():
            return []
        lines = (line.partition(" ") for line in self.ledger.read_text().splitlines())
        return [key for kind, _, key in lines if kind == what]


def client(seconds: float) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(timeout=seconds, trust_env=False)
