"""store.postgres - spaces as parts of shared tables, for one process or many, over psycopg 3.

For: `PostgresWorld`. Imported only where a store is on Postgres.
Never: knows what a row means; lets a driver call, a driver error or an address out.

    world      spaces by name, lanes, what a new connection must prove     cluster · migrate · ddl
    space      verbs under the space's number                              plan · sql · arrays
    lane       who commits together                                        engine · together
    wire       one connection as a pipeline                                connect · failing
"""

from __future__ import annotations

from onefold.store.postgres.world import PostgresWorld

__all__ = ["PostgresWorld"]
