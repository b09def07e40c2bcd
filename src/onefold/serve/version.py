"""serve.version - which Onefold this is, for the documents that say so. Never imports the package's front door."""

from __future__ import annotations

from functools import cache
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed


@cache
def version() -> str:
    """The installed version; "0" in a tree that was never installed."""
    try:
        return installed("onefold")
    except PackageNotFoundError:
        return "0"
