CREATE TABLE "due_work" (
	"tenant_id" uuid NOT NULL,
	"kind" text collate "C" NOT NULL,
	"due_ms" bigint NOT NULL,
	CONSTRAINT "due_work_tenant_id_kind_pk" PRIMARY KEY("tenant_id","kind")
);
--> statement-breakpoint
CREATE TABLE "jobs" (
	"tenant_id" uuid NOT NULL,
	"kind" text collate "C" NOT NULL,
	"id" text collate "C" NOT NULL,
	"payload" jsonb NOT NULL,
	"size" integer NOT NULL,
	"due_ms" bigint NOT NULL,
	"created_ms" bigint NOT NULL,
	"fence" bigint NOT NULL,
	"lease_until_ms" bigint NOT NULL,
	"failures" integer NOT NULL,
	CONSTRAINT "jobs_tenant_id_kind_id_pk" PRIMARY KEY("tenant_id","kind","id")
);
--> statement-breakpoint
CREATE TABLE "leases" (
	"name" text collate "C" PRIMARY KEY NOT NULL,
	"holder" text collate "C" NOT NULL,
	"until_ms" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "property_updater_sets" (
	"tenant_id" uuid NOT NULL,
	"version" bigint NOT NULL,
	"enabled" boolean NOT NULL,
	CONSTRAINT "property_updater_sets_tenant_id_pk" PRIMARY KEY("tenant_id")
);
--> statement-breakpoint
CREATE TABLE "property_updaters" (
	"tenant_id" uuid NOT NULL,
	"id" text collate "C" NOT NULL,
	"name" text collate "C" NOT NULL,
	"description" text collate "C" NOT NULL,
	"entity_input" jsonb NOT NULL,
	"properties" jsonb NOT NULL,
	"enabled" boolean NOT NULL,
	"sequence" integer NOT NULL,
	"tags" jsonb NOT NULL,
	"created_ms" bigint NOT NULL,
	"updated_ms" bigint NOT NULL,
	CONSTRAINT "property_updaters_tenant_id_id_pk" PRIMARY KEY("tenant_id","id"),
	CONSTRAINT "property_updaters_name" UNIQUE("tenant_id","name")
);
--> statement-breakpoint
CREATE INDEX "jobs_due" ON "jobs" USING btree ("tenant_id","kind","due_ms","id");--> statement-breakpoint
-- Rows come and go and are claimed where they lie: room on each page, and a vacuum by number, not by share.
ALTER TABLE "jobs" SET (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);
--> statement-breakpoint
ALTER TABLE "due_work" SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);
