"""store.postgres.home - where an author's tables live: a schema, a role that owns it, and the way in.

For: the texts that make the three, and the one that runs a statement as that role.
Never: runs anything (author does); lets the role see the store's own schema, or the way in itself.
Was wrong once: `set local role`, then the author's statement. `select set_config('role', 'none', true)` made it the
store's again, within that very statement. Within a function that runs as its owner the server refuses to change roles,
to end the transaction, and to do whatever the owner may not.
"""

from __future__ import annotations

from dataclasses import dataclass

from onefold.store.postgres.sql import quoted

FETCH_AT_MOST = 32_000_000  # bytes of rows of one statement, as in SQLite
TOO_MUCH = "OF002"  # SQLSTATE of more than that


@dataclass(frozen=True, slots=True)
class Home:
    """Of one space. within: the store's schema. role: None until the schema was looked at."""

    space: str
    within: str

    @property
    def schema(self) -> str:
        return f"{self.within}_{self.space}"

    @property
    def way(self) -> str:
        """The function that runs an author's statement; whoever cannot look into the store's schema cannot name it."""
        return f"{quoted(self.within)}.{quoted(f'_author_{self.space}')}"

    @property
    def migrations(self) -> str:
        return f"{quoted(self.within)}._author"

    @property
    def alone(self) -> str:
        """Waits until nobody else makes this home or migrates in it; held to the end of the transaction."""
        return f"select pg_advisory_xact_lock(hashtext({literal(self.schema)}))"


def looked_for(home: Home) -> str:
    """Who owns the schema, whether that is a role of ours, who owns the way in and whether it is as it must be."""
    return (
        "select n.nspowner::regrole::text, r.rolcanlogin or r.rolsuper or n.nspowner=current_user::regrole,"
        f" (select p.prosecdef and p.proowner=n.nspowner and p.prosrc={literal(_BODY)}"
        " from pg_catalog.pg_proc p"
        f" where p.oid=to_regprocedure({literal(f'{home.way}(text,text[],int4)')}))"
        " from pg_catalog.pg_namespace n join pg_catalog.pg_roles r on r.oid=n.nspowner"
        f" where n.nspname={literal(home.schema)}"
    )


def made(home: Home, role: str, *, new_role: bool, there: bool) -> list[str]:
    """The statements that make what is missing, within one transaction. `there`: the schema exists, of another owner."""
    me, schema, within = quoted(role), quoted(home.schema), quoted(home.within)
    out = [home.alone]
    if new_role:
        out += [f"create role {me} nologin nosuperuser nocreatedb nocreaterole", f"grant {me} to current_user"]
    if there:
        out.append(f"alter schema {schema} owner to {me}")
        out.append(_handed_over(home, role))
    else:
        out.append(f"create schema if not exists {schema} authorization {me}")
    out += [
        _migrations(home),
        f"drop function if exists {home.way}(text,text[],int4)",
        f"grant usage, create on schema {within} to {me}",
        f"set local role {me}",
        _way(home),
        f"revoke all on function {home.way}(text,text[],int4) from public",
        "reset role",
        f"revoke all on schema {within} from {me}",
        f"grant execute on function {home.way}(text,text[],int4) to current_user",
    ]
    return out


def _migrations(home: Home) -> str:
    columns = "space text, number int4, checksum text not null, primary key(space, number)"
    return f"create table if not exists {home.migrations}({columns})"


def _handed_over(home: Home, role: str) -> str:
    """Whatever lies in the schema, to the role: a copy restored without its owners belongs to who restored it."""
    kinds = "case c.relkind when 'v' then 'view' when 'S' then 'sequence' when 'm' then 'materialized view' else 'table' end"
    return (
        "do $do$ declare r record; begin for r in"
        f" select {kinds} as kind, c.oid::regclass::text as name from pg_catalog.pg_class c"
        f" where c.relnamespace={literal(quoted(home.schema))}::regnamespace and c.relkind in ('r','p','v','m','S')"
        " and not exists(select from pg_catalog.pg_depend d where d.objid=c.oid and d.deptype in ('a','i'))"
        f" loop execute format('alter %s %s owner to {quoted(role)}', r.kind, r.name); end loop; end $do$"
    )


_BODY = f"""
-- 1: told apart by this text, with what `_way` says around it
declare
  r record;
  n bigint := 0;
  size bigint := 0;
begin
  if most is null then
    execute statement using given;
    get diagnostics n = row_count;
    line := null;
    changed := n;
    return next;
    return;
  end if;
  for r in execute statement using given loop
    line := pg_catalog.row_to_json(r)::text;
    size := size + pg_catalog.octet_length(line);
    if size > {FETCH_AT_MOST} then
      raise exception using errcode = '{TOO_MUCH}', message = 'too much';
    end if;
    n := n + 1;
    changed := n;
    return next;
    exit when n >= most;
  end loop;
end
"""


def _way(home: Home) -> str:
    """A statement's rows as JSON, at most so many; without `most` only how many rows it touched."""
    return (
        f"create function {home.way}(statement text, given text[], most int4) returns table(line text, changed bigint)"
        f" language plpgsql volatile security definer set search_path = {quoted(home.schema)}, pg_temp"
        f" set standard_conforming_strings = on set timezone = 'UTC' set enable_seqscan = on as {literal(_BODY)}"
    )


def literal(text: str) -> str:
    """Text of ours within a statement of ours."""
    doubled = text.replace("'", "''")
    return f"'{doubled}'"
