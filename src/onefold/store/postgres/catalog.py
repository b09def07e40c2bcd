"""store.postgres.catalog - what an author has made in their schema, as the statements that make it again.

For: questions to the server's catalog, each with the schema as `$1`, whose rows are SQL. An author can make tables,
indexes, views, sequences, types and domains, and nothing else (law).
Never: runs anything; names the schema: the caller's search path is that schema alone.
Was wrong once: foreign keys beside their tables. The table that they name came later.
"""

from __future__ import annotations

from typing import Final

_SCHEMA: Final = "to_regnamespace(quote_ident($1::text))"

_TYPES: Final = f"""
select case t.typtype
  when 'e' then 'CREATE TYPE ' || quote_ident(t.typname) || ' AS ENUM (' || coalesce((
    select string_agg(quote_literal(e.enumlabel), ', ' order by e.enumsortorder)
    from pg_enum e where e.enumtypid=t.oid), '') || ');'
  when 'c' then 'CREATE TYPE ' || quote_ident(t.typname) || ' AS (' || coalesce((
    select string_agg(quote_ident(a.attname) || ' ' || format_type(a.atttypid, a.atttypmod), ', ' order by a.attnum)
    from pg_attribute a where a.attrelid=t.typrelid and a.attnum>0 and not a.attisdropped), '') || ');'
  when 'r' then 'CREATE TYPE ' || quote_ident(t.typname) || ' AS RANGE (SUBTYPE = ' || (
    select format_type(r.rngsubtype, null) from pg_range r where r.rngtypid=t.oid) || ');'
  else 'CREATE DOMAIN ' || quote_ident(t.typname) || ' AS ' || format_type(t.typbasetype, t.typtypmod)
    || coalesce(' DEFAULT ' || t.typdefault, '') || case when t.typnotnull then ' NOT NULL' else '' end
    || coalesce((select string_agg(' CONSTRAINT ' || quote_ident(c.conname) || ' ' || pg_get_constraintdef(c.oid), ''
      order by c.conname) from pg_constraint c where c.contypid=t.oid and c.contype='c'), '') || ';'
  end
from pg_type t left join pg_class k on k.oid=t.typrelid
where t.typnamespace={_SCHEMA} and (t.typtype in ('e','d','r') or (t.typtype='c' and k.relkind='c')) order by t.oid"""

_OWN_SEQUENCE: Final = """exists(select from pg_depend d where d.classid='pg_class'::regclass and d.objid=c.oid
  and d.deptype='i' and d.refobjsubid>0)"""

_MADE_SEQUENCES: Final = f"""
select 'CREATE SEQUENCE ' || quote_ident(c.relname) || ' AS ' || format_type(s.seqtypid, null)
  || ' INCREMENT BY ' || s.seqincrement || ' MINVALUE ' || s.seqmin || ' MAXVALUE ' || s.seqmax
  || ' START WITH ' || s.seqstart || ' CACHE ' || s.seqcache || case when s.seqcycle then ' CYCLE;' else ';' end
from pg_sequence s join pg_class c on c.oid=s.seqrelid
where c.relnamespace={_SCHEMA} and not {_OWN_SEQUENCE} order by c.oid"""

_COLUMN: Final = """
  quote_ident(a.attname) || ' ' || format_type(a.atttypid, a.atttypmod)
  || case when a.attcollation<>0 and a.attcollation<>(select t.typcollation from pg_type t where t.oid=a.atttypid)
     then ' COLLATE ' || a.attcollation::regcollation::text else '' end
  || case
     when a.attgenerated<>'' then ' GENERATED ALWAYS AS (' || pg_get_expr(d.adbin, d.adrelid) || ')'
       || case a.attgenerated when 's' then ' STORED' else ' VIRTUAL' end
     when a.attidentity<>'' then ' GENERATED ' || case a.attidentity when 'a' then 'ALWAYS' else 'BY DEFAULT' end
       || ' AS IDENTITY' || coalesce((select ' (INCREMENT BY ' || s.seqincrement || ' MINVALUE ' || s.seqmin
         || ' MAXVALUE ' || s.seqmax || ' START WITH ' || s.seqstart || ')'
         from pg_sequence s where s.seqrelid=pg_get_serial_sequence(quote_ident(c.relname), a.attname)::regclass), '')
     when d.adbin is not null then ' DEFAULT ' || pg_get_expr(d.adbin, d.adrelid) else '' end
  || case when a.attnotnull then ' NOT NULL' else '' end"""

_TABLES: Final = f"""
select 'CREATE TABLE ' || quote_ident(c.relname)
  || case when c.relispartition then ' PARTITION OF ' || (
      select i.inhparent::regclass::text from pg_inherits i where i.inhrelid=c.oid)
      || ' ' || pg_get_expr(c.relpartbound, c.oid)
    else ' (' || coalesce((select string_agg(E'\\n  ' || {_COLUMN}, ',' order by a.attnum)
      from pg_attribute a left join pg_attrdef d on d.adrelid=a.attrelid and d.adnum=a.attnum
      where a.attrelid=c.oid and a.attnum>0 and not a.attisdropped and a.attislocal), '') || E'\\n)'
      || coalesce((select ' INHERITS (' || string_agg(i.inhparent::regclass::text, ', ' order by i.inhseqno) || ')'
        from pg_inherits i where i.inhrelid=c.oid), '')
    end
  || case when c.relkind='p' then ' PARTITION BY ' || pg_get_partkeydef(c.oid) else '' end || ';'
from pg_class c where c.relnamespace={_SCHEMA} and c.relkind in ('r','p') order by c.oid"""

