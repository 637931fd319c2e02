-- outside of a transaction
-- oldest server: 0.1.0

-- What searches look up of occurrences, and of events with labels of their own. The tenant is a column of the index, so that PostgreSQL
-- never reads all of a tenant's keys beside it, and its list of pending entries is short: PostgreSQL would read all of a tenant's rows
-- before a long one (design/statements).
CREATE INDEX CONCURRENTLY IF NOT EXISTS "occurrences_terms" ON "occurrences" USING gin ("tenant_id","type","metadata" jsonb_path_ops) WITH (gin_pending_list_limit=128);
--> statement-breakpoint
CREATE INDEX CONCURRENTLY IF NOT EXISTS "events_labels" ON "events" USING gin ("tenant_id",(alert_labels::jsonb) jsonb_path_ops) WHERE alert_labels is not null;
--> statement-breakpoint
-- Names of entities that are deleted, on which events still stand; entities_name has the others.
CREATE INDEX CONCURRENTLY IF NOT EXISTS "entities_deleted" ON "entities" USING btree ("tenant_id","name") WHERE deleted_ms is not null;
