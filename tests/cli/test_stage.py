"""An app on a socket: where it listens is what its links name."""

from __future__ import annotations

from typing import Any

import pytest

from onefold.cli.stage import Staged, bound, fit_to_serve
from onefold.host.config import settle
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
    with bound(("127.0.0.1", 0)) as listening, pytest.raises(LoadRefused, match="Address already in use"):
        bound(listening.getsockname()[:2])


def test_nobody_listens_beyond_this_machine_without_keys() -> None:
    with pytest.raises(LoadRefused, match="anybody could call"):
        fit_to_serve(settle(flags={"listen": "0.0.0.0:8600"}))
    keys = [{"secret_env": "AGENT_KEY", "may": ["call"]}]
    fit_to_serve(settle(flags={"listen": "0.0.0.0:8600", "keys": keys}, environ={"AGENT_KEY": "k" * 32}))
