"""Sound ports keep every promise, and each check falls over a twin that breaks it."""

from __future__ import annotations

import pytest

from onefold.testing import PORT_SUITE, PortUnderTest
from onefold.testing.broken.ports import BROKEN_PORTS, SOUND_PORTS, Payment, Provider, Twin
from onefold.testing.port_suite import Check

BY_NAME = {check.name: check for check in PORT_SUITE}


def under_test(twin: Twin) -> PortUnderTest:
    provider = Provider()
    return PortUnderTest(twin.make(provider), Payment(5), Payment(6), effects=lambda: provider.acts)


@pytest.mark.parametrize("check", PORT_SUITE, ids=lambda check: check.name)
@pytest.mark.parametrize("sound", SOUND_PORTS, ids=lambda twin: twin.name)
async def test_a_sound_port_keeps_its_promise(sound: Twin, check: Check) -> None:
    await check.run(under_test(sound))


@pytest.mark.parametrize("twin", BROKEN_PORTS, ids=lambda twin: twin.name)
async def test_a_broken_port_is_caught(twin: Twin) -> None:
    assert twin.caught_by
    for name in twin.caught_by:
        with pytest.raises(AssertionError):
            await BY_NAME[name].run(under_test(twin))


def test_every_check_has_teeth() -> None:
    caught = {name for twin in BROKEN_PORTS for name in twin.caught_by}
    assert caught == set(BY_NAME)
    assert len(BY_NAME) == len(PORT_SUITE)


def test_every_kind_of_port_has_checks_of_its_own() -> None:
    every = BY_NAME["one call is one effect"].promises
    for promise in every:
        assert [check for check in PORT_SUITE if check.promises != every and promise in check.promises]
