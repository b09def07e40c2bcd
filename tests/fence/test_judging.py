"""The tables name what exists: a name with a typing error would let everything through."""

from __future__ import annotations

import ast
import importlib
import sys
from importlib.util import find_spec
from typing import Any

import pytest

from onefold.fence.bans import BANS, PURE_FREE
from onefold.fence.judging import CALLS, MODULES, judge
from onefold.fence.rules import RULES
from onefold.fence.values import ONEFOLD

# Gone from this Python, or not yet there; not on this system.
ELSEWHERE = {
    "os.process_cpu_count", "os.startfile", "os.path.isjunction", "pathlib.Path().walk", "pathlib.Path().copy",
    "pathlib.Path().move", "uuid.uuid6", "uuid.uuid7", "uuid.uuid8", "importlib.resources", "os.path.isdevdrive",
}  # fmt: skip
MADE = {"logging.getLogger()": "logging.Logger", "logging.LoggerAdapter()": "logging.LoggerAdapter"}


def resolved(name: str) -> Any:
    """The thing behind a dotted name; what a class's call gives is the class. Raises: ImportError, AttributeError."""
    for made, cls in MADE.items():
        name = name.replace(made, cls)
    parts = name.replace("()", "").split(".")
    for length in range(len(parts), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:length]))
        except ImportError:
            continue
        for part in parts[length:]:
            found = getattr(found, part)
        return found
    raise ImportError(name)


def standard(names: Any) -> list[str]:
    return sorted(
        name
        for name in names
        if name.split(".")[0] in sys.stdlib_module_names
        and name not in ELSEWHERE
        and not name.startswith("asyncio.get")
    )


@pytest.mark.parametrize("name", standard({*BANS, *CALLS, *MODULES, *PURE_FREE}))
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_name_of_the_standard_library_exists(name: str) -> None:
    loop = name.startswith("asyncio.new_event_loop()")
    resolved(name.replace("asyncio.new_event_loop()", "asyncio.AbstractEventLoop") if loop else name)
    assert judge(name, None, pure=True) is None or BANS.get(name) != "free"


def built(names: dict[str, str]) -> list[tuple[str, str]]:
    """Those whose room exists."""
    return [(a, b) for a, b in names.items() if a.startswith("errors.") or find_spec(f"onefold.{a.split('.')[0]}")]


def test_every_ban_is_a_rule() -> None:
    assert {*BANS.values()} - {*RULES} == {"free"}


@pytest.mark.parametrize("long,short", built(ONEFOLD))
def test_the_spellings_of_a_name_of_ours_are_one_thing(long: str, short: str) -> None:
    """Where the room is built already. The blocking twins are other classes, with the same verbs."""
    one = resolved(f"onefold.{long}")
    if "blocking" in long:
        assert one.__name__ == short
    elif short == "Suspended":
        assert one is resolved("onefold.terms.errors.Suspended")
    else:
        assert one is resolved(f"onefold.{short}")


def call(text: str) -> ast.Call:
    node = ast.parse(text, mode="eval").body
    assert isinstance(node, ast.Call)
    return node


@pytest.mark.parametrize(
    "path,text,rule",
    [
        ("random.Random", "f()", "chance"),
        ("random.Random", "f(7)", None),
        ("random.Random", "f(*seeds)", None),
        ("datetime.datetime.fromtimestamp", "f(3)", "environment"),
        ("datetime.datetime.fromtimestamp", "f(3, tz)", None),
        ("datetime.datetime.fromtimestamp", "f(3, tz=UTC)", None),
        ("time.gmtime", "f()", "clock"),
        ("time.gmtime", "f(0)", None),
        ("time.localtime", "f(0)", "environment"),
        ("time.strftime", "f('%Y')", "clock"),
        ("time.strftime", "f('%Y', t)", None),
        ("zipfile.ZipFile", "f('a.zip')", "files"),
        ("zipfile.ZipFile", "f(buffer)", None),
        ("httpx.URL", "f('x')", None),
        ("httpx.AsyncClient", "f()", None),
        ("httpx.AsyncClient().get", "f('x')", "network"),
        ("stripe.Refund.create", "f()", "network"),
        ("smtplib.SMTP", "f()", "network"),
        ("subprocess.CalledProcessError", "f()", None),
        ("asyncio.gather", "f()", "threads"),
        ("os.path.join", "f()", None),
        ("os.path.exists", "f()", "files"),
        ("uuid.UUID", "f('x')", None),
        ("decimal.Decimal", "f('x')", None),
    ],
)
def test_arguments_decide_where_they_matter(path: str, text: str, rule: str | None) -> None:
    found = judge(path, call(text), pure=True)
    assert (None if found is None else found.rule) == rule


@pytest.mark.parametrize(
    "path",
    [
        "asyncio.gather", "asyncio.as_completed", "asyncio.TaskGroup", "asyncio.wait_for", "asyncio.timeout",
        "asyncio.sleep", "asyncio.wait", "asyncio.create_task", "asyncio.shield", "asyncio.Lock", "asyncio.Queue",
        "asyncio.Event", "asyncio.Semaphore", "asyncio.get_running_loop",
    ],
)  # fmt: skip
def test_what_a_pass_makes_durable_is_free_in_an_actuator(path: str) -> None:
    assert judge(path, call("f()"), pure=False) is None
    assert judge(path, call("f()"), pure=True) is not None


PURE = (
    "math decimal fractions statistics itertools functools operator collections re json string textwrap difflib enum "
    "dataclasses typing types abc copy heapq bisect graphlib hashlib hmac base64 binascii struct zlib html unicodedata "
    "calendar csv colorsys numbers contextlib ipaddress urllib.parse keyword reprlib array fnmatch zoneinfo"
).split()


@pytest.mark.parametrize("module", PURE)
def test_a_pure_module_is_free(module: str) -> None:
    """Every public name of it, in the place where least is allowed."""
    names = [name for name in vars(importlib.import_module(module)) if not name.startswith("_")]
    wrong = [name for name in names if judge(f"{module}.{name}", call("f()"), pure=True) is not None]
    assert names
    assert {*wrong} <= {"TZPATH", "available_timezones", "reset_tzpath", "setcontext"}
