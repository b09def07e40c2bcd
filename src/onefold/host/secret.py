"""host.secret - what approval links and callbacks are signed with.

For: the secrets of `secret_env`, or, for SQLite without it, one file in the store folder that only
its owner can read, made once.
Never: prints a secret; makes a second one beside the first; trusts a file that others can read.
Was wrong once: write, then chmod. Between the two the secret lay open, and a crash left it so.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

from onefold.host.config import LEAST_SECRET, Config
from onefold.terms.errors import Finding, LoadRefused

FILE = "secret"
SIZE = 32


def signing(config: Config, fresh: Callable[[int], bytes]) -> tuple[bytes, ...]:
    """The secrets to sign with (the first) and to check against (all of them).

    `fresh(n)` gives n unguessable bytes. A store in memory without `secret_env` gets a secret that
    lives as long as the process. Raises: LoadRefused when a named variable is unset, when a store on Postgres has
    none, or the file can be read by others, is too short or cannot be made.
    """
    if config.secret_env:
        return tuple(config.secret(name, "secret_env").encode() for name in config.secret_env)
    if config.store == "memory:":
        return (fresh(SIZE),)
    if config.folder is None:
        problem = (
            "a store on Postgres has no folder to keep a secret in; set ONEFOLD_SECRET, or name another variable here"
        )
        raise LoadRefused([Finding("secret_env", problem)])
    return (_kept(config.folder / FILE, fresh),)


def _kept(path: Path, fresh: Callable[[int], bytes]) -> bytes:
    try:
        if not path.exists():
            _make(path, fresh(SIZE), path.with_name(f"{FILE}.{fresh(8).hex()}"))
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            secret = file.read()
    except OSError as error:
        raise LoadRefused([Finding(str(path), f"the signing secret cannot be kept there: {error.strerror}")]) from error
    if stat.S_IMODE(mode) & 0o077:
        raise LoadRefused([Finding(str(path), "others can read this secret; chmod it to 600, or use secret_env")])
    if len(secret) < LEAST_SECRET:
        raise LoadRefused([Finding(str(path), "the signing secret is cut short; remove the file, or use secret_env")])
    return secret


def _make(path: Path, secret: bytes, draft: Path) -> None:
    """Write beside, sync, then link into place: the file is whole or absent, and the first of two makers wins."""
    from onefold.store.sqlite.disk import Disk  # only where there is a folder of SQLite files

    disk = Disk()
    disk.make_folder(str(path.parent))
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.write(handle, secret)
        os.fsync(handle)
    finally:
        os.close(handle)
    try:
        os.link(draft, path)
    except FileExistsError:
        pass
    finally:
        draft.unlink()
    disk.sync_folder(str(path.parent))
