"""Where an author's tables live: who may make the schema and its role, who takes it over, and how few connections it needs."""

from __future__ import annotations

import asyncio
from functools import partial

import psycopg
import pytest

from onefold.store.postgres import PostgresWorld
from onefold.terms.errors import BadStatement, LoadRefused, StoreUnavailable
from tests.store.postgres.authoring import MIGRATIONS, REFUSED, fetch, step
from tests.store.tables import SCHEMA


async def test_who_may_not_make_roles_is_told_what_is_missing(postgres: str) -> None:
    with psycopg.connect(postgres, autocommit=True) as conn:
        name = conn.info.dbname + "_plain"
        conn.execute(f"create role {name} login")
        conn.execute(f"grant create on database {conn.info.dbname} to {name}")
        conn.execute(f"grant execute on function pg_control_system to {name}")
    world = PostgresWorld(postgres.replace("postgres@", f"{name}@"))
    try:
        space = await world.open("main", [SCHEMA])
        with pytest.raises(StoreUnavailable, match="CREATEROLE"):
            await space.author_migrate(MIGRATIONS)
    finally:
        await world.close()


async def test_a_user_who_is_no_superuser_has_all_of_it(postgres: str) -> None:
    with psycopg.connect(postgres, autocommit=True) as conn:
        name = conn.info.dbname + "_user"
        conn.execute(f"create role {name} login createrole")
        conn.execute(f"grant create on database {conn.info.dbname} to {name}")
    url = postgres.replace("postgres@", f"{name}@")
    for _ in range(2):
        world = PostgresWorld(url)
        space = await world.open("main", [SCHEMA])
        await space.author_migrate(MIGRATIONS)
        await step(space, lambda tx: tx.execute("insert into counted(what) values('x')"))
        for what in ("becomes the store's own", "reads it as somebody else", "calls the way in", "changes the way in"):
            with pytest.raises(BadStatement):
                await step(space, partial(fetch, REFUSED[what]))
        await world.close()


async def test_a_copy_restored_without_its_owners_is_taken_over(postgres: str) -> None:
    world = PostgresWorld(postgres)
    space = await world.open("main", [SCHEMA])
    await space.author_migrate(MIGRATIONS)
    await world.close()
    with psycopg.connect(postgres, autocommit=True) as conn:
        ((role,),) = conn.execute(
            "select nspowner::regrole::text from pg_namespace where nspname = 'onefold_main'"
        ).fetchall()
        conn.execute(f"reassign owned by {role} to current_user")
        conn.execute(f"drop owned by {role}")
        conn.execute(f"drop role {role}")
    world = PostgresWorld(postgres)
    space = await world.open("main", [SCHEMA])
    await space.author_migrate([*MIGRATIONS, "alter table refunds add column more int"])
    await step(space, lambda tx: tx.execute("insert into counted(what) values('x')"))
    with pytest.raises(LoadRefused):
        await space.author_migrate(["create table other(x int)"])
    await world.close()


async def test_many_authors_share_few_connections(postgres: str) -> None:
    world = PostgresWorld(postgres)
    spaces = [await world.open(f"space{n}", [SCHEMA]) for n in range(6)]
    for _ in range(2):
        for space in spaces:
            await space.author_migrate(["create table notes(x int)"])
            await step(space, partial(fetch, "insert into notes values(1)"))
    with psycopg.connect(postgres) as conn:
        used = "select count(*) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"
        ((count,),) = conn.execute(used).fetchall()
        assert count <= 8
        made = "select count(*) from pg_namespace where starts_with(nspname, 'onefold_space')"
        assert conn.execute(made).fetchone() == (6,)
    await world.close()


async def test_two_processes_make_one_home(postgres: str) -> None:
    worlds = [PostgresWorld(postgres) for _ in range(3)]
    spaces = [await world.open("main", [SCHEMA]) for world in worlds]
    await asyncio.gather(*[space.author_migrate(MIGRATIONS[:1]) for space in spaces], return_exceptions=True)
    for space in spaces:
        await space.author_migrate(MIGRATIONS[:1])
        assert await space.author_tables() == ["refunds"]
    for world in worlds:
        await world.close()


@pytest.mark.parametrize("more", [[], ["insert into counted(what) values('once')"]])
async def test_processes_that_migrate_at_once_run_each_statement_once(postgres: str, more: list[str]) -> None:
    worlds = [PostgresWorld(postgres, shared=True) for _ in range(4)]
    try:
        for n in range(6):
            spaces = [await world.open(f"space_{n}", [SCHEMA]) for world in worlds]
            await asyncio.gather(*(space.author_migrate([*MIGRATIONS, *more]) for space in spaces))
            await asyncio.gather(*(space.author_migrate([*MIGRATIONS, *more]) for space in spaces))
            _, rows, _ = await spaces[0].author_rows("counted", limit=5, after=None)
            assert len(rows) == len(more)
    finally:
        for world in worlds:
            await world.close()
