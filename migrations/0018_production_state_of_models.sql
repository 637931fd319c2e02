-- outside of a transaction
-- Fills the columns of 0017 from metadata, a thousand rows a transaction in the order of keys. What is cut off begins anew.
do $$
declare
  last_tenant uuid := '00000000-0000-0000-0000-000000000000';
  last_id bytea := '';
begin
  loop
    with portion as materialized (
      select tenant_id, id, metadata from entities
      where (tenant_id, id) > (last_tenant, last_id)
      order by tenant_id, id limit 1000
      for no key update
    ), named as (
      select tenant_id, id,
        case when jsonb_typeof(metadata -> 'productionState') = 'number' then (metadata ->> 'productionState')::numeric end as state,
        case when jsonb_typeof(metadata -> 'priority') = 'number' then (metadata ->> 'priority')::numeric end as priority
      from portion
      where metadata ?| array['productionState', 'priority']
    ), filled as (
      update entities set
        model_production_state = case when state % 1 = 0 and abs(state) <= 9007199254740991 then state::bigint end,
        priority = case when named.priority % 1 = 0 and abs(named.priority) <= 9007199254740991 then named.priority::bigint end
      from named
      where entities.tenant_id = named.tenant_id and entities.id = named.id
    )
    select tenant_id, id into last_tenant, last_id from portion order by tenant_id desc, id desc limit 1;
    exit when not found;
    commit;
  end loop;
end $$;
