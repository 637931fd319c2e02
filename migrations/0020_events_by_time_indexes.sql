-- outside of a transaction
CREATE INDEX CONCURRENTLY IF NOT EXISTS "occurrences_seen" ON "occurrences" USING btree ("tenant_id","seen_slot");--> statement-breakpoint
CREATE INDEX CONCURRENTLY IF NOT EXISTS "occurrences_start" ON "occurrences" USING btree ("tenant_id","event_id","start_ms","number");
