-- oldest server: 0.1.0

-- What tells events of one name and series of one metric apart, and when occurrences expire. The version before leaves all of
-- it empty. Defaults that are constants rewrite no table.
ALTER TABLE "events" ADD COLUMN "dedup_key" text collate "C";--> statement-breakpoint
ALTER TABLE "occurrences" ADD COLUMN "expires_ms" bigint;--> statement-breakpoint
ALTER TABLE "series" ADD COLUMN "labels" jsonb;--> statement-breakpoint
ALTER TABLE "series" ADD COLUMN "labels_begin" text collate "C" DEFAULT '' NOT NULL;--> statement-breakpoint
ALTER TABLE "series" ADD COLUMN "labels_hash" "bytea" DEFAULT '\x' NOT NULL;--> statement-breakpoint
ALTER TABLE "rule_matches" ADD COLUMN "metric_labels" jsonb;--> statement-breakpoint
CREATE TABLE "series_labels" (
	"tenant_id" uuid NOT NULL,
	"entity_id" "bytea" NOT NULL,
	"key" text collate "C" NOT NULL,
	"value_begin" text collate "C" NOT NULL,
	"series" bigint NOT NULL,
	CONSTRAINT "series_labels_tenant_id_entity_id_key_value_begin_series_pk" PRIMARY KEY("tenant_id","entity_id","key","value_begin","series")
);
