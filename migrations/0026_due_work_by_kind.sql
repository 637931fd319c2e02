-- outside of a transaction
CREATE INDEX CONCURRENTLY IF NOT EXISTS "due_work_due" ON "due_work" USING btree ("kind","due_ms","tenant_id");
