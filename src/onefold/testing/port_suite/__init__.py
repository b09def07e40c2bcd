"""testing.port_suite - what a port promises by its kind, as checks that any port can run.

For: `PORT_SUITE`, over a `PortUnderTest`: the port, two bodies and a count of its effects.
Never: a provider; a network of its own.
Was wrong once: a port believed by its decorator. `@port.dedupes` is a promise about somebody else's server.

    @pytest.mark.parametrize("check", PORT_SUITE, ids=lambda check: check.name)
    async def test_transfer(check):
        await check.run(PortUnderTest(lambda: transfer, Transfer(5), Transfer(6), effects=sandbox.count))
"""

from __future__ import annotations

from onefold.testing.port_suite import calling, hosted
from onefold.testing.port_suite.ground import Check, PortUnderTest, Unfulfilled

PORT_SUITE: tuple[Check, ...] = (*calling.CHECKS, *hosted.CHECKS)

__all__ = ["PORT_SUITE", "Check", "PortUnderTest", "Unfulfilled"]
