"""host.settings - what each setting may be.

For: one parser a setting, and the names of those that this version does not act on.
Never: reads a file or a variable; merges; knows where a value was said.
Was wrong once: settings of later versions were taken and ignored. A store that was to move to
another machine stayed where it was, and nobody was told.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from urllib.parse import parse_qs, urlsplit

from onefold.terms.duration import duration_ms
from onefold.terms.errors import BadArguments
from onefold.terms.ids import nearest

Right = Literal["call", "read", "operate", "deploy"]
Durability = Literal["full", "lossy-on-power-cut"]
BlobHome = Literal["database", "files"]
RIGHTS: tuple[Right, ...] = ("call", "read", "operate", "deploy")
SCHEMES = ("standard", "stripe", "github", "slack")
URL = re.compile(r"(https?://|mailto:)\S+")


@dataclass(frozen=True, slots=True)
class Deployed:
    """What deployed files get of this host. environment: the variables that one may see, of those it declares."""

    environment: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Key:
    """One bearer key: whom it speaks for and what it may do. The key itself is in the variable it names."""

    secret_env: str
    may: frozenset[Right]
    principal: str | None = None


class Wrong(Exception):
    """What is wrong with one value, in words."""


def hint(name: str, among: Collection[str]) -> str:
    near = nearest(name, among)
    return f"; did you mean {near!r}?" if near else ""


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value or "\0" in value:
        raise Wrong("must be text")
    return value


def _texts(value: Any) -> tuple[str, ...]:
    given = [value] if isinstance(value, str) else value
    if not isinstance(given, list | tuple) or not all(isinstance(one, str) and one for one in given):
        raise Wrong('must be a list of texts, like ["one", "two"]')
    return tuple(given)


def _secrets(value: Any) -> tuple[str, ...]:
    names = _texts(value)
    if not 1 <= len(names) <= 2:
        raise Wrong("names one variable, or two while the secret is rotated: the first signs, both are read")
    return names


def _targets(value: Any) -> tuple[str, ...]:
    urls = _texts(value)
    for url in urls:
        if not URL.fullmatch(url):
            told = "; the console is always told: give an address, or notify = [] for the console alone"
            told = told if url == "console" else f"; write mailto:{url}" if "@" in url and ":" not in url else ""
            raise Wrong(f"{url!r} is no mailto:, https: or http: address{told}")
    return urls


def _offered(value: Any) -> tuple[str, ...]:
    names = _texts(value)
    for name in names:
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name, re.ASCII) or name.startswith("ONEFOLD_"):
            raise Wrong(f"{name!r} is no variable that may be offered: a name, and none that begins with ONEFOLD_")
    return names


def _store(value: Any) -> str:
    text = _text(str(value) if isinstance(value, Path) else value)
    if text.startswith(("postgres:", "postgresql:")) and not on_postgres(text):
        raise Wrong("an address of a database is written postgres://user@host/database")
    if "://" in text and not on_postgres(text):
        raise Wrong('is no store: a store is a folder, "postgres://…" or "memory:"')
    return text


def _moved(value: Any) -> str:
    text = _store(value)
    if text == "memory:":
        raise Wrong("one space cannot be in memory by itself; name a folder or a postgres:// address")
    return text


def on_postgres(store: str) -> bool:
    return store.startswith(("postgres://", "postgresql://"))


def shown(store: str) -> str:
    """A store as it may be shown: of an address, where it is, and nothing that opens it."""
    if not on_postgres(store):
        return store
    try:
        parts = urlsplit(store)
        port = f":{parts.port}" if parts.port else ""
        return f"postgres://{parts.hostname or ''}{port}{parts.path}"
    except ValueError:
        return "postgres://"


def holds_secret(store: str) -> bool:
    """Whether an address has a password in it."""
    if not on_postgres(store):
        return False
    try:
        parts = urlsplit(store)
        return parts.password is not None or "password" in parse_qs(parts.query)
    except ValueError:
        return True


def _durability(value: Any) -> Durability:
    for known in ("full", "lossy-on-power-cut"):
        if value == known:
            return known
    raise Wrong('must be "full" or "lossy-on-power-cut"')


def _blobs(value: Any) -> BlobHome:
    for known in ("database", "files"):
        if value == known:
            return known
    raise Wrong('must be "database" or "files"')


def _scheme(value: Any) -> str:
    if value not in SCHEMES:
        raise Wrong(f"must be one of {', '.join(SCHEMES)}")
    return str(value)


def _listen(value: Any) -> tuple[str, int]:
    parts = re.fullmatch(r"(\[[0-9a-fA-F:.]+\]|[^:\s]+):(\d{1,5})", _text(value))
    if parts is None or int(parts[2]) > 65535:
        raise Wrong('must be "host:port", like "127.0.0.1:8600"')
    return parts[1].strip("[]"), int(parts[2])


def _public(value: Any) -> str:
    text = _text(value)
    if not re.fullmatch(r"https?://[^/?#\s]+(/[^?#\s]*)?", text):
        raise Wrong('must be an address without query, like "https://tools.example.com"')
    return text.rstrip("/")


def _count(value: Any) -> int:
    number = int(value) if isinstance(value, str) and value.isdecimal() else value
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        raise Wrong("must be a whole number above 0")
    return number


def _slots(value: Any) -> int:
    number = _count(value)
    if number > MOST_SLOTS:
        raise Wrong(f"must be at most {MOST_SLOTS}: a node looks at all of them on each beat")
    return number


def _node(value: Any) -> str:
    text = _text(value)
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}", text, re.ASCII):
        raise Wrong("must be letters, digits, _, . and -, at most 63, like a host's name")
    return text


def _lease(value: Any) -> int:
    """Milliseconds."""
    try:
        lease = duration_ms(value)
    except BadArguments as fault:
        raise Wrong(fault.faults[0].problem) from None
    if not LEAST_LEASE_MS <= lease <= MOST_LEASE_MS:
        raise Wrong('must be from "1 second" to "10 minutes": so long may an actor of a node that died be away')
    return lease


def _kept(value: Any) -> int | None:
    """Milliseconds; None for ever."""
    if value == "forever":
        return None
    try:
        kept = duration_ms(value)
    except BadArguments as fault:
        raise Wrong(f'{fault.faults[0].problem}; or say "forever"') from None
    if not kept:
        raise Wrong('must be longer than nothing, or "forever"')
    return kept


def _keys(value: Any) -> tuple[Key, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(one, Mapping) for one in value):
        raise Wrong('must be a list of tables, like [{ principal = "a", secret_env = "A_KEY", may = ["call"] }]')
    return tuple(_key(one, f"key {number}") for number, one in enumerate(value, 1))


def _key(table: Mapping[str, Any], which: str) -> Key:
    for name in table:
        if name not in ("principal", "secret_env", "may"):
            parts = ["principal", "secret_env", "may"]
            raise Wrong(
                f"{which} has an unknown part {name!r}{hint(name, parts) or '; it has principal, secret_env, may'}"
            )
    rights = _texts(table.get("may", ()))
    if not rights or any(right not in RIGHTS for right in rights):
        raise Wrong(f"{which}: `may` lists some of {', '.join(RIGHTS)}")
    if "secret_env" not in table:
        raise Wrong(f"{which} does not name its variable with `secret_env`")
    principal = table.get("principal")
    return Key(
        secret_env=_text(table["secret_env"]),
        may=frozenset(right for right in RIGHTS if right in rights),
        principal=None if principal is None else _text(principal),
    )


MOST_SLOTS = 65_536
LEAST_LEASE_MS, MOST_LEASE_MS = 1_000, 600_000

KNOWN: Mapping[str, Callable[[Any], Any]] = {
    "app": _text,
    "store": _store,
    "spaces.*": _moved,
    "durability": _durability,
    "blobs": _blobs,
    "listen": _listen,
    "public_url": _public,
    "node.capacity": _count,
    "node.name": _node,
    "node.advertise": _public,
    "node.lease": _lease,
    "slots": _slots,
    "retention.runs": _kept,
    "retention.replies": _kept,
    "retention.ids": _kept,
    "retention.reflex_runs": _kept,
    "retention.intake": _kept,
    "secret_env": _secrets,
    "smtp.url_env": _text,
    "smtp.from": _text,
    "alerts": _texts,
    "people.*.notify": _targets,
    "hooks.*.secret_env": _text,
    "hooks.*.scheme": _text,
    "hooks.*.principal": _text,
    "signals.*.secret_env": _secrets,
    "signals.*.scheme": _scheme,
    "signals.*.principal": _text,
    "keys": _keys,
    "deployed.environment": _offered,
}

NAMED = frozenset({*KNOWN, *(name.partition(".")[0] for name in KNOWN)})
"""What a slip may have meant: a setting, or the table that holds some."""


def no_setting(name: str) -> str:
    """Why this is no setting: it is a table that was given something else, or a slip."""
    table, _, within = name.partition(".")
    if any(known.startswith(f"{table}.") for known in KNOWN) and "." not in within:
        chosen = f"{table}.*."
        parts = sorted(known.removeprefix(chosen) for known in KNOWN if known.startswith(chosen))
        if parts:
            names = "" if within else "names of yours, each a table with "
            return f"must be a table with {names}some of: {', '.join(parts)}"
        if not within:
            parts = sorted(known.removeprefix(f"{table}.") for known in KNOWN if known.startswith(f"{table}."))
            return f"must be a table with {'names of yours' if parts == ['*'] else 'some of: ' + ', '.join(parts)}"
    return f"there is no such setting{hint(name, NAMED)}"
