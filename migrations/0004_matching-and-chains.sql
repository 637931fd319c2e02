-- oldest server: 0.1.0

CREATE TABLE "chain_counts" (
	"tenant_id" uuid NOT NULL,
	"root" uuid NOT NULL,
	"rule_id" uuid NOT NULL,
	"count" integer NOT NULL,
	"delivery_id" uuid,
	"delivery_ms" bigint,
	CONSTRAINT "chain_counts_tenant_id_root_rule_id_pk" PRIMARY KEY("tenant_id","root","rule_id")
);
--> statement-breakpoint
CREATE TABLE "unmatched_changes" (
	"tenant_id" uuid NOT NULL,
	"position" bigint NOT NULL,
	"id" uuid NOT NULL,
	"created_ms" bigint NOT NULL,
	"count" integer NOT NULL,
	"done" integer NOT NULL,
	"bytes" integer NOT NULL,
	"changes" text collate "C" NOT NULL,
	CONSTRAINT "unmatched_changes_tenant_id_position_id_pk" PRIMARY KEY("tenant_id","position","id")
);
--> statement-breakpoint
ALTER TABLE "triggers" ADD COLUMN "comparisons" integer;