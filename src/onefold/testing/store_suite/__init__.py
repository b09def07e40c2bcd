"""testing.store_suite - what every store promises, as checks that any backend can run.

For: `STORE_SUITE`, named checks over a factory of worlds; a new backend is a test file of ten lines.
Never: knows a backend; looks behind the contract.
Was wrong once: the suite inside the tests. A store made elsewhere had none, and its first user found out.

    @pytest.mark.parametrize("check", STORE_SUITE, ids=lambda check: check.name)
    async def test_the_store(check, open_world):
        await check.run(open_world)

`open_world` is an `OpenWorld`, fresh for each check: every call makes a world over the same rows.
"""

from __future__ import annotations

from onefold.testing.store_suite import (
    author,
    author_tables,
    chain,
    commits,
    fence,
    keys,
    outcomes,
    queries,
    schema,
    verbs,
)
from onefold.testing.store_suite.ground import Check, OpenWorld, Unfulfilled

STORE_SUITE: tuple[Check, ...] = (
    *verbs.CHECKS,
    *queries.CHECKS,
    *keys.CHECKS,
    *commits.CHECKS,
    *outcomes.CHECKS,
    *fence.CHECKS,
    *schema.CHECKS,
    *chain.CHECKS,
    *author.CHECKS,
    *author_tables.CHECKS,
)

__all__ = ["STORE_SUITE", "Check", "OpenWorld", "Unfulfilled"]