STARTS: Final = (_TYPES, _MADE_SEQUENCES, _TABLES)
"""What stands before the rows."""

STORED: Final = f"""
select quote_ident(c.relname), coalesce(array_agg(quote_ident(a.attname) order by a.attnum)
  filter (where a.attgenerated=''), '{{}}'), coalesce(bool_or(a.attidentity='a'), false)
from pg_class c left join pg_attribute a on a.attrelid=c.oid and a.attnum>0 and not a.attisdropped
where c.relnamespace={_SCHEMA} and c.relkind='r' group by c.oid, c.relname order by c.oid"""
"""Each table that holds rows: its columns that are not computed, and whether one numbers itself in any case."""

KEYS: Final = f"""
select c.relname::text, quote_ident(c.relname), coalesce((
    select array_agg(v order by a.attnum, part) from pg_attribute a
    join pg_type t on t.oid=a.atttypid, lateral (values (1, a.attname::text),
      (2, (case when t.typtype='d' then t.typbasetype else a.atttypid end)::int8::text)) as l(part, v)
    where a.attrelid=c.oid and a.attnum>0 and not a.attisdropped), '{{}}'),
  coalesce((select array_agg(a.attname::text order by k.at) from pg_index i
    cross join lateral unnest(i.indkey) with ordinality as k(attnum, at)
    join pg_attribute a on a.attrelid=i.indrelid and a.attnum=k.attnum
    where i.indrelid=c.oid and i.indisprimary and k.at<=i.indnkeyatts), '{{}}')
from pg_class c where c.relnamespace={_SCHEMA} and c.relkind='r' order by c.oid"""
"""Each table that holds rows: its name, the same quoted, its columns (a name, then its type's OID), its primary key."""

SEQUENCES: Final = (
    f"select quote_ident(c.relname) from pg_class c where c.relnamespace={_SCHEMA} and c.relkind='S' order by c.oid"
)

OWNED: Final = f"""
select 'ALTER SEQUENCE ' || quote_ident(c.relname) || ' OWNED BY ' || d.refobjid::regclass::text || '.'
  || quote_ident(a.attname) || ';'
from pg_class c join pg_depend d on d.classid='pg_class'::regclass and d.objid=c.oid and d.deptype='a'
  and d.refobjsubid>0 join pg_attribute a on a.attrelid=d.refobjid and a.attnum=d.refobjsubid
where c.relnamespace={_SCHEMA} and c.relkind='S' order by c.oid"""

_CONSTRAINTS: Final = """
select 'ALTER TABLE ' || quote_ident(c.relname) || ' ADD CONSTRAINT ' || quote_ident(k.conname) || ' '
  || pg_get_constraintdef(k.oid, true) || ';'
from pg_constraint k join pg_class c on c.oid=k.conrelid
where k.connamespace={schema} and k.contype in ({kinds}) and k.conparentid=0 and k.conislocal order by k.contype desc, k.oid"""

ENDS: Final = (
    _CONSTRAINTS.format(schema=_SCHEMA, kinds="'p','u','x','c'"),
    _CONSTRAINTS.format(schema=_SCHEMA, kinds="'f'"),
)
"""What holds of the rows: it is said once they are there."""

INDEXES: Final = f"""
select case c.relkind when 'I' then replace(pg_get_indexdef(i.indexrelid, 0, true), ' ON ONLY ', ' ON ')
  else pg_get_indexdef(i.indexrelid, 0, true) end || ';' from pg_index i join pg_class c on c.oid=i.indexrelid
where c.relnamespace={_SCHEMA} and not c.relispartition and not exists(
  select from pg_constraint k where k.conindid=i.indexrelid and k.contype in ('p','u','x')) order by c.oid"""

VIEWS: Final = f"""
with recursive needs as (
  select distinct r.ev_class as view, d.refobjid as other from pg_rewrite r
  join pg_depend d on d.classid='pg_rewrite'::regclass and d.objid=r.oid and d.refclassid='pg_class'::regclass
  join pg_class o on o.oid=d.refobjid and o.relkind='v' where d.refobjid<>r.ev_class
), deep(view, depth) as (
  select c.oid, 0 from pg_class c where c.relnamespace={_SCHEMA} and c.relkind='v'
  union select n.view, d.depth + 1 from deep d join needs n on n.other=d.view
)
select 'CREATE VIEW ' || quote_ident(c.relname) || coalesce(' WITH (' || array_to_string(c.reloptions, ', ') || ')', '')
  || E' AS\\n' || pg_get_viewdef(c.oid, true)
from pg_class c join (select view, max(depth) as depth from deep group by view) d on d.view=c.oid
order by d.depth, c.oid"""
"""Those that others are made of first."""
