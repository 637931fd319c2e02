-- outside of a transaction
-- oldest server: 0.1.0

-- The same indexes with a condition that all rows meet. Where a planner knows nothing of a table, any index that begins with
-- the tenant looks as good as the key's, and it took these for looks-up by key, reading all that waits. An index with a
-- condition is only for statements that name it. The version before goes on without them, by the keys.
CREATE INDEX CONCURRENTLY "due_work_by_due" ON "due_work" USING btree ("kind","due_ms","tenant_id") WHERE due_ms >= 0;
--> statement-breakpoint
CREATE INDEX CONCURRENTLY "jobs_by_due" ON "jobs" USING btree ("tenant_id","kind","due_ms","id") WHERE size >= 0;
--> statement-breakpoint
CREATE INDEX CONCURRENTLY "due_deliveries_by_age" ON "due_deliveries" USING btree ("tenant_id","destination_name","subject","created_ms","id") WHERE created_ms >= 0;
--> statement-breakpoint
CREATE INDEX CONCURRENTLY "due_deliveries_by_due" ON "due_deliveries" USING btree ("tenant_id","destination_name","due_ms","id") WHERE tries >= 0;
--> statement-breakpoint
DROP INDEX CONCURRENTLY IF EXISTS "due_work_due";
--> statement-breakpoint
DROP INDEX CONCURRENTLY IF EXISTS "jobs_due";
--> statement-breakpoint
DROP INDEX CONCURRENTLY IF EXISTS "due_deliveries_order";
--> statement-breakpoint
DROP INDEX CONCURRENTLY IF EXISTS "due_deliveries_due";
