-- The terms of an entity once more, with the same results, so that no index changes. A function that holds queries begins
-- and ends each of them at every call; this one holds none, and takes less than half of the time. Its names are PostgreSQL's
-- own, since the search path may hold no others while an index is made. src/entities/terms.ts spells the same.
create or replace function entity_terms(tenant_id uuid, name text, dimensions jsonb, core_properties jsonb, custom_properties jsonb) returns tsvector
language plpgsql immutable strict parallel safe
as $$
declare
  tenant constant text := right(tenant_id::text, 8);
  lowered constant text := lower(name collate "pg_c_utf8");
  pairs constant text := dimensions::text;
  terms text[] := '{}';
  members jsonb;
  member jsonb;
  field text;
  items jsonb;
  item jsonb;
  kind text;
  content text;
  number float8;
begin
  for place in 1 .. length(lowered) - 2 loop
    terms := array_append(terms, tenant || 'n' || substr(lowered, place, 3));
  end loop;

  -- The pairs of the JSON text as PostgreSQL prints it: cut where it joins them while it is short. A lexeme may have 2046 bytes.
  if octet_length(pairs) < 2000 then
    terms := terms || string_to_array(
      tenant || 'd' || replace(substr(pairs, 3, greatest(length(pairs) - 4, 0)), '", "', e'\n' || tenant || 'd'), e'\n');
  else
    members := jsonb_path_query_array(dimensions, '$.keyvalue()');
    for i in 0 .. jsonb_array_length(members) - 1 loop
      content := jsonb_build_object(members -> i ->> 'key', members -> i -> 'value')::text;
      terms := array_append(terms, tenant || 'd' || left(substr(content, 3, length(content) - 4), 400));
    end loop;
  end if;

  for source in 1 .. 2 loop
    members := jsonb_path_query_array(case source when 1 then core_properties else custom_properties end, '$.keyvalue()');
    for i in 0 .. jsonb_array_length(members) - 1 loop
      member := members -> i;
      field := member ->> 'key';
      field := tenant || case source when 1 then 'm' else 'c' end || length(field) || ':' || left(field, 100);
      items := member -> 'value';
      if jsonb_typeof(items) <> 'array' then items := jsonb_build_array(items); end if;
      for j in 0 .. jsonb_array_length(items) - 1 loop
        item := items -> j;
        kind := jsonb_typeof(item);
        content := item #>> '{}';
        if kind = 'string' then
          terms := array_append(terms, field || 't' || left(content, 64));
          if content collate "C" < ':' and content ~ '^-?(0|[1-9][0-9]*)([.][0-9]+)?([eE][+-]?[0-9]+)?$'
            and pg_input_is_valid(content, 'float8') then
            number := content::float8;
            terms := array_append(terms,
              field || case when number < 0 then 'X' else 'x' end || encode(float8send(abs(number)), 'hex'));
          end if;
        elsif kind = 'number' then
          number := content::float8;
          terms := array_append(terms,
            field || case when number < 0 then 'N' else 'n' end || encode(float8send(abs(number)), 'hex'));
        elsif kind = 'boolean' then
          terms := array_append(terms, field || 'b' || content);
        end if;
      end loop;
    end loop;
  end loop;
  return array_to_tsvector(terms);
end
$$;
--> statement-breakpoint
drop function property_terms(text, jsonb);
--> statement-breakpoint
drop function dimension_terms(text, jsonb);
