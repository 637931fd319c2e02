CREATE TABLE "annotations" (
	"tenant_id" uuid NOT NULL,
	"event_id" "bytea" NOT NULL,
	"number" integer NOT NULL,
	"id" text collate "C" NOT NULL,
	"text" text collate "C" NOT NULL,
	"created_by" text collate "C" NOT NULL,
	"created_ms" bigint NOT NULL,
	"updated_ms" bigint NOT NULL,
	"place" bigint NOT NULL,
	CONSTRAINT "annotations_tenant_id_event_id_number_id_pk" PRIMARY KEY("tenant_id","event_id","number","id")
);
--> statement-breakpoint
ALTER TABLE "annotations" ADD CONSTRAINT "annotations_tenant_id_event_id_number_occurrences_tenant_id_event_id_number_fk" FOREIGN KEY ("tenant_id","event_id","number") REFERENCES "public"."occurrences"("tenant_id","event_id","number") ON DELETE no action ON UPDATE no action;