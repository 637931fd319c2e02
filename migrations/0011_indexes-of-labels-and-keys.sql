-- outside of a transaction
-- oldest server: 0.1.0

CREATE INDEX CONCURRENTLY "events_key" ON "events" USING btree ("tenant_id","dedup_key","id") WHERE dedup_key is not null;
--> statement-breakpoint
CREATE INDEX CONCURRENTLY "occurrences_expiry" ON "occurrences" USING btree ("tenant_id","expires_ms","event_id") WHERE end_ms is null and expires_ms is not null;
--> statement-breakpoint
CREATE UNIQUE INDEX CONCURRENTLY "series_identity" ON "series" USING btree ("tenant_id","entity_id","metric","labels_begin","labels_hash");
--> statement-breakpoint
DROP INDEX CONCURRENTLY IF EXISTS "series_entity";
