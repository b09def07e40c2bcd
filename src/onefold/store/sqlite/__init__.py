"""store.sqlite - spaces as files, one writer each; `main` may have several.

For: the contract on SQLite through apsw (the system's library carries a known WAL corruption
bug): group commit on the loop's thread, keys and heads that lag in memory, a sidecar that
names the holder and remembers how far was acknowledged, the author's door.
Never: shares a file between processes that were not told so; knows what a row means; builds SQL from outside input.
Was wrong once: a second connection for reads in the hot path. It saw the past, and its probes
cost what the writer's own do not.
"""

from __future__ import annotations

from onefold.store.sqlite.world import SqliteWorld

__all__ = ["SqliteWorld"]
