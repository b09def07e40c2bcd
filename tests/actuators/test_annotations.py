"""What a signature says is read the short way only where that gives what the long way gives."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from decimal import Decimal
from functools import wraps
from typing import Annotated, Any, Generic, TypeVar, get_type_hints

import pytest
from pydantic import BaseModel

from onefold import Run
from onefold.actuators.declare import _parameters
from onefold.actuators.stepping import annotations_of

T = TypeVar("T")


class Model(BaseModel): ...


class Boxed(BaseModel, Generic[T]):
    value: T


async def plain(run: Run, model: Model) -> str:
    raise NotImplementedError


def generic(run: Run, model: Boxed[int]) -> list[Model]:
    raise NotImplementedError


def union(run: Run, *, model: Model | None = None) -> Decimal | None:
    raise NotImplementedError


def annotated(run: Run, model: Annotated[Model, "said"]) -> None:
    raise NotImplementedError


def variable(run: Run, *rest: int, **more: str) -> Any:
    raise NotImplementedError


def nothing(run, model):
    raise NotImplementedError


@wraps(plain)
def wrapped(*args: int) -> int:
    raise NotImplementedError


CASES = [plain, generic, union, annotated, variable, nothing, wrapped]


@pytest.mark.parametrize("function", CASES, ids=lambda function: str(function.__name__))
def test_annotations_are_what_the_standard_library_makes_of_them(function: Callable[..., Any]) -> None:
    assert annotations_of(function) == get_type_hints(function, include_extras=True)


@pytest.mark.parametrize("function", CASES, ids=lambda function: str(function.__name__))
def test_parameters_are_those_of_the_signature(function: Callable[..., Any]) -> None:
    assert _parameters(function) == list(inspect.signature(function).parameters)


def test_a_nested_function_names_what_it_closes_over() -> None:
    class Inner(BaseModel): ...

    def nested(run: Run, model: Inner) -> str:
        return str(Inner)

    assert annotations_of(nested) == {"run": Run, "model": Inner, "return": str}


def test_a_name_that_hides_a_builtin_is_the_one_that_counts() -> None:
    str = Model

    def nested(run: Run) -> str:  # type: ignore[valid-type]
        return str()

    assert annotations_of(nested)["return"] is Model


def test_a_name_that_nobody_defined_is_told_by_name() -> None:
    def unknown(run: Run, model: Missing) -> None: ...  # type: ignore[name-defined] # noqa: F821 - that is the case

    with pytest.raises(NameError, match="Missing"):
        annotations_of(unknown)
