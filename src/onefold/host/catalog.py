"""host.catalog - the parts an app was given, by name.

For: names to parts, checked once; what is near a name that is not there.
Never: finds anything by import, scan or decorator: an app is the values it was given.
Was wrong once: a registry that decorators filled. Two files imported in another order were
another application.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard

from onefold.actuators.declare import Actuator
from onefold.host.config import Person
from onefold.kernel.module import Module
from onefold.kernel.port import DELIVER, POST, Port
from onefold.terms.errors import Finding, LoadRefused, UnknownName
from onefold.terms.ids import nearest

if TYPE_CHECKING:
    from onefold.cell.module import Cells
    from onefold.cell.shape import Cell, Shape
    from onefold.reflex.part import Reflexes

Part: TypeAlias = "Actuator[Any, Any] | Module[Any, Any, Any, Any, Any] | Port[Any, Any] | Reflexes | type[Cell]"


@dataclass(slots=True)
class Catalog:
    """Names to parts. `people`: whom a program may notify. `reflexes`: in the order given. `generation`: grows with each
    change of its actuators, which deployed files make (host.offering) and nobody else; what was made of it is made anew.
    """

    title: str
    actuators: dict[str, Actuator[Any, Any]]
    modules: Mapping[str, Module[Any, Any, Any, Any, Any]]
    ports: Mapping[str, Port[Any, Any]]
    people: Mapping[str, Person]
    reflexes: Sequence[Reflexes] = ()
    cells: Mapping[str, Cells] = field(default_factory=dict)
    generation: int = 0

    def shape(self, name: str) -> Shape:
        """Raises: UnknownName with the nearest name."""
        found = self.cells.get(name)
        if found is None:
            raise UnknownName("shape", name, nearest(name, self.cells), self.cells)
        return found.shape

    def actuator(self, name: str) -> Actuator[Any, Any]:
        """Raises: UnknownName with the nearest name."""
        found = self.actuators.get(name)
        if found is None:
            raise UnknownName("tool", name, nearest(name, self.actuators), self.actuators)
        return found

    def module(self, name: str) -> Module[Any, Any, Any, Any, Any]:
        """Raises: UnknownName with the nearest name."""
        found = self.modules.get(name)
        if found is None:
            raise UnknownName("module", name, nearest(name, self.modules), self.modules)
        return found


ALERTS = "reflex_alerts"
"""The kind of the actors that tell of what reflexes park."""


def catalog(parts: Iterable[object], people: Mapping[str, Person], title: str = "onefold") -> Catalog:
    """The parts by name. Raises: LoadRefused for two of one name, and for what is no part."""
    actuators: dict[str, Actuator[Any, Any]] = {}
    modules: dict[str, Module[Any, Any, Any, Any, Any]] = {}
    ports: dict[str, Port[Any, Any]] = {}
    reflexes: list[Reflexes] = []
    cells: dict[str, Cells] = {}
    findings: list[Finding] = []
    for part in parts:
        if isinstance(part, Actuator):
            _add(actuators, part.name, part, "actuator", findings, modules)
        elif isinstance(part, Module):
            _add(modules, part.name, part, "module", findings, actuators)
        elif isinstance(part, Port):
            _add(ports, part.name, part, "port", findings, {})
        elif _is_reflexes(part):
            reflexes.append(part)
        elif _is_cell(part):
            _add_cell(cells, part, findings)
        else:
            findings.append(
                Finding(repr(part), "is no part of an app; give it actuators, modules, cells, ports and Reflexes")
            )
    _check(modules, ports, cells, findings)
    findings.extend(_twice(reflexes, modules))
    if cells:
        from onefold.cell.naming import clashes

        findings.extend(clashes([each.shape for each in cells.values()], actuators))
    if findings:
        raise LoadRefused(findings)
    return Catalog(title, actuators, modules, ports, people, tuple(reflexes), cells)


def _check(
    modules: Mapping[str, Any], ports: dict[str, Port[Any, Any]], cells: Mapping[str, Any], findings: list[Finding]
) -> None:
    """Each module by itself, what it owes to others, and the ports it brings."""
    for module in modules.values():
        try:
            module.check()
            findings.extend(_unheard(module, modules))
            if POST in module.owes and not cells:
                told = f"sends ticks to {POST!r}, a turn of the cell that an owner names; this app has no cells"
                findings.append(Finding(f"module {module.name}", told))
        except LoadRefused as refused:
            findings.extend(refused.findings)
        for brought in module.brings:
            if isinstance(brought, Port) and ports.get(brought.name) is not brought:
                _add(ports, brought.name, brought, "port", findings, {})


def _twice(parts: Sequence[Reflexes], modules: Mapping[str, object]) -> Iterable[Finding]:
    """Effects and selections of one name in different parts, which a definition could mean either of; and a module of a
    name that is taken.
    """
    if ALERTS in modules:
        yield Finding(f"module {ALERTS}", "is a name that the app itself uses; give this module another")
    for kind in ("effects", "selects"):
        seen: dict[str, object] = {}
        for one in (one for part in parts for one in getattr(part, kind)):
            name = getattr(one, "name", repr(one))  # what is none at all is told where they are joined
            if seen.setdefault(name, one) is not one:
                told = "stands twice in this app; give one of them another name"
                yield Finding(f"{kind.removesuffix('s')} {name}", told)
    if len({id(part.transform) for part in parts if part.transform is not None}) > 1:
        yield Finding("Reflexes", "two of them bring a `transform`; an app has one language of templates")


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


def _is_reflexes(part: object) -> TypeGuard[Reflexes]:
    """Asked of a class that is loaded only where somebody has one: an app without reflexes starts without that room."""
    room = sys.modules.get("onefold.reflex.part")
    return room is not None and isinstance(part, room.Reflexes)


def _is_cell(part: object) -> TypeGuard[type[Cell]]:
    """As above, for shapes."""
    room = sys.modules.get("onefold.cell.shape")
    return room is not None and isinstance(part, type) and issubclass(part, room.Cell)


def _add_cell(cells: dict[str, Cells], part: type[Cell], findings: list[Finding]) -> None:
    from onefold.cell.module import Cells
    from onefold.cell.shape import shape_of

    try:
        made = Cells(shape_of(part))
        made.check()
    except LoadRefused as refused:
        findings.extend(refused.findings)
    else:
        _add(cells, made.name, made, "shape", findings, {})


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
