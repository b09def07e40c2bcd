"""host.notified - whom the programs of an app name when they ask people, as far as their own text says it.

For: telling at the start that an approval would ask nobody, before a run has done anything.
Never: refuses: a name may come from an argument, and the console is told in any case.
Was wrong once: a name that nobody had was met when its notice was sent, behind a step that had paid.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Collection, Iterator
from types import CodeType
from typing import Any

from onefold.actuators.declare import Actuator
from onefold.host.settings import URL
from onefold.terms.ids import nearest
from onefold.terms.places import place_of_function, placed

ASKING = "wait_for_approval"


def nobodies(actuators: Collection[Actuator[Any, Any]], people: Collection[str]) -> list[str]:
    """A sentence for each name in a `notify=` that is neither one of [people] nor an address."""
    told = []
    for actuator in actuators:
        for name in sorted(set(_named(actuator.function))):
            if name not in people and not URL.fullmatch(name):
                close = nearest(name, people)
                hint = f"; did you mean {close!r}?" if close else f': add people.{name} = {{ notify = ["mailto:…"] }}'
                where = placed(f"actuator {actuator.name}", place_of_function(actuator.function))
                told.append(f"{where}: notify={name!r} is nobody in [people] of onefold.toml and no address{hint}")
    return told


def _named(function: Callable[..., Any]) -> Iterator[str]:
    function = inspect.unwrap(function)
    if not _asks(getattr(function, "__code__", None)):
        return  # most ask nobody; reading the text of a thousand tools would be half of their start
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):  # there is no text to read, or not of it alone
        return
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == ASKING:
            for option in call.keywords:
                if option.arg == "notify":
                    yield from _texts(option.value)


def _asks(code: object) -> bool:
    """Whether this code, or a function within it, names the verb that asks a person."""
    if not isinstance(code, CodeType):
        return False
    return ASKING in code.co_names or any(map(_asks, code.co_consts))


def _texts(value: ast.expr) -> Iterator[str]:
    for item in value.elts if isinstance(value, ast.List | ast.Tuple) else (value,):
        if isinstance(item, ast.Constant) and isinstance(item.value, str):
            yield item.value
