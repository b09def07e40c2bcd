"""host.code - what this process's code can read, as one text to compare with another's.

For: telling whether a node of other code lives, which may read what this one cannot.
Never: says which of two is newer.
"""

from __future__ import annotations

from onefold.host.catalog import Catalog
from onefold.terms.codec import canonical, digest


def reads(catalog: Catalog) -> str:
    """Modules with their events, shapes with their methods."""
    events = {name: module.codecs.event.schema() for name, module in catalog.modules.items()}
    methods = {
        name: {known: list(method.parameters) for known, method in cells.shape.methods.items()}
        for name, cells in catalog.cells.items()
    }
    return digest(canonical([events, methods])).hex()
