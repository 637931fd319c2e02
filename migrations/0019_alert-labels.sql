-- oldest server: 0.1.0

-- The labels of alerts whose metadata do not hold them whole. The version before leaves it empty.
ALTER TABLE "events" ADD COLUMN "alert_labels" json;
--> statement-breakpoint
-- Inserts of selected rows take their tenant from this row; a server of 0.1.0 beside a newer one made tenants without it.
insert into tenant_state (tenant_id) select id from tenants on conflict do nothing;
