-- The terms of properties, by which a search finds them: prefix, length and beginning of the key, the kind of the value
-- and its beginning. Each element of a list has its own. Numbers have 16 hexadecimal digits in the order of their
-- magnitude, so that a range is a few beginnings of terms: n and N are numbers, x and X texts that read as one, the
-- capitals below zero. src/entities/terms.ts spells the same.
create function property_terms(prefix text, properties jsonb) returns text[]
language sql immutable strict parallel safe
return (
  select
    coalesce(array_agg(prefix || field ||
      case kind
        when 'string' then 't' || left(content, 64)
        when 'boolean' then 'b' || content
        else case when content::float8 < 0 then 'N' else 'n' end || encode(float8send(abs(content::float8)), 'hex')
      end), '{}')
    || coalesce(array_agg(prefix || field ||
      case when content::float8 < 0 then 'X' else 'x' end || encode(float8send(abs(content::float8)), 'hex'))
      filter (where kind = 'string' and content collate "C" < ':'
        and content ~ '^-?(0|[1-9][0-9]*)([.][0-9]+)?([eE][+-]?[0-9]+)?$' and pg_input_is_valid(content, 'float8')), '{}')
  from (
    select length(key) || ':' || left(key, 100) as field, jsonb_typeof(item) as kind, item #>> '{}' as content
    from jsonb_each(properties) as property (key, value), jsonb_path_query(value, '$[*]') as listed (item)
  ) as pairs
  where kind in ('string', 'number', 'boolean')
);
--> statement-breakpoint
-- The terms of dimensions: the pairs of the JSON text as PostgreSQL prints it. A lexeme may have 2046 bytes.
create function dimension_terms(prefix text, dimensions jsonb) returns text[]
language sql immutable strict parallel safe
return array(
  select prefix || left(substr(pair, 3, length(pair) - 4), 400)
  from (select jsonb_build_object(key, value)::text as pair from jsonb_each(dimensions)) as pairs
);
--> statement-breakpoint
-- The terms of an entity. All begin with the end of the tenant's id, so that a search reads the terms of one tenant. Those
-- of dimensions that are short come of their JSON text cut where it joins the pairs: a tenth of the time. A function
-- that holds no query becomes part of the statement that calls it.
create function entity_terms(tenant_id uuid, dimensions jsonb, core_properties jsonb, custom_properties jsonb) returns tsvector
language sql immutable parallel safe
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
--> statement-breakpoint
-- The texts of an entity beside its name, for searches within them; case is folded.
create function entity_text(dimensions jsonb, core_properties jsonb, custom_properties jsonb) returns text
language sql immutable parallel safe
return lower((dimensions::text || core_properties::text || custom_properties::text) collate "pg_c_utf8");
--> statement-breakpoint
CREATE TABLE "entity_keys" (
	"tenant_id" uuid NOT NULL,
	"source" text collate "C" NOT NULL,
	"key" text collate "C" NOT NULL,
	CONSTRAINT "entity_keys_tenant_id_source_key_pk" PRIMARY KEY("tenant_id","source","key")
);
--> statement-breakpoint
DROP INDEX "entities_dimensions";--> statement-breakpoint
DROP INDEX "entities_name";--> statement-breakpoint
ALTER TABLE "entities" ADD COLUMN "core_properties" jsonb DEFAULT '{}'::jsonb NOT NULL;--> statement-breakpoint
CREATE INDEX "entities_terms" ON "entities" USING gin ("tenant_id",entity_terms(tenant_id, dimensions, core_properties, custom_properties));--> statement-breakpoint
CREATE INDEX "entities_name_text" ON "entities" USING gin ("tenant_id",lower(name collate "pg_c_utf8") gin_trgm_ops);--> statement-breakpoint
CREATE INDEX "entities_text" ON "entities" USING gin ("tenant_id",entity_text(dimensions, core_properties, custom_properties) gin_trgm_ops);--> statement-breakpoint
CREATE INDEX "entities_name" ON "entities" USING btree ("tenant_id","name","id") WHERE deleted_ms is null;