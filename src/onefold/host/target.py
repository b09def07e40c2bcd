"""host.target - from what a person types to what is served.

For: TARGET, one of `file.py`, `file.py:name`, `package.module`, `package.module:name`.
Never: searches; imports a second file to find parts; offers what a file merely imported.
Was wrong once: every actuator in the file's namespace was offered. `from billing import refund_order`,
meant for a child call, put refunds on the agent's list.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Generic, NoReturn, TypeVar

from onefold.actuators import Actuator
from onefold.terms.errors import Finding, LoadRefused
from onefold.terms.ids import nearest

A = TypeVar("A")
FORMS = "file.py, file.py:name or package.module:name"
# What a person's own top-level code is likely to raise. Anything else is shown as Python shows it.
_FAMILIES = (
    ImportError,
    SyntaxError,
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    NameError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
)


@dataclass(frozen=True, slots=True)
class Target(Generic[A]):
    """What was found: an app, or the parts to make one of. `file` is where it stands, `title` what to call it."""

    file: Path
    title: str
    app: A | None
    parts: tuple[Actuator[Any, Any], ...]


def file_of(target: str, start: Path) -> Path | None:
    """The file a target names, without loading it; None for a module that nothing was said about."""
    place, _, _ = target.partition(":")
    if place.endswith(".py"):
        return start / place
    path = start.joinpath(*place.split("."))
    return next((file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()), None)


def load(target: str, app_type: type[A], start: Path) -> Target[A]:
    """Load a target; paths and packages count from `start`. Runs the file's top level, in this process.

    Raises: LoadRefused, with the file and line, when there is no such file or name, when its top
    level raises, or when it holds nothing to serve. An OnefoldError of its top level is raised as it is.
    """
    place, _, name = target.partition(":")
    if place.endswith(".py"):
        module = _from_file(target, (start / place).resolve())
    elif place and all(part.isidentifier() for part in place.split(".")):
        module = _from_package(target, place, start)
    else:
        _refuse(target, f"is no target. Write {FORMS}")
    file = Path(module.__file__ or place)
    found = _named(target, module, name) if name else getattr(module, "app", None)
    if isinstance(found, app_type):
        return Target(file, file.stem, found, ())
    if isinstance(found, Actuator):
        return Target(file, file.stem, None, (found,))
    if found is not None:
        _refuse(target, f"{name or 'app'!r} is a {type(found).__name__}, not an App and not an actuator")
    own = _own_actuators(module)
    if not own:
        _refuse(target, "holds neither `app = onefold.App(...)` nor an actuator of its own. Add one")
    return Target(file, file.stem, None, own)


def _named(target: str, module: ModuleType, name: str) -> object:
    if hasattr(module, name):
        return getattr(module, name)
    offered = [known for known, value in vars(module).items() if not known.startswith("_") and value is not None]
    near = nearest(name, offered)
    hint = f"; did you mean {near!r}?" if near else ""
    _refuse(target, f"there is no {name!r} in it{hint}")


def _own_actuators(module: ModuleType) -> tuple[Actuator[Any, Any], ...]:
    own = (v for v in vars(module).values() if isinstance(v, Actuator) and v.function.__module__ == module.__name__)
    return tuple(dict.fromkeys(own))


def _from_file(target: str, file: Path) -> ModuleType:
    if not file.is_file():
        _refuse(target, f"there is no such file. Write {FORMS}")
    name = file.stem
    if name in sys.modules or name in sys.stdlib_module_names or not name.isidentifier():
        name = f"onefold_target_{abs(hash(file))}"
    if str(file.parent) not in sys.path:
        sys.path.insert(0, str(file.parent))  # as `python file.py` would: its neighbours can be imported
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        _refuse(target, "is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # before its top level runs: annotations are looked up through it
    try:
        spec.loader.exec_module(module)
    except _FAMILIES as error:
        del sys.modules[name]
        _refuse_raised(target, file, error)
    return module


def _from_package(target: str, place: str, start: Path) -> ModuleType:
    if str(start) not in sys.path:
        sys.path.insert(0, str(start))
    try:
        return importlib.import_module(place)
    except _FAMILIES as error:
        _refuse_raised(target, file_of(place, start) or start / place, error)


def _refuse(target: str, problem: str) -> NoReturn:
    raise LoadRefused([Finding(target or "TARGET", problem)])


def _refuse_raised(target: str, file: Path, error: Exception) -> NoReturn:
    """Name the deepest line of the person's own file that led to the error."""
    if isinstance(error, SyntaxError) and error.filename:
        raise LoadRefused([Finding(f"{Path(error.filename).name}:{error.lineno}", f"{error.msg}")]) from error
    told = f"{type(error).__name__}: {error}"
    if isinstance(error, KeyError) and _raised_in(error) == "os":
        told = f"the variable {error.args[0]} is not set; set it where this is started"
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(file)]
    where = f"{file.name}:{lines[-1]}" if lines else target
    raise LoadRefused([Finding(where, told)]) from error


def _raised_in(error: Exception) -> str | None:
    """The module whose code raised it."""
    frames = list(traceback.walk_tb(error.__traceback__))
    return frames[-1][0].f_globals.get("__name__") if frames else None
