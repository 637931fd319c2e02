CREATE TABLE "metric_chunks" (
	"tenant_id" uuid NOT NULL,
	"series" bigint NOT NULL,
	"first_ms" bigint NOT NULL,
	"last_ms" bigint NOT NULL,
	"points" integer NOT NULL,
	"chunk" "bytea" NOT NULL,
	CONSTRAINT "metric_chunks_tenant_id_series_first_ms_pk" PRIMARY KEY("tenant_id","series","first_ms")
) PARTITION BY RANGE ("first_ms");
--> statement-breakpoint
-- Compressed already. Out of line, so that what looks at times alone reads few pages.
ALTER TABLE "metric_chunks" ALTER COLUMN "chunk" SET STORAGE EXTERNAL;
--> statement-breakpoint
CREATE TABLE "metric_heads" (
	"tenant_id" uuid NOT NULL,
	"bucket" smallint NOT NULL,
	"written_us" bigint NOT NULL,
	"part" integer NOT NULL,
	"level" smallint NOT NULL,
	"first_series" bigint NOT NULL,
	"last_series" bigint NOT NULL,
	"first_ms" bigint NOT NULL,
	"last_ms" bigint NOT NULL,
	"points" integer NOT NULL,
	"block" "bytea" NOT NULL,
	CONSTRAINT "metric_heads_tenant_id_bucket_written_us_part_pk" PRIMARY KEY("tenant_id","bucket","written_us","part")
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_insert_scale_factor = 0.5,
	toast.autovacuum_vacuum_scale_factor = 0.05);
--> statement-breakpoint
ALTER TABLE "metric_heads" ALTER COLUMN "block" SET STORAGE EXTERNAL;
--> statement-breakpoint
CREATE TABLE "series" (
	"tenant_id" uuid NOT NULL,
	"number" bigint NOT NULL,
	"entity_id" "bytea" NOT NULL,
	"metric" text collate "C" NOT NULL,
	"units" text collate "C" NOT NULL,
	"description" text collate "C" NOT NULL,
	"created_ms" bigint NOT NULL,
	"unused_ms" bigint,
	CONSTRAINT "series_tenant_id_number_pk" PRIMARY KEY("tenant_id","number")
);
--> statement-breakpoint
CREATE TABLE "series_counts" (
	"tenant_id" uuid NOT NULL,
	"last_number" bigint NOT NULL,
	"count" bigint NOT NULL,
	CONSTRAINT "series_counts_tenant_id_pk" PRIMARY KEY("tenant_id")
);
--> statement-breakpoint
CREATE UNIQUE INDEX "series_entity" ON "series" USING btree ("tenant_id","entity_id","metric");
