-- The terms of an entity once more, with the same results, so that no index changes. What is strict with a body that is
-- not stays a call; before, it became part of the plan of each statement that names it, which took longer to plan than to
-- run.
create or replace function entity_terms(tenant_id uuid, dimensions jsonb, core_properties jsonb, custom_properties jsonb) returns tsvector
language sql immutable strict parallel safe
return array_to_tsvector(
  case
    when octet_length(dimensions::text) < 2000 then string_to_array(
      right(tenant_id::text, 8) || 'd' || replace(
        substr(dimensions::text, 3, greatest(length(dimensions::text) - 4, 0)), '", "', e'\n' || right(tenant_id::text, 8) || 'd'
      ), e'\n')
    else dimension_terms(right(tenant_id::text, 8) || 'd', dimensions)
  end
  || case when core_properties = '{}' then '{}' else property_terms(right(tenant_id::text, 8) || 'm', core_properties) end
  || case when custom_properties = '{}' then '{}' else property_terms(right(tenant_id::text, 8) || 'c', custom_properties) end
);
