"""host.catalog - the parts an app was given, by name.

For: names to parts, checked once; what is near a name that is not there.
Never: finds anything by import, scan or decorator: an app is the values it was given.
Was wrong once: a registry that decorators filled. Two files imported in another order were
another application.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from onefold.actuators.declare import Actuator
from onefold.host.config import Person
from onefold.kernel.module import Module
from onefold.kernel.port import DELIVER, Port
from onefold.terms.errors import Finding, LoadRefused, UnknownName
from onefold.terms.ids import nearest

Part = Actuator[Any, Any] | Module[Any, Any, Any, Any, Any] | Port[Any, Any]


@dataclass(frozen=True, slots=True)
class Catalog:
    """Names to parts. `people`: whom a program may notify."""

    title: str
    actuators: Mapping[str, Actuator[Any, Any]]
    modules: Mapping[str, Module[Any, Any, Any, Any, Any]]
    ports: Mapping[str, Port[Any, Any]]
    people: Mapping[str, Person]

    def actuator(self, name: str) -> Actuator[Any, Any]:
        """Raises: UnknownName with the nearest name."""
        found = self.actuators.get(name)
        if found is None:
            raise UnknownName("tool", name, nearest(name, self.actuators))
        return found

    def module(self, name: str) -> Module[Any, Any, Any, Any, Any]:
        """Raises: UnknownName with the nearest name."""
        found = self.modules.get(name)
        if found is None:
            raise UnknownName("module", name, nearest(name, self.modules))
        return found


def catalog(parts: Iterable[object], people: Mapping[str, Person], title: str = "onefold") -> Catalog:
    """The parts by name. Raises: LoadRefused for two of one name, and for what is no part."""
    actuators: dict[str, Actuator[Any, Any]] = {}
    modules: dict[str, Module[Any, Any, Any, Any, Any]] = {}
    ports: dict[str, Port[Any, Any]] = {}
    findings: list[Finding] = []
    for part in parts:
        if isinstance(part, Actuator):
            _add(actuators, part.name, part, "actuator", findings, modules)
        elif isinstance(part, Module):
            _add(modules, part.name, part, "module", findings, actuators)
        elif isinstance(part, Port):
            _add(ports, part.name, part, "port", findings, {})
        else:
            findings.append(Finding(repr(part), "is no part of an app; give it actuators, modules and ports"))
    for module in modules.values():
        try:
            module.check()
            findings.extend(_unheard(module, modules))
        except LoadRefused as refused:
            findings.extend(refused.findings)
        for brought in module.brings:
            if isinstance(brought, Port) and ports.get(brought.name) is not brought:
                _add(ports, brought.name, brought, "port", findings, {})
    if findings:
        raise LoadRefused(findings)
    return Catalog(title, actuators, modules, ports, people)


def _unheard(module: Module[Any, Any, Any, Any, Any], modules: Mapping[str, Any]) -> Iterable[Finding]:
    """What a module owes to another that is not there, or does not take it."""
    for port, body in module.owes.items():
        if not port.startswith(DELIVER):
            continue
        name = port.removeprefix(DELIVER)
        hearer = modules.get(name)
        if hearer is None:
            near = nearest(name, modules)
            hint = f"; did you mean {DELIVER + near!r}?" if near else ""
            yield Finding(f"module {module.name}", f"owes to {port!r}, and this app has no module {name!r}{hint}")
        elif not hearer.hears(body):
            problem = f"owes {body.__name__} to {port!r}, and {name!r} does not take it; add it to its events"
            yield Finding(f"module {module.name}", problem)


def _add(
    into: dict[str, Any],
    name: str,
    part: object,
    kind: str,
    findings: list[Finding],
    others: Mapping[str, object],
) -> None:
    if name in into or name in others:
        findings.append(Finding(f"{kind} {name}", "stands twice in this app; give one of them another name"))
    into[name] = part
