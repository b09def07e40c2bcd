"""terms.places - where in a program's own file something happened, as `refund.py:11`.

For: telling authors which of their lines raised, and where a function of theirs stands.
Never: a folder (a row and a log travel, a machine's paths do not); a line of this package or of a library,
where the program has one of its own.
Was wrong once: the last frame of all. It was in a library that the author had never opened.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from types import TracebackType
from typing import Any, Final

HERE: Final = __file__.removesuffix("terms/places.py").removesuffix("terms\\places.py")


def is_own(file: str) -> bool:
    """Whether a file is the program's: none of this package, of the language or of an installed library."""
    return not (file.startswith((HERE, "<")) or "site-packages" in file) and not _language(file)


def _name(file: str) -> str:
    return file.replace("\\", "/").rpartition("/")[2]


def _language(file: str) -> bool:
    return any(file.startswith(f"{prefix}/lib/python") for prefix in (sys.base_prefix, sys.prefix))


def place_of(fault: BaseException | None) -> str | None:
    """`file:line` of the innermost line of the program's own that a fault went through; None where there is none.

    Of a fault without one, its cause's.
    """
    while fault is not None:
        found = _innermost(fault.__traceback__)
        if found is not None:
            return found
        fault = fault.__cause__
    return None


def _innermost(trace: TracebackType | None) -> str | None:
    found = installed = None
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if is_own(file):
            found = f"{_name(file)}:{trace.tb_lineno}"
        elif "site-packages" in file and not file.startswith(HERE):
            installed = installed or f"{_name(file)}:{trace.tb_lineno}"  # a program may be installed too
        trace = trace.tb_next
    return found or installed


def place_of_call() -> str | None:
    """`file:line` of the program's own line that this call comes from; None where none of its lines is under way."""
    frame = inspect.currentframe()
    while frame is not None and not is_own(frame.f_code.co_filename):
        frame = frame.f_back
    return None if frame is None else f"{_name(frame.f_code.co_filename)}:{frame.f_lineno}"


def place_of_function(function: Callable[..., Any] | None) -> str | None:
    """`file:line` where a function of the program's is written; None where that cannot be known."""
    inner = None if function is None else inspect.unwrap(function)
    code = getattr(inner, "__code__", None) or getattr(getattr(inner, "__func__", None), "__code__", None)
    if code is None or not is_own(code.co_filename):
        return None
    return f"{_name(code.co_filename)}:{code.co_firstlineno}"


def placed(what: str, place: str | None) -> str:
    """`refund.py:11: actuator refund`, as a finding says where; without a place only what."""
    return what if place is None else f"{place}: {what}"


def at_place(place: str | None) -> str:
    """` (refund.py:11)`, or nothing."""
    return "" if place is None else f" ({place})"
