"""testing.plugin - the fixture `durable`, for pytest.

For: `def test_x(durable): app = durable(refund_order)`. Loaded by pytest itself, through the entry point `pytest11`.
Never: needs a plugin for coroutines: the app blocks; loads the engine before a test asks for it.
Was wrong once: what a test left unsettled reported after its own failure, on top of it. The second report hid the first.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from onefold.testing.opening import Durable

failed = pytest.StashKey[BaseException]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Remember what a test failed with, for the fixture's end."""
    report = yield
    if call.excinfo is not None and call.when == "call":
        item.stash[failed] = call.excinfo.value
    return report


@pytest.fixture
def durable(request: pytest.FixtureRequest) -> Iterator[Durable]:
    """Opens apps under test; they are closed after it. Raises, then: Unsettled for what a passed test left behind."""
    from onefold.testing.opening import open as opened

    with ExitStack() as stack:

        def make(*parts: Any, **options: Any) -> Any:
            opening = opened(*parts, **options)
            app = opening.__enter__()

            def leave() -> None:
                fault = request.node.stash.get(failed, None)
                opening.__exit__(None if fault is None else type(fault), fault, None)

            stack.callback(leave)
            return app

        yield make
