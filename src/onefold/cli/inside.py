"""cli.inside - an app opened in the command's own process, spoken to like any other.

For: commands that found no app at the address: the same routes, without a socket.
Never: lets anybody in but this command; gives it `deploy`.
Was wrong once: the command as a caller without a key. An app with keys then refused its own operator,
who holds the files.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from onefold.cli.stage import stage
from onefold.host.caller import Caller
from onefold.serve import Front, asgi_app
from onefold.serve.access import Access, named
from onefold.serve.bodies import headers_of


class Inside(Access):
    """Access for requests that never left this process: all of them are the command's."""

    def __init__(self, outside: Access, caller: Caller) -> None:
        self.__dict__.update(vars(outside))
        self._command = caller

    def caller(self, scope: Any, host: bytes) -> Caller:
        return named(self._command, headers_of(scope))


@contextlib.asynccontextmanager
async def opened_here(target: str, start: Path, principal: str | None) -> AsyncIterator[Front]:
    """The ASGI application of a target, for whoever may read its store; they act as `principal`.

    Raises: as `stage`, and what opening the store raises: StoreLocked when an app holds it that did
    not answer.
    """
    staged = stage(target, {}, start)
    caller = Caller(principal, frozenset(("call", "read", "operate")), principal or "the command line")
    async with staged.opened() as host:
        front = asgi_app(host)
        front.access = Inside(front.access, caller)
        try:
            yield front
        finally:
            await front.aclose()
