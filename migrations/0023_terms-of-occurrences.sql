-- outside of a transaction
-- oldest server: 0.1.0

-- What searches look up of an occurrence, or of an event with labels of its own: a word of it and its map, each under the end of the
-- tenant's id. jsonb_path_ops makes one hash of a place and what is there, so tenants share no entry. src/events/terms.ts spells the same.
create or replace function tenant_terms(tenant_id uuid, word text, map jsonb) returns jsonb
language plpgsql immutable strict parallel safe
-- Terms are never made of all rows of a tenant (design/statements).
cost 100000
as $$
begin
  return pg_catalog.jsonb_build_object(
    pg_catalog.right(tenant_id::text, 8) || 't', word,
    pg_catalog.right(tenant_id::text, 8) || 'm', map);
end
$$;
--> statement-breakpoint
CREATE INDEX CONCURRENTLY IF NOT EXISTS "occurrences_terms" ON "occurrences" USING gin (tenant_terms(tenant_id, type, metadata) jsonb_path_ops);
--> statement-breakpoint
CREATE INDEX CONCURRENTLY IF NOT EXISTS "events_labels" ON "events" USING gin (tenant_terms(tenant_id, name, alert_labels::jsonb) jsonb_path_ops) WHERE alert_labels is not null;
--> statement-breakpoint
CREATE INDEX CONCURRENTLY IF NOT EXISTS "entities_deleted" ON "entities" USING btree ("tenant_id","name") WHERE deleted_ms is not null;
