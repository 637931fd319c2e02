-- oldest server: 0.1.0

-- Which share of a table a tenant has is not gathered: of a tenant that ANALYZE has not seen PostgreSQL would expect one row, and find
-- rows that are named by key in any index that begins with the tenant. Without statistics it expects a 200th (decisions/0060).
do $$
declare
  name text;
begin
  for name in
    select c.relname from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'tenant_id'
    where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
    order by c.relname
  loop
    execute format('alter table %I alter column tenant_id set statistics 0', name);
  end loop;
end $$;
--> statement-breakpoint
-- 137 µs an entity and more: never cheaper than what the index over terms finds.
alter function entity_terms(uuid, text, jsonb, jsonb, jsonb) cost 10000;
