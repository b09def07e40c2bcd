"""An app on a socket: where it listens is what its links name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from onefold.cli.stage import Staged, bound, fit_to_serve, stage
from onefold.host.caller import ALL, Caller
from onefold.host.config import settle
from onefold.kernel.twice import Impure
from onefold.terms.errors import LoadRefused


def staged(**flags: Any) -> Staged:
    return Staged((), settle(flags=flags), "shop")


def test_a_free_port_is_named_in_links() -> None:
    with bound(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        config = staged(listen="127.0.0.1:0").on(listening).config
        assert (config.listen, config.public_url) == (("127.0.0.1", port), f"http://127.0.0.1:{port}")


def test_a_public_address_stays_as_it_was_said() -> None:
    with bound(("127.0.0.1", 0)) as listening:
        said = staged(listen="127.0.0.1:0", public_url="https://tools.example.com").on(listening)
        assert said.config.public_url == "https://tools.example.com"


def test_an_address_that_is_taken_is_refused_in_words() -> None:
    with (
        bound(("127.0.0.1", 0)) as listening,
        pytest.raises(LoadRefused, match=r"Address already in use\. Choose another with --listen"),
    ):
        bound(listening.getsockname()[:2])


def test_nobody_listens_beyond_this_machine_without_keys() -> None:
    with pytest.raises(LoadRefused, match="anybody could call"):
        fit_to_serve(settle(flags={"listen": "0.0.0.0:8600"}))
    keys = [{"secret_env": "AGENT_KEY", "may": ["call"]}]
    fit_to_serve(settle(flags={"listen": "0.0.0.0:8600", "keys": keys}, environ={"AGENT_KEY": "k" * 32}))


def test_a_secret_that_is_missing_or_short_is_refused_before_anything_opens() -> None:
    keys = [{"secret_env": "SHOP_KEY", "may": ["call"]}]
    for environ, why in (({}, "is not set"), ({"SHOP_KEY": "short"}, "is shorter than 16 bytes")):
        with pytest.raises(LoadRefused, match=f"SHOP_KEY: this variable holds the secret of key 1 of `keys` and {why}"):
            fit_to_serve(settle(flags={"keys": keys}, environ=environ))


MOODY = """
import itertools
from dataclasses import dataclass

import onefold
from onefold import Decision, Module

ticks = itertools.count()


@dataclass(frozen=True)
class Knock:
    id: str


@dataclass(frozen=True)
class Knocked:
    tick: int


def decide(state: int, event: Knock, now) -> Decision[Knocked, int]:
    return Decision(facts=[Knocked(next(ticks))], reply=state)


def evolve(state: int, fact: Knocked) -> int:
    return state + 1


def view(state: int) -> int:
    return state


door = Module("door", initial=0, key=lambda event: "front", decide=decide, evolve=evolve, view=view)
app = onefold.App(door, store="memory:")
"""


@pytest.mark.parametrize("dev", [True, False])
async def test_only_dev_decides_twice_and_says_what_differed(tmp_path: Path, dev: bool) -> None:
    (tmp_path / "door.py").write_text(MOODY)
    app = stage("door.py", {}, tmp_path, dev=dev)
    caller = Caller(None, ALL)
    async with app.opened(lambda text: None) as host:
        knock = b'{"type": "Knock", "id": "1"}'
        if not dev:
            assert (await host.deliver_raw("door", knock, caller=caller)).reply == b"0"
            return
        with pytest.raises(Impure) as told:
            await host.deliver_raw("door", knock, caller=caller)
        assert (told.value.module, told.value.function, told.value.code) == ("door", "decide", "impure")
        assert "facts[0].tick was 0, then 1" in str(told.value)
        assert await host.read_json("door", "front", caller=caller) == {"key": "front", "view": 0}
