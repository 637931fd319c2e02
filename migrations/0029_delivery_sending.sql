-- outside of a transaction
CREATE TABLE IF NOT EXISTS "delivery_counts" (
	"tenant_id" uuid NOT NULL,
	"about" text collate "C" NOT NULL,
	"name" text collate "C" NOT NULL,
	"slot_ms" bigint NOT NULL,
	"count" integer NOT NULL,
	CONSTRAINT "delivery_counts_tenant_id_about_name_slot_ms_pk" PRIMARY KEY("tenant_id","about","name","slot_ms")
);
--> statement-breakpoint
CREATE INDEX CONCURRENTLY IF NOT EXISTS "due_deliveries_due" ON "due_deliveries" USING btree ("tenant_id","destination_name","due_ms","id");