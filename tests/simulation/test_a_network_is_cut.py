"""A node on a network of its own, whose packets are really lost: from the database and from the other node at once."""

from __future__ import annotations

import asyncio
import os
import secrets
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.simulation.cables import Cable, database
from tests.simulation.fleet_callers import KEYS, Load
from tests.simulation.fleets import TAKEN_OVER_S, Fleet, within

pytestmark = pytest.mark.needs_root
KEY = {"ONEFOLD_KEYS": '[{ secret_env = "ITS_KEY", may = ["call"] }]', "ITS_KEY": "a key of this test alone"}


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


class Network:
    """A namespace with one link to this machine. `here` and `there`: the addresses of its ends."""

    def __init__(self, name: str, number: int) -> None:
        self.name = name
        self.here, self.there = f"10.213.{number}.1", f"10.213.{number}.2"
        self._link = f"{name}h"

    def cut(self) -> None:
        """Packets are lost from now on, both ways, and nobody is told."""
        ip("link", "set", self._link, "down")

    def mend(self) -> None:
        ip("link", "set", self._link, "up")


@contextmanager
def network() -> Iterator[Network]:
    made = Network(f"of{secrets.token_hex(3)}", os.getpid() % 250)
    ip("netns", "add", made.name)
    try:
        ip("link", "add", f"{made.name}h", "type", "veth", "peer", "name", "far", "netns", made.name)
        ip("addr", "add", f"{made.here}/30", "dev", f"{made.name}h")
        ip("-n", made.name, "addr", "add", f"{made.there}/30", "dev", "far")
        ip("-n", made.name, "link", "set", "far", "up")
        ip("-n", made.name, "link", "set", "lo", "up")
        made.mend()
        yield made
    finally:
        ip("netns", "del", made.name)  # the link goes with it


@pytest.mark.timeout(180)
async def test_a_node_whose_network_is_gone_is_replaced_and_comes_back_in_a_new_life(
    postgres: str, tmp_path: Path
) -> None:
    to, url = database(postgres)
    with network() as net:
        async with Fleet(postgres, tmp_path) as fleet, Cable(to, net.here) as cable:
            near = await fleet.node("b")
            store = url.format(port=cable.port).replace("127.0.0.1", net.here)
            await fleet.node("a", store=store, at=net.there, environ={"ITS_NETWORK": net.name, **KEY})
            await fleet.settled("ab")
            fleet.watch()
            load = Load(fleet, 0, lambda: [near.url])
            async with load:
                await load.some(60)
                key = (await fleet.cells_of("a", KEYS))[0]
                before, _ = (await fleet.lives())["a"]
                net.cut()
                async with asyncio.timeout(TAKEN_OVER_S):
                    assert await load.turn(key, "count", "after", [near.url])
                await load.some(30)
                net.mend()

                async def back() -> bool:
                    incarnation, state = (await fleet.lives())["a"]
                    return incarnation > before and state == "live"

                await within(3 * TAKEN_OVER_S, "it is back, in a new life", back)
                await fleet.settled("ab")
                await load.some(30)
            assert await load.judge() == []
