CREATE TABLE "api_clients" (
	"tenant_id" uuid NOT NULL,
	"id" text collate "C" NOT NULL,
	"name" text collate "C" NOT NULL,
	"type" text collate "C" NOT NULL,
	"role" text collate "C",
	"created_ms" bigint NOT NULL,
	CONSTRAINT "api_clients_tenant_id_id_pk" PRIMARY KEY("tenant_id","id")
);
--> statement-breakpoint
CREATE TABLE "api_key_prefixes" (
	"prefix" text collate "C" PRIMARY KEY NOT NULL,
	"tenant_id" uuid NOT NULL,
	"key_id" text collate "C" NOT NULL
);
--> statement-breakpoint
CREATE TABLE "api_keys" (
	"tenant_id" uuid NOT NULL,
	"id" text collate "C" NOT NULL,
	"client_id" text collate "C" NOT NULL,
	"prefix" text collate "C" NOT NULL,
	"digest" "bytea" NOT NULL,
	"description" text collate "C" NOT NULL,
	"created_ms" bigint NOT NULL,
	"expires_ms" bigint,
	"last_used_ms" bigint,
	CONSTRAINT "api_keys_tenant_id_id_pk" PRIMARY KEY("tenant_id","id"),
	CONSTRAINT "api_keys_prefix" UNIQUE("tenant_id","prefix")
);
--> statement-breakpoint
CREATE TABLE "tenants" (
	"id" uuid PRIMARY KEY NOT NULL,
	"name" text collate "C" NOT NULL,
	"created_ms" bigint NOT NULL,
	CONSTRAINT "tenants_name_unique" UNIQUE("name")
);
--> statement-breakpoint
CREATE TABLE "entities" (
	"tenant_id" uuid NOT NULL,
	"id" "bytea" NOT NULL,
	"name" text collate "C" NOT NULL,
	"dimensions" jsonb NOT NULL,
	"metadata" jsonb NOT NULL,
	"model_ms" bigint,
	"created_ms" bigint NOT NULL,
	"updated_ms" bigint NOT NULL,
	"liveness_ms" bigint NOT NULL,
	"deleted_ms" bigint,
	CONSTRAINT "entities_tenant_id_id_pk" PRIMARY KEY("tenant_id","id")
);
--> statement-breakpoint
CREATE TABLE "events" (
	"tenant_id" uuid NOT NULL,
	"id" "bytea" NOT NULL,
	"entity_id" "bytea" NOT NULL,
	"name" text collate "C" NOT NULL,
	"last_number" integer NOT NULL,
	"last_seen_ms" bigint NOT NULL,
	CONSTRAINT "events_tenant_id_id_pk" PRIMARY KEY("tenant_id","id")
);
--> statement-breakpoint
CREATE TABLE "instances" (
	"tenant_id" uuid NOT NULL,
	"event_id" "bytea" NOT NULL,
	"time_ms" bigint NOT NULL,
	"severity" smallint NOT NULL,
	"status" smallint NOT NULL,
	"number" integer NOT NULL,
	CONSTRAINT "instances_tenant_id_event_id_time_ms_severity_status_pk" PRIMARY KEY("tenant_id","event_id","time_ms","severity","status")
);
--> statement-breakpoint
CREATE TABLE "occurrences" (
	"tenant_id" uuid NOT NULL,
	"event_id" "bytea" NOT NULL,
	"number" integer NOT NULL,
	"severity" smallint NOT NULL,
	"status" smallint NOT NULL,
	"acknowledged" boolean NOT NULL,
	"type" text collate "C" NOT NULL,
	"summary" text collate "C" NOT NULL,
	"body" text collate "C" NOT NULL,
	"metadata" jsonb NOT NULL,
	"start_ms" bigint NOT NULL,
	"last_seen_ms" bigint NOT NULL,
	"end_ms" bigint,
	"instance_count" bigint NOT NULL,
	CONSTRAINT "occurrences_tenant_id_event_id_number_pk" PRIMARY KEY("tenant_id","event_id","number")
);
--> statement-breakpoint
ALTER TABLE "api_clients" ADD CONSTRAINT "api_clients_tenant_id_tenants_id_fk" FOREIGN KEY ("tenant_id") REFERENCES "public"."tenants"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "api_keys" ADD CONSTRAINT "api_keys_tenant_id_client_id_api_clients_tenant_id_id_fk" FOREIGN KEY ("tenant_id","client_id") REFERENCES "public"."api_clients"("tenant_id","id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "events" ADD CONSTRAINT "events_tenant_id_entity_id_entities_tenant_id_id_fk" FOREIGN KEY ("tenant_id","entity_id") REFERENCES "public"."entities"("tenant_id","id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "occurrences" ADD CONSTRAINT "occurrences_tenant_id_event_id_events_tenant_id_id_fk" FOREIGN KEY ("tenant_id","event_id") REFERENCES "public"."events"("tenant_id","id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "api_clients_name" ON "api_clients" USING btree ("tenant_id","name","id");--> statement-breakpoint
CREATE INDEX "api_keys_client" ON "api_keys" USING btree ("tenant_id","client_id","id");--> statement-breakpoint
CREATE INDEX "entities_name" ON "entities" USING btree ("tenant_id","name","id");--> statement-breakpoint
CREATE INDEX "entities_dimensions" ON "entities" USING gin ("tenant_id","dimensions" jsonb_path_ops);--> statement-breakpoint
CREATE INDEX "events_entity" ON "events" USING btree ("tenant_id","entity_id");--> statement-breakpoint
CREATE INDEX "occurrences_last_seen" ON "occurrences" USING btree ("tenant_id","last_seen_ms","event_id","number");