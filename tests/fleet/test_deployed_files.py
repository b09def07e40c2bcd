"""What is deployed through one node is every node's: numbered once, and no run goes on with an older version."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from onefold import App, Run, actuator
from onefold.host.host import Host
from onefold.terms.errors import LoadRefused
from onefold.terms.ids import ActorId, run_id
from tests.contracts.backends import store_of
from tests.fleet.served import SECRET, node, nodes, shared_out, standing
from tests.host.deployable import source, stands_in

__all__ = ["stands_in"]
pytestmark = pytest.mark.usefixtures("stands_in")
PATIENCE_S = 30.0


@actuator
async def trusted(run: Run) -> str:
    """The app's own."""
    return "own"


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("ONEFOLD_SECRET", SECRET)
    return store_of("postgres", tmp_path)


@pytest.fixture
async def pair(store: str) -> AsyncIterator[list[App]]:
    async with nodes(store, trusted) as apps:
        yield apps


async def until(so: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not so():  # noqa: ASYNC110 - what is waited for has no event of its own
            await asyncio.sleep(0.005)


def has(app: App, tool: str = "keep") -> bool:
    return tool in app.host.catalog.actuators


def key_owned_by(app: App) -> str:
    """A key of a run that this node owns."""
    held = standing(app)
    for n in range(10_000):
        owner = held.node_of(ActorId("keep", None, run_id(None, "keep", f"k{n}")))
        if owner is not None and owner.name == held.me.name:
            return f"k{n}"
    raise AssertionError("this node owns nothing")


async def called(host: Host, said: str, key: str, app: App) -> dict[str, Any]:
    started = await host.start("keep", {"said": said}, key=key, caller=app.caller, wait_ms=20_000)
    return started.receipt.to_json()


def deaf(app: App) -> None:
    """This node hears nothing of what others deploy."""
    app.host._deploying.look = lambda: None  # type: ignore[method-assign]
    app.host._core.nudged.remove(
        next(one for one in app.host._core.nudged if getattr(one, "__self__", None) is app.host._deploying)
    )


async def test_another_node_has_it_and_so_has_one_that_joins(pair: list[App], store: str) -> None:
    a, b = pair
    await a.host.deploy("notes", source(), caller=a.caller)
    await until(lambda: has(b))
    for n, app in enumerate(pair):
        told = await called(app.host, "x", key_owned_by(b), app)
        assert (told["status"], told["result"]) == ("done", "first 1"), n
    async with node(store, trusted, name="c") as c:
        await shared_out([*pair, c])
        assert has(c)
        assert (await called(c.host, "x", key_owned_by(c), c))["result"] == "first 2"
        await c.host.deploy("notes", source("other"), caller=c.caller)
        listed = await a.host.deployed_list(caller=a.caller)
        assert [(one.version, one.generation) for one in listed] == [(2, 2)]


async def resting_and_redeployed(pair: list[App]) -> dict[str, Any]:
    """A run of b's waits; a newer version comes through a, of which b hears nothing; the run goes on."""
    a, b = pair
    await a.host.deploy("notes", source(), caller=a.caller)
    await until(lambda: has(b))
    deaf(b)
    waiting = await called(b.host, "ask", key_owned_by(b), b)
    assert waiting["status"] == "waiting"
    await a.host.deploy("notes", source("other"), caller=a.caller)
    await b.host.approvals_decide(waiting["run_id"], "manager", approve=True, by="ann", caller=b.caller)
    return (await b.host.receipt(waiting["run_id"], wait_ms=20_000, caller=b.caller)).to_json()


async def test_no_run_goes_on_with_an_older_version_than_the_newest(pair: list[App]) -> None:
    assert (await resting_and_redeployed(pair))["result"] == "other 1"


async def test_a_twin_that_does_not_look_before_a_pass_is_caught(
    pair: list[App], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def nothing(at: ActorId) -> None:
        """Goes on with what it has."""

    pair[1].host._core.newest = nothing
    assert (await resting_and_redeployed(pair))["result"] == "first 1"


async def test_two_nodes_number_one_after_another_and_never_share_a_name(pair: list[App]) -> None:
    a, b = pair
    deaf(a)
    deaf(b)
    told = await asyncio.gather(
        *(pair[n % 2].host.deploy("notes", source(f"m{n}"), caller=a.caller) for n in range(6)),
        *(pair[n % 2].host.deploy(f"file_{n}", source(name=f"tool_{n}"), caller=a.caller) for n in range(2)),
        *(app.host.deploy(file, source(name="same"), caller=a.caller) for file, app in zip("xy", pair, strict=True)),
        return_exceptions=True,
    )
    counted = [one[0] for one in told if isinstance(one, tuple)]
    refusals = [one for one in told if not isinstance(one, tuple)]
    assert len(refusals) == 1, refusals
    (refused,) = refusals
    assert isinstance(refused, LoadRefused)
    assert sorted(one.generation for one in counted) == list(range(1, 10))
    assert sorted(one.version for one in counted if one.file == "notes") == [1, 2, 3, 4, 5, 6]
    for app in pair:
        listed = await app.host.deployed_list(caller=app.caller)
        assert (len(listed), max(one.generation for one in listed)) == (4, 9)
        assert has(app, "same")


async def test_a_run_that_falls_to_a_node_that_has_not_heard_of_its_tool_is_taken_once_it_has(pair: list[App]) -> None:
    a, b = pair
    deaf(b)
    await a.host.deploy("notes", source(), caller=a.caller)
    assert not has(b)
    calling = asyncio.create_task(called(a.host, "x", key_owned_by(b), a))
    await asyncio.wait([calling], timeout=0.5)
    assert not calling.done()
    await b.host._deploying._take_up()
    assert (await asyncio.wait_for(calling, PATIENCE_S))["result"] == "first 1"
