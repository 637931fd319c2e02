-- oldest server: 0.1.0

-- Which deliveries a summary reports, so that it ends with the last of their matches; the hosts that credentials without
-- allowedHosts are bound to.
CREATE TABLE "summary_members" (
	"tenant_id" uuid NOT NULL,
	"summary_id" uuid NOT NULL,
	"delivery_id" uuid NOT NULL,
	"created_ms" bigint NOT NULL,
	"destination_name" text collate "C" NOT NULL,
	"subject" "bytea" NOT NULL,
	"rule_id" uuid NOT NULL,
	"of_window" boolean NOT NULL,
	"over" boolean NOT NULL,
	"told" jsonb,
	CONSTRAINT "summary_members_tenant_id_summary_id_delivery_id_pk" PRIMARY KEY("tenant_id","summary_id","delivery_id")
);
--> statement-breakpoint
ALTER TABLE "credentials" ADD COLUMN "bound_hosts" jsonb;--> statement-breakpoint
CREATE INDEX "summary_members_by_subject" ON "summary_members" USING btree ("tenant_id","destination_name","subject") WHERE created_ms >= 0;
--> statement-breakpoint
-- Two indexes begin with the tenant: as in 0012.
alter table summary_members alter column tenant_id set statistics 0;
