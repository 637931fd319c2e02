CREATE TABLE "delivery_history" (
	"tenant_id" uuid NOT NULL,
	"id" uuid NOT NULL,
	"created_ms" bigint NOT NULL,
	"rule_id" uuid NOT NULL,
	"rule_name" text collate "C" NOT NULL,
	"trigger_names" text[] collate "C" NOT NULL,
	"destination_name" text collate "C" NOT NULL,
	"subject" "bytea" NOT NULL,
	"event_id" "bytea",
	"number" integer,
	"entity_id" "bytea",
	"metric_name" text collate "C",
	"occasion" text collate "C" NOT NULL,
	"told" jsonb NOT NULL,
	"attempts" jsonb NOT NULL,
	"error" text collate "C" NOT NULL,
	"status" text collate "C" NOT NULL,
	"ended_ms" bigint NOT NULL,
	CONSTRAINT "delivery_history_tenant_id_created_ms_id_pk" PRIMARY KEY("tenant_id","created_ms","id")
) PARTITION BY RANGE ("created_ms");
--> statement-breakpoint
CREATE TABLE "delivery_threads" (
	"tenant_id" uuid NOT NULL,
	"destination_name" text collate "C" NOT NULL,
	"subject" "bytea" NOT NULL,
	"state" jsonb NOT NULL,
	"sent" boolean NOT NULL,
	"updated_ms" bigint NOT NULL,
	CONSTRAINT "delivery_threads_tenant_id_destination_name_subject_pk" PRIMARY KEY("tenant_id","destination_name","subject")
);
--> statement-breakpoint
CREATE TABLE "destination_states" (
	"tenant_id" uuid NOT NULL,
	"destination_name" text collate "C" NOT NULL,
	"failures" integer NOT NULL,
	"opened" integer NOT NULL,
	"open_until_ms" bigint NOT NULL,
	"probe_until_ms" bigint NOT NULL,
	"allowed_ms" bigint NOT NULL,
	"minute_ms" bigint NOT NULL,
	"minute_count" integer NOT NULL,
	"summary_ms" bigint NOT NULL,
	CONSTRAINT "destination_states_tenant_id_destination_name_pk" PRIMARY KEY("tenant_id","destination_name")
) WITH (fillfactor = 50);
--> statement-breakpoint
CREATE TABLE "due_deliveries" (
	"tenant_id" uuid NOT NULL,
	"id" uuid NOT NULL,
	"created_ms" bigint NOT NULL,
	"rule_id" uuid NOT NULL,
	"rule_name" text collate "C" NOT NULL,
	"trigger_names" text[] collate "C" NOT NULL,
	"destination_name" text collate "C" NOT NULL,
	"subject" "bytea" NOT NULL,
	"event_id" "bytea",
	"number" integer,
	"entity_id" "bytea",
	"metric_name" text collate "C",
	"occasion" text collate "C" NOT NULL,
	"told" jsonb NOT NULL,
	"attempts" jsonb NOT NULL,
	"error" text collate "C" NOT NULL,
	"due_ms" bigint NOT NULL,
	"lease_until_ms" bigint NOT NULL,
	"fence" bigint NOT NULL,
	"tries" integer NOT NULL,
	"slow_tries" integer NOT NULL,
	"retried_ms" bigint,
	CONSTRAINT "due_deliveries_tenant_id_id_pk" PRIMARY KEY("tenant_id","id")
)
-- Rows come and go and are claimed where they lie: room on each page, and a vacuum by number, not by share.
WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);
--> statement-breakpoint
CREATE TABLE "rule_matches" (
	"tenant_id" uuid NOT NULL,
	"subject" "bytea" NOT NULL,
	"rule_id" uuid NOT NULL,
	"entity_id" "bytea" NOT NULL,
	"event_id" "bytea",
	"number" integer,
	"metric_name" text collate "C",
	"trigger_names" text[] collate "C" NOT NULL,
	"standing" boolean NOT NULL,
	"muted" boolean NOT NULL,
	"chain" text[] collate "C" NOT NULL,
	"severity" smallint,
	"status" smallint,
	"acknowledged" boolean,
	"value" double precision,
	"value_ms" bigint,
	"matched_ms" bigint NOT NULL,
	"first_due_ms" bigint,
	"notified_ms" bigint,
	"last_ms" bigint NOT NULL,
	CONSTRAINT "rule_matches_tenant_id_subject_rule_id_pk" PRIMARY KEY("tenant_id","subject","rule_id")
) WITH (fillfactor = 70);
--> statement-breakpoint
ALTER TABLE "rules" ADD COLUMN "id" uuid DEFAULT gen_random_uuid() NOT NULL;--> statement-breakpoint
ALTER TABLE "destination_states" ADD CONSTRAINT "destination_states_destination_fk" FOREIGN KEY ("tenant_id","destination_name") REFERENCES "public"."destinations"("tenant_id","name") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "due_deliveries_order" ON "due_deliveries" USING btree ("tenant_id","destination_name","subject","created_ms","id");--> statement-breakpoint
CREATE INDEX "rule_matches_muted" ON "rule_matches" USING btree ("tenant_id","entity_id") WHERE muted;