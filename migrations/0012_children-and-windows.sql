-- outside of a transaction
-- oldest server: 0.1.0

-- Children are found by this index also where nothing is known of a tenant (decisions/0075). The version before reads it in place of
-- the one that goes.
CREATE INDEX CONCURRENTLY "entities_by_parents" ON "entities" USING gin (coalesce(dimensions -> '_svc_parent_entity_id', core_properties -> '_svc_parent_entity_id')) WITH (fastupdate=false) WHERE coalesce(dimensions -> '_svc_parent_entity_id', core_properties -> '_svc_parent_entity_id') is not null;
--> statement-breakpoint
DROP INDEX CONCURRENTLY IF EXISTS "entities_parents";
--> statement-breakpoint
-- Two indexes begin with the tenant, the key's and the name's. Of a tenant that ANALYZE has not seen PostgreSQL would expect one row,
-- and find it by either. Without statistics it expects a 200th of the table, so that the whole key is cheaper, as in 0005.
alter table maintenance_windows alter column tenant_id set statistics 0;
--> statement-breakpoint
alter table property_updaters alter column tenant_id set statistics 0;
