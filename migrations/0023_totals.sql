-- oldest server: 0.1.0

-- Totals of what a tenant sets up, beside its counts. The version before leaves them empty.
ALTER TABLE "tenant_counts" ADD COLUMN "size" bigint;--> statement-breakpoint
ALTER TABLE "tenant_counts" ADD COLUMN "counted_ms" bigint;
--> statement-breakpoint
-- Two indexes or more begin with the tenant: as in 0012.
alter table rule_triggers alter column tenant_id set statistics 0;
--> statement-breakpoint
alter table rule_destinations alter column tenant_id set statistics 0;
--> statement-breakpoint
alter table user_accounts alter column tenant_id set statistics 0;
--> statement-breakpoint
alter table user_account_groups alter column tenant_id set statistics 0;
