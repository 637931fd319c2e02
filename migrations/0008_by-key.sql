-- outside of a transaction
-- oldest server: 0.1.0

-- Statements that store take the tenant from its row here (decisions/0064). Servers before this one made it late.
insert into tenant_state (tenant_id) select id from tenants on conflict do nothing;
--> statement-breakpoint
CREATE INDEX CONCURRENTLY "occurrences_open" ON "occurrences" USING btree ("tenant_id","severity","seen_slot") WHERE end_ms is null and number >= 0;
