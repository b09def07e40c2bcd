"""host.deploying - files deployed over HTTP: judged, numbered, taken up by every node, and rolled back.

For: `Deploying`, the versions that this process holds, newest of each file, and how one comes to count.
Never: runs a line of such a file in this process; counts a version that was judged against another set than the one it
joins; makes a pass with an older version than the newest.
Was wrong once: a version counted before its file was loaded. It was the newest, and no call of it could be answered.

A deployed file is the host's, whoever deployed it: anybody with `call` calls its tools, under their own principal.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from onefold.host.caller import Caller
from onefold.host.core import MAIN, Core
from onefold.host.deployable import checked, file_of, named, sized
from onefold.host.deployed import (
    Text,
    Version,
    digest_of,
    newer_than,
    numbering,
    read_text,
    text_of,
    versions_of,
)
from onefold.host.live import Happening, Live
from onefold.host.offering import AnyActuator, Offering
from onefold.host.rounds import Round
from onefold.store.contract import Done, Refused
from onefold.terms.errors import (
    Busy,
    Contended,
    Finding,
    LoadRefused,
    NotFound,
    OnefoldError,
    OutcomeUnknown,
    TooLarge,
)
from onefold.terms.ids import ActorId
from onefold.terms.instant import moment

if TYPE_CHECKING:
    from onefold.ports.sandbox import Deployment

DESCRIBED_LIMIT: Final = 256 * 1024
FILES: Final = 100
"""Deployed files of one host: each may keep a process of its own warm."""
AGAIN: Final = 8
"""How often a version is judged anew because another was numbered meanwhile."""
IN_LINE: Final = 16
"""Deployments that wait for the one before them; further ones are refused as Busy."""
GRACE_S: Final = 10.0
LISTED: Final = "The files are listed at /deployed, the versions of one at /deployed/{file}."
log = logging.getLogger("onefold.deployed")


class Held:
    """The newest version of one file, as this process has it. deployment: None where it could not be read."""

    def __init__(self, version: Version, deployment: Deployment | None) -> None:
        self.version = version
        self.deployment = deployment
        self.actuators: tuple[AnyActuator, ...] = () if deployment is None else deployment.actuators


class Deploying:
    """Of one host, opened with it."""

    def __init__(self, core: Core, offering: Offering, live: Live) -> None:
        self._core = core
        self._offering = offering
        self._live = live
        self._held: dict[str, Held] = {}
        self._generation = 0
        self._doubtful = False  # whether a commit of this process may have numbered a version that it does not know
        self._taking_up = asyncio.Lock()
        self._one = asyncio.Lock()
        self._catching_up = Round("onefold newer deployments", self._catch_up)
        self._leaving: dict[asyncio.Task[None], Deployment] = {}
        self._waiting = 0
        core.newest = self._newest

    # --- opening and closing ------------------------------------------------------------------

    async def open(self) -> None:
        """Take up what was deployed. Raises: LoadRefused where the app's own code has a name that a deployed file has."""
        core = self._core
        core.nudged.append(self.look)
        core.closing.append(self._catching_up.stop)
        core.last.append(self.close)
        core.beside_idle.append(lambda: self._catching_up.idle)
        await self._take_up()
        if self._held and (why := await self.problem()) is not None:
            log.warning("deployed files are offered, and none of their runs can go on: %s", why)

    async def close(self) -> None:
        """End the workers: nothing is on its way any more."""
        held, self._held = self._held, {}
        warm = [*(one.deployment for one in held.values() if one.deployment is not None), *self._leaving.values()]
        await asyncio.gather(*(one.aclose() for one in warm))
        await asyncio.gather(*self._leaving, return_exceptions=True)

    def beat(self) -> bool:
        """The slow beat of a fleet: another node may have deployed, and its word may be lost."""
        if self._core.standing is not None:
            self.look()
        return False

    def look(self) -> None:
        """Another node may have deployed something."""
        self._catching_up.begin()

    async def _catch_up(self) -> bool:
        try:
            await self._take_up()
        except OnefoldError as fault:
            log.warning("what was deployed through another node could not be taken up: %s", fault)
        return False

    @property
    def _apart(self) -> bool:
        """Whether this is a fleet on a shared folder: who has an actuator's file is decided when a node joins."""
        return self._core.standing is not None and self._core.config.folder is not None

    async def problem(self) -> str | None:
        """Why no file can be deployed to this host; None where one can."""
        if self._apart:
            return "a fleet on a shared folder takes none: put the store on Postgres, or let one process have it"
        from onefold.ports import sandbox

        return await asyncio.to_thread(sandbox.problem)

    # --- what is held -------------------------------------------------------------------------

    async def _newest(self, at: ActorId) -> None:
        """Before a pass: of a fleet, another node may have replayed this very run with a newer version."""
        deployed = any(at.kind in one.version.tools for one in self._held.values())
        if deployed and (self._doubtful or self._core.standing is not None):
            await self._take_up()

    async def _take_up(self) -> None:
        """Hold the newest version of each file. Raises: StoreUnavailable; LoadRefused for a name that is taken here."""
        async with self._taking_up:
            space = await self._core.space(MAIN)
            (rows,) = await space.look(newer_than(self._generation))
            if rows and self._apart:
                self._generation = Version.of(rows[-1]).generation
                log.warning("this store has deployed files, which a fleet on a shared folder does not offer: they wait")
                return
            newest = {version.file: version for version in map(Version.of, rows)}
            came: dict[str, Held] = {}
            for file, version in newest.items():
                if file not in self._held or self._held[file].version != version:
                    (texts,) = await space.look(text_of(version))
                    came[file] = self._read_again(version, read_text(texts))
            self._hold(came)
            if rows:
                self._generation = Version.of(rows[-1]).generation
            self._doubtful = False

    def _read_again(self, version: Version, text: Text | None) -> Held:
        """A version as it was numbered. One that cannot be read is told, and stands in nobody's way."""
        from onefold.ports import sandbox

        deployment = None
        try:
            if text is not None:
                found = sandbox.Described.read(text.described)
                deployment = sandbox.Deployment(text.source, file_of(version.file), found, self._environment())
            elif not version.is_removal:
                raise LoadRefused([Finding(file_of(version.file), "its text is gone; deploy it again")])
        except LoadRefused as unread:
            log.error("version %d of %s is not offered: %s", version.version, version.file, unread)
        return Held(version, deployment)

    def _hold(self, came: Mapping[str, Held]) -> None:
        """All that came, in one go. Raises: LoadRefused for a name that is taken here.

        Was wrong once: file by file. A tool that had moved from one to another stood in both for a moment, and this node
        refused the newest for good.
        """
        if not came:
            return
        self._judge({file: held.actuators for file, held in came.items()})
        before = [self._held[file] for file in came if file in self._held]
        here = [one for held in came.values() for one in held.actuators]
        names = {one.name for one in here}
        away = [one.name for held in before for one in held.actuators if one.name not in names]
        self._held.update(came)
        self._offering.change(away, here)
        for deployment in [held.deployment for held in before if held.deployment is not None]:
            leaving = asyncio.get_running_loop().create_task(deployment.aclose(GRACE_S))
            self._leaving[leaving] = deployment
            leaving.add_done_callback(self._leaving.pop)

    def _environment(self) -> dict[str, str]:
        """What the settings offer to deployed files, of what is set."""
        config = self._core.config
        return {name: config.environ[name] for name in config.deployed.environment if name in config.environ}

    # --- judging ------------------------------------------------------------------------------

    def _judge(self, came: Mapping[str, Sequence[AnyActuator]]) -> None:
        """Whether these may stand beside all else. Raises: LoadRefused for a name that something else of this app has."""
        held = {file: one.actuators for file, one in self._held.items()}
        deployed = {one.name for actuators in held.values() for one in actuators}
        in_files: dict[str, list[str]] = {}
        for file, actuators in {**held, **came}.items():
            for one in actuators:
                in_files.setdefault(one.name, []).append(file)
        taken = self._offering.taken()
        findings = []
        for file, actuators in came.items():
            for one in actuators:
                others = [f"the deployed file {other}" for other in in_files[one.name] if other != file]
                where = others[0] if others else None if one.name in deployed else taken(one.name)
                if where is not None:
                    told = f"stands in {where} too; give one of them another name"
                    findings.append(Finding(f"{file_of(file)}: actuator {one.name}", told))
        if findings:
            raise LoadRefused(findings)

    def _lacking(self, file: str, variables: Collection[str]) -> None:
        """Raises: LoadRefused for a variable that this host does not offer."""
        offered = self._environment()
        told = "is not offered to deployed files here; add it to `deployed.environment` of onefold.toml, and set it"
        if findings := [
            Finding(f"{file_of(file)}: env:{one}", told) for one in sorted(variables) if one not in offered
        ]:
            raise LoadRefused(findings)

    async def _read(self, file: str, source: str) -> tuple[Text, Deployment]:
        """What the file holds, by a worker that loads it. Raises: LoadRefused, TooLarge."""
        from onefold.ports import sandbox

        found = await sandbox.describe(source, file_of(file), self._environment())
        self._lacking(file, found.variables)
        written = found.written()
        if len(written) > DESCRIBED_LIMIT:
            raise TooLarge(f"what {file_of(file)} says of its actuators", len(written), DESCRIBED_LIMIT)
        return Text(source, written), sandbox.Deployment(source, file_of(file), found, self._environment())

    # --- numbering ----------------------------------------------------------------------------

    async def deploy(self, file: str, source: str, caller: Caller) -> tuple[Version, bool]:
        """Make this the newest version of the file; with it, whether it is a new one. Raises: LoadRefused, TooLarge."""
        named(file)
        sized(file, source)
        if (why := await self.problem()) is not None:
            raise LoadRefused([Finding(file_of(file), why)])
        await asyncio.to_thread(checked, file, source)
        async with self._turn():
            await self._take_up()
            held = self._held.get(file)
            if held is not None and held.deployment is not None and held.version.digest == digest_of(source):
                return held.version, False
            if (held is None or held.version.is_removal) and len(await self.listed()) >= FILES:
                told = f"would be one more than the {FILES} deployed files that a host takes; remove another first"
                raise LoadRefused([Finding(file_of(file), told)])
            return await self._numbered(file, source, None, caller), True

    async def remove(self, file: str, caller: Caller) -> tuple[Version, bool]:
        """Take a file away, by a version that says so. Its databases stay, its runs wait. Raises: NotFound."""
        async with self._turn():
            await self._take_up()
            for _ in range(AGAIN):
                before = await self.versions(file)
                if not before:
                    raise NotFound("deployed file", file, LISTED)
                if before[0].is_removal:
                    return before[0], False
                version = await self._next(file, "", (), None, caller)
                if await self._commit(version, None):
                    await self._told(version)
                    return version, True
                await self._take_up()
        raise Contended(f"the versions of {file}")

    async def rollback(self, file: str, to: int, caller: Caller) -> tuple[Version, bool]:
        """Make an earlier version the newest again, under a number of its own. Raises: LoadRefused, NotFound."""
        named(file)
        if (why := await self.problem()) is not None:
            raise LoadRefused([Finding(file_of(file), why)])
        async with self._turn():
            await self._take_up()
            wanted = next((one for one in await self.versions(file) if one.version == to), None)
            if wanted is None:
                raise NotFound(f"version of {file}", str(to), LISTED)
            held = self._held[file]
            if held.version.digest == wanted.digest:
                return held.version, False
            (texts,) = await (await self._core.space(MAIN)).look(text_of(wanted))
            text = read_text(texts)
            if text is None:
                raise NotFound(
                    f"text of {file}", str(to), "Deploy the file itself, or remove it where that version did."
                )
            return await self._numbered(file, text.source, to, caller), True

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        """One after another, and not too many in line. Raises: Busy."""
        if self._waiting >= IN_LINE:
            raise Busy("deploying", IN_LINE)
        self._waiting += 1
        try:
            async with self._one:
                yield
        finally:
            self._waiting -= 1

    async def _numbered(self, file: str, source: str, back_to: int | None, caller: Caller) -> Version:
        text, deployment = await self._read(file, source)
        actuators, names = deployment.actuators, tuple(one.name for one in deployment.actuators)
        for _ in range(AGAIN):
            self._judge({file: actuators})
            for one in actuators:
                await self._offering.tried(one)
                await self._offering.migrate(one)
            version = await self._next(file, digest_of(source), names, back_to, caller)
            if await self._commit(version, text):
                await self._told(version)
                return version
            await self._take_up()  # another was numbered since: its names are judged against too
        raise Contended(f"the versions of {file}")

    async def _next(
        self, file: str, digest: str, tools: tuple[str, ...], back_to: int | None, caller: Caller
    ) -> Version:
        """The version behind all that this process holds."""
        before = await self.versions(file)
        number, now = 1 + (before[0].version if before else 0), self._core.clock.now()
        return Version(self._generation + 1, file, number, digest, tools, back_to, caller.principal, caller.name, now)

    async def _commit(self, version: Version, text: Text | None) -> bool:
        self._doubtful = True
        self._core.point("before-deploy")
        outcome = await (await self._core.space(MAIN)).transact(numbering(version, text))
        self._core.point("after-deploy")
        if isinstance(outcome, Done):
            return outcome.value
        if isinstance(outcome, Refused):
            raise outcome.error
        raise OutcomeUnknown(f"version {version.version} of {version.file}")

    async def _told(self, version: Version) -> None:
        """It counts: take it up here, tell the others, and leave a line."""
        back = "" if version.back_to is None else f" (version {version.back_to} again)"
        tools = "taken away" if version.is_removal else ", ".join(version.tools)
        what = f"version {version.version} of {version.file}{back}, generation {version.generation}: {tools}"
        log.warning("%r deployed %s", version.by, what)
        await self._take_up()
        if self._core.router is not None:
            self._core.router.tell_all()
        if self._live.watched:
            self._live.tell(Happening(moment(self._core.clock.now()), "Deployed", None, None, f"deployed {what}"))

    async def versions(self, file: str) -> list[Version]:
        """Every version of a file, newest first."""
        (rows,) = await (await self._core.space(MAIN)).look(versions_of(file))
        return [Version.of(row) for row in rows]

    async def listed(self) -> list[Version]:
        """The newest version of each file, by name."""
        await self._take_up()
        held = [self._held[name].version for name in sorted(self._held)]
        return [version for version in held if not version.is_removal]
