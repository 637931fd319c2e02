CREATE TABLE "stale_watches" (
	"tenant_id" uuid NOT NULL,
	"trigger_name" text collate "C" NOT NULL,
	"entity_id" "bytea" NOT NULL,
	"last_ms" bigint NOT NULL,
	"fired" boolean NOT NULL,
	CONSTRAINT "stale_watches_tenant_id_trigger_name_entity_id_pk" PRIMARY KEY("tenant_id","trigger_name","entity_id")
);
--> statement-breakpoint
ALTER TABLE "stale_watches" ADD CONSTRAINT "stale_watches_trigger_fk" FOREIGN KEY ("tenant_id","trigger_name") REFERENCES "public"."triggers"("tenant_id","name") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "stale_watches_fired" ON "stale_watches" USING btree ("tenant_id","trigger_name","entity_id") WHERE fired;--> statement-breakpoint
-- Triggers that wait for data already are watched from now on.
INSERT INTO "jobs" ("tenant_id", "kind", "id", "payload", "size", "due_ms", "created_ms", "fence", "lease_until_ms", "failures")
SELECT DISTINCT "tenant_id", 'notifications.stale', 'stale', '{}'::jsonb, 1, 0, 0, 0, 0, 0 FROM "triggers" WHERE "source" = 'staleData'
ON CONFLICT DO NOTHING;--> statement-breakpoint
INSERT INTO "due_work" ("tenant_id", "kind", "due_ms")
SELECT DISTINCT "tenant_id", 'notifications.stale', 0 FROM "triggers" WHERE "source" = 'staleData'
ON CONFLICT DO NOTHING;
