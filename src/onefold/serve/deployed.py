"""serve.deployed - files deployed over HTTP: sent, rolled back, taken away, listed.

For: /deployed and below, for whoever may `deploy`.
Never: gives the text of a file back; reads a file from anywhere but the body.
Was wrong once: a rollback to "the one before" alone. It was sent again after a lost answer, and rolled back twice.
"""

from __future__ import annotations

from typing import Any, Final

from onefold.serve import bodies
from onefold.serve.door import Host
from onefold.serve.door_deployed import Version
from onefold.serve.routes import Answer, Ask, Route, answer, page_of
from onefold.terms.errors import BadArguments, Fault
from onefold.terms.instant import text

DEPLOY: Final = frozenset({"deploy"})
MOST_VERSION: Final = 2**53


class Deployed:
    """The routes of deployed files."""

    def __init__(self, host: Host) -> None:
        self.host = host

    def routes(self) -> list[Route]:
        return [
            Route("GET", "/deployed", self.list, DEPLOY),
            Route("GET", "/deployed/{file}", self.versions, DEPLOY),
            Route("PUT", "/deployed/{file}", self.deploy, DEPLOY),
            Route("DELETE", "/deployed/{file}", self.remove, DEPLOY),
            Route("POST", "/deployed/{file}/rollback", self.rollback, DEPLOY),
        ]

    async def list(self, ask: Ask) -> Answer:
        """The newest version of each file."""
        rows, more = page_of(ask, await self.host.deployed_list(caller=ask.caller))
        return answer({"items": [shown(one) for one in rows], "next": more})

    async def versions(self, ask: Ask) -> Answer:
        """Those of one file, newest first."""
        rows, more = page_of(ask, await self.host.deployed_versions(ask.params["file"], caller=ask.caller))
        return answer({"items": [shown(one) for one in rows], "next": more})

    async def deploy(self, ask: Ask) -> Answer:
        """The same text again is the same version."""
        ask.queries()
        body = bodies.object_of(await bodies.read(ask.scope, ask.receive), ("source",))
        source = bodies.text_in(body, "source")
        if source is None:
            raise BadArguments([Fault("source", "is needed: the text of the file")], nothing_was="deployed")
        return _given(await self.host.deploy(ask.params["file"], source, caller=ask.caller))

    async def remove(self, ask: Ask) -> Answer:
        """Its tools are none any more; a rollback brings them back."""
        ask.queries()
        bodies.object_of(await bodies.read(ask.scope, ask.receive), ())
        version, is_new = await self.host.deployed_remove(ask.params["file"], caller=ask.caller)
        return answer({"outcome": "removed" if is_new else "unchanged", **shown(version)})

    async def rollback(self, ask: Ask) -> Answer:
        """To a version by its number: sent again, it changes nothing more."""
        ask.queries()
        body = bodies.object_of(await bodies.read(ask.scope, ask.receive), ("version",))
        version = body.get("version")
        if not isinstance(version, int) or isinstance(version, bool) or not 1 <= version <= MOST_VERSION:
            raise BadArguments([Fault("version", "must be the number of a version", version)], nothing_was="changed")
        return _given(await self.host.rollback(ask.params["file"], version, caller=ask.caller))


def _given(told: tuple[Version, bool]) -> Answer:
    version, is_new = told
    return answer({"outcome": "deployed" if is_new else "unchanged", **shown(version)})


def shown(one: Version) -> dict[str, Any]:
    told: dict[str, Any] = {
        "file": one.file,
        "version": one.version,
        "generation": one.generation,
        "tools": list(one.tools),
        "by": one.by,
        "at": text(one.at),
    }
    if one.digest:
        told["digest"] = one.digest
    if one.back_to is not None:
        told["back_to"] = one.back_to
    return told
