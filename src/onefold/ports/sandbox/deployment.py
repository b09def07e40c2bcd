"""ports.sandbox.deployment - one version of a deployed file: what it says of itself, and its warm worker.

For: `describe`, asked once when a file is deployed, and `Deployment`, its actuators as values that an app is made of.
Never: starts a worker before it is needed, or two of one version; runs a function of the file in this process.
Was wrong once: the file described by reading its text. What it computed at its top, an option or a name, was not there.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from onefold.actuators.carried import PassEnded
from onefold.actuators.declare import INPUT_LIMIT, Actuator
from onefold.actuators.executing import Actor
from onefold.ports.egress import Resolve, is_public, looked_up
from onefold.ports.sandbox import box
from onefold.ports.sandbox.described import Deployed, Described, judged
from onefold.ports.sandbox.gate import Gate, Public
from onefold.ports.sandbox.judging import Judge, Nonsense, fit
from onefold.ports.sandbox.words import Unready, Wrong
from onefold.ports.sandbox.worker import SILENCE_S, Worker
from onefold.terms.codec import Json
from onefold.terms.errors import BadArguments, Fault, Finding, LoadRefused, PortFailed
from onefold.terms.limits import MAX_BODY_BYTES, MAX_FAULTS

NAMED = re.compile(r"\benv:([A-Za-z_][A-Za-z0-9_]*)", re.ASCII)
SHOWN = 500  # characters of what a file says of itself when it is refused


async def describe(source: str, name: str, environment: Mapping[str, str] | None = None) -> Described:
    """What a file holds, read in a worker of its own that has no way out. Raises: LoadRefused, PortFailed.

    environment: the variables that the host offers. Those that the file's text names as `env:NAME` are there, for its
    top level; each of them it must declare.
    """
    if (why := await asyncio.to_thread(box.problem)) is not None:
        raise LoadRefused([Finding(name, why)])
    if len(source.encode()) > MAX_BODY_BYTES:
        raise LoadRefused([Finding(name, f"has more than {MAX_BODY_BYTES} bytes")])
    named = {one: told for one, told in (environment or {}).items() if one in NAMED.findall(source)}
    worker, opened = await Worker.started(source, name, environment=named)
    await worker.aclose()
    if isinstance(opened, Unready):
        raise LoadRefused(_findings(opened))
    found = judged(Described(opened.actuators))
    if undeclared := sorted(named.keys() - found.variables):
        raise LoadRefused([Finding(name, f"names env:{one} and no actuator of it declares that") for one in undeclared])
    return found


@dataclass(frozen=True, slots=True)
class Outside:
    """What a test has in the place of the internet. certificates: a file of those that are trusted in the box."""

    resolve: Resolve = looked_up
    public: Public = is_public
    certificates: str | None = None
    silence_s: float = SILENCE_S


class Deployment:
    """One version of one file. environment: the variables that the host offers; those that the file declares are seen."""

    def __init__(
        self,
        source: str,
        name: str,
        found: Described,
        environment: Mapping[str, str] | None = None,
        *,
        outside: Outside = Outside(),
    ) -> None:
        self.name = name
        self.described = found
        self._source = source
        self._environment = {one: told for one, told in (environment or {}).items() if one in found.variables}
        self._outside = outside
        self._worker: Worker | None = None
        self._starting = asyncio.Lock()
        self._closed = False
        self._own: Mapping[str, Actuator[Any, Any]] = {
            said.name: Deployed(said, self._passing, self._checking) for said in found.actuators
        }
        self._judge = Judge(self._own.keys(), found.origins)

    @property
    def actuators(self) -> tuple[Actuator[Any, Any], ...]:
        return tuple(self._own.values())

    @property
    def warm(self) -> bool:
        """Whether its worker is there."""
        return self._worker is not None and self._worker.ended is None

    async def aclose(self, grace_s: float = 0.0) -> None:
        """Take no new pass, let those under way end for so long, then end the worker. What it cuts is made again."""
        self._closed = True
        async with self._starting:
            worker, self._worker = self._worker, None
            if worker is not None:
                await worker.aclose(grace_s)

    async def _passing(self, actor: Actor, actuator: Actuator[Any, Any]) -> PassEnded:
        worker = await self._warmed()
        return await worker.run(actor, actuator.name, self._own, self._judge)

    async def _checking(self, actuator: str, arguments: Json) -> Json:
        worker = await self._warmed()
        checked = await worker.checked(actuator, arguments)
        if checked.faults:
            raise BadArguments([_fault(wrong) for wrong in checked.faults[:MAX_FAULTS]])
        try:
            input = fit(checked.input, INPUT_LIMIT)
        except Nonsense as fault:
            input = str(fault)
        if not isinstance(input, dict | None):
            worker.end("its check gave no input")
            raise PortFailed("sandbox", self.name, "its check gave no input")
        return input

    async def _warmed(self) -> Worker:
        if self._closed:
            raise PortFailed("sandbox", self.name, "it was closed")
        async with self._starting:
            if self._worker is None or self._worker.ended is not None:
                self._worker = None
                outside, origins = self._outside, self.described.origins
                gate = Gate(origins, resolve=outside.resolve, public=outside.public) if origins else None
                worker, opened = await Worker.started(
                    self._source,
                    self.name,
                    gate,
                    self._environment,
                    certificates=outside.certificates,
                    silence_s=outside.silence_s,
                )
                if isinstance(opened, Unready):
                    await worker.aclose()
                    told = "; ".join(map(str, _findings(opened)))
                    raise PortFailed("sandbox", self.name, f"it no longer loads: {told}")
                self._worker = worker
            return self._worker


def _findings(refused: Unready) -> list[Finding]:
    found = [Finding(wrong.where[:SHOWN], wrong.problem[:SHOWN]) for wrong in refused.findings[:MAX_FAULTS]]
    return found or [Finding("the file", "was refused by itself without a reason")]


def _fault(wrong: Wrong) -> Fault:
    got = wrong.got if isinstance(wrong.got, str | int | float | bool | None) else "…"
    return Fault(wrong.where[:SHOWN], wrong.problem[:SHOWN], got[:SHOWN] if isinstance(got, str) else got)
