-- oldest server: 0.1.0

CREATE TABLE "tenant_counts" (
	"tenant_id" uuid NOT NULL,
	"what" text collate "C" NOT NULL,
	"count" bigint NOT NULL,
	CONSTRAINT "tenant_counts_tenant_id_what_pk" PRIMARY KEY("tenant_id","what")
);
--> statement-breakpoint
ALTER TABLE "entities" ADD COLUMN "idle" boolean;
