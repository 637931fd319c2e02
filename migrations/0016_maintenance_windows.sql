CREATE TABLE "maintenance_members" (
	"tenant_id" uuid NOT NULL,
	"entity_id" "bytea" NOT NULL,
	"window_id" text collate "C" NOT NULL,
	"run_start_ms" bigint NOT NULL,
	"version" bigint NOT NULL,
	"state" integer NOT NULL,
	"exit_state" integer,
	CONSTRAINT "maintenance_members_tenant_id_entity_id_window_id_pk" PRIMARY KEY("tenant_id","entity_id","window_id")
);
--> statement-breakpoint
CREATE TABLE "maintenance_targets" (
	"tenant_id" uuid NOT NULL,
	"window_id" text collate "C" NOT NULL,
	"place" bigint NOT NULL,
	"ids" "bytea" NOT NULL,
	CONSTRAINT "maintenance_targets_tenant_id_window_id_place_pk" PRIMARY KEY("tenant_id","window_id","place")
);
--> statement-breakpoint
CREATE TABLE "maintenance_windows" (
	"tenant_id" uuid NOT NULL,
	"id" text collate "C" NOT NULL,
	"name" text collate "C" NOT NULL,
	"description" text collate "C" NOT NULL,
	"owner" text collate "C" NOT NULL,
	"tags" jsonb NOT NULL,
	"clause" jsonb NOT NULL,
	"schedule" jsonb NOT NULL,
	"notification" jsonb,
	"run_mode" smallint NOT NULL,
	"status" smallint NOT NULL,
	"maintenance_state" integer NOT NULL,
	"exit_state" integer NOT NULL,
	"override_exit_state" boolean NOT NULL,
	"force" boolean NOT NULL,
	"do_not_propagate_to_children" boolean NOT NULL,
	"created_ms" bigint NOT NULL,
	"updated_ms" bigint NOT NULL,
	"created_by" text collate "C" NOT NULL,
	"updated_by" text collate "C" NOT NULL,
	"run_state" smallint NOT NULL,
	"skip_next" integer NOT NULL,
	"handled_ms" bigint,
	"next_due_ms" bigint,
	"next_start_ms" bigint,
	"run_start_ms" bigint,
	"run_end_ms" bigint,
	"version" bigint NOT NULL,
	CONSTRAINT "maintenance_windows_tenant_id_id_pk" PRIMARY KEY("tenant_id","id"),
	CONSTRAINT "maintenance_windows_name" UNIQUE("tenant_id","name")
);
--> statement-breakpoint
CREATE INDEX "maintenance_members_window" ON "maintenance_members" USING btree ("tenant_id","window_id","run_start_ms","version");