"""Every name that the public API's paragraph on tests has is there, and each suite is a list of checks."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import onefold
from onefold import blocking, testing
from onefold.testing import HOST_SUITE, PORT_SUITE, STORE_SUITE, AwaitedApp, Check, DurableApp
from onefold.testing.points import POINTS

NAMES = "STORE_SUITE HOST_SUITE PORT_SUITE Check Durable Stuck every_crash module_laws open".split()
ON_AN_APP = "approve calls clock crash_at reject restart stub".split()
ON_A_CLOCK = "advance advance_to now".split()


def test_the_names_are_there() -> None:
    assert set(NAMES) <= set(testing.__all__)
    assert all(getattr(testing, name) is not None for name in testing.__all__)


@pytest.mark.parametrize("suite", [STORE_SUITE, HOST_SUITE, PORT_SUITE], ids=["store", "host", "port"])
def test_a_suite_is_a_list_of_checks(suite: Any) -> None:
    assert len(suite) > 10
    assert all(isinstance(check, Check) and inspect.iscoroutinefunction(check.run) for check in suite)
    assert len({check.name for check in suite}) == len(suite)


def test_both_apps_have_the_verbs_of_a_test() -> None:
    with testing.open() as app:
        for name in ON_AN_APP:
            assert hasattr(app, name)
            assert hasattr(app.awaited, name)
        for name in ON_A_CLOCK:
            assert hasattr(app.clock, name)
            assert hasattr(app.awaited.clock, name)


def test_the_verbs_of_both_are_equal_argument_by_argument() -> None:
    def told(kind: type, name: str) -> list[tuple[str, Any]]:
        parameters = inspect.signature(getattr(kind, name)).parameters.values()
        return [(p.name, p.default) for p in parameters]

    for name in ("stub", "calls", "approve", "reject", "restart", "crash", "crash_at", "settle"):
        assert told(DurableApp, name) == told(AwaitedApp, name), name


def test_every_verb_of_the_app_is_on_the_app_under_test() -> None:
    public = {name for name in vars(onefold.App) if not name.startswith("_")}
    assert public <= set(dir(AwaitedApp))
    assert issubclass(DurableApp, blocking.App)
    assert issubclass(AwaitedApp, onefold.App)


def test_the_failpoints_are_those_of_the_api() -> None:
    said = "step-started step-returned before-commit after-commit before-send after-send before-reply"
    assert set(POINTS) == set(said.split())
