"""host.deploy_verbs - the verbs of deployed files, each of which asks for the right `deploy`.

For: one place where the right is asked for before anything is read.
Never: shows the text of a file.
Was wrong once: a list for whoever may read. It named the tools of files that were not theirs to know of yet.
"""

from __future__ import annotations

from typing import Final

from onefold.host.caller import Caller
from onefold.host.deployed import Version
from onefold.host.deploying import LISTED, Deploying
from onefold.terms.errors import NotFound

VERSIONS: Final = 1_000
"""Versions of a file that are listed, the newest first."""


class DeployVerbs:
    """The verbs. `_deploying`: the app's."""

    _deploying: Deploying

    async def deployed_list(self, *, caller: Caller) -> list[Version]:
        """The newest version of each file."""
        caller.need("deploy", "Looking at what is deployed")
        return await self._deploying.listed()

    async def deployed_versions(self, file: str, *, caller: Caller) -> list[Version]:
        """The versions of one file, newest first. Raises: NotFound."""
        caller.need("deploy", "Looking at what is deployed")
        found = await self._deploying.versions(file)
        if not found:
            raise NotFound("deployed file", file, LISTED)
        return found[:VERSIONS]

    async def deploy(self, file: str, source: str, *, caller: Caller) -> tuple[Version, bool]:
        """Deploy a file, of one name for all its versions; its version, and whether that is new: the same text again is
        the same version. Raises: Forbidden, LoadRefused, TooLarge, Contended, OutcomeUnknown: the same again is safe.
        """
        caller.need("deploy", "Deploying a file")
        return await self._deploying.deploy(file, source, caller)

    async def deployed_remove(self, file: str, *, caller: Caller) -> tuple[Version, bool]:
        """Take a file away. False: it is. A rollback brings it back. Raises: as deploy; NotFound."""
        caller.need("deploy", "Removing a deployed file")
        return await self._deploying.remove(file, caller)

    async def rollback(self, file: str, version: int, *, caller: Caller) -> tuple[Version, bool]:
        """Make an earlier version the newest again. False: it is. Raises: as deploy; NotFound."""
        caller.need("deploy", "Rolling back a deployed file")
        return await self._deploying.rollback(file, version, caller)
