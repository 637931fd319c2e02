-- oldest server: 0.1.0

-- Silences, and what holds a delivery back until it is due.
CREATE TABLE "silence_subjects" (
	"tenant_id" uuid NOT NULL,
	"silence_id" uuid NOT NULL,
	"subject" "bytea" NOT NULL,
	"event_id" "bytea",
	"number" integer,
	CONSTRAINT "silence_subjects_tenant_id_silence_id_subject_pk" PRIMARY KEY("tenant_id","silence_id","subject")
);
--> statement-breakpoint
CREATE TABLE "silences" (
	"tenant_id" uuid NOT NULL,
	"id" uuid NOT NULL,
	"matchers" text[] collate "C" NOT NULL,
	"parts" jsonb NOT NULL,
	"canonical" text[] collate "C" NOT NULL,
	"starts_ms" bigint NOT NULL,
	"ends_ms" bigint,
	"until_resolved" boolean NOT NULL,
	"judged" boolean NOT NULL,
	"rule_names" text[] collate "C" NOT NULL,
	"destination_names" text[] collate "C" NOT NULL,
	"comment" text collate "C" NOT NULL,
	"created_by" text collate "C" NOT NULL,
	"client_id" text collate "C" NOT NULL,
	"client_name" text collate "C" NOT NULL,
	"key_prefix" text collate "C" NOT NULL,
	"created_ms" bigint NOT NULL,
	"updated_ms" bigint NOT NULL,
	CONSTRAINT "silences_tenant_id_id_pk" PRIMARY KEY("tenant_id","id")
);
--> statement-breakpoint
ALTER TABLE "due_deliveries" ADD COLUMN "silence_id" uuid;--> statement-breakpoint
ALTER TABLE "rules" ADD COLUMN "matchers" text[] collate "C" DEFAULT '{}' NOT NULL;--> statement-breakpoint
CREATE INDEX "silences_by_age" ON "silences" USING btree ("tenant_id","created_ms","id");--> statement-breakpoint
CREATE INDEX "silences_by_end" ON "silences" USING btree ("tenant_id","ends_ms");--> statement-breakpoint
-- Two indexes begin with the tenant: as in 0012.
alter table silences alter column tenant_id set statistics 0;
