-- outside of a transaction
CREATE INDEX CONCURRENTLY IF NOT EXISTS "occurrences_end" ON "occurrences" USING btree ("tenant_id","end_ms");
