"""The pure parts of the standard library raise no alarm, and what in them is not pure is found by name."""

from __future__ import annotations

import importlib

import pytest

from onefold.fence import Source, check

# Every public callable of these modules may be called in a decision, but for those named.
MODULES: dict[str, str] = {
    **dict.fromkeys(
        "abc ast base64 binascii bisect calendar cmath collections colorsys contextlib copy csv dataclasses datetime "
        "difflib enum fnmatch fractions functools graphlib hashlib heapq hmac html ipaddress itertools json keyword "
        "math numbers operator quopri re reprlib shlex statistics string stringprep struct textwrap token types "
        "typing unicodedata urllib.parse weakref xml.etree.ElementTree zlib".split(),
        "",
    ),
    "decimal": "setcontext",
    "email.utils": "localtime make_msgid",
    "io": "FileIO open open_code",
    "posixpath": "abspath expanduser expandvars isjunction islink ismount lexists realpath relpath",
    "pprint": "pp pprint",
    "tokenize": "open",
    "uuid": "getnode uuid1 uuid4",
    "zoneinfo": "available_timezones reset_tzpath",
}


def names_of(module: str) -> list[str]:
    """The public callables that are the module's own, built in or written in Python."""
    found = importlib.import_module(module)
    homes = {module.split(".")[0], f"_{module}", "builtins"}
    public = [name for name in dir(found) if not name.startswith("_") and callable(getattr(found, name))]
    return [n for n in public if (getattr(getattr(found, n), "__module__", "") or module).split(".")[0] in homes]


@pytest.mark.parametrize("module", MODULES)
def test_only_what_is_not_pure_is_found(module: str) -> None:
    names = names_of(module)
    calls = "\n".join(f"    {module}.{name}(str(now))" for name in names)
    text = (
        f"import {module}\nfrom onefold import Module\ndef decide(state, event, now):\n{calls}\n    return state\n"
        "Module('m', initial=0, key=str, decide=decide, snapshot=len)\n"
    )
    found = {names[finding.line - 4] for finding in check([Source("file.py", text.encode())])}
    assert found == {
        name for name in MODULES[module].split() if name in names
    }  # some are another module's in a newer Python


def test_that_is_most_of_it() -> None:
    assert sum(len(names_of(module)) for module in MODULES) > 700
