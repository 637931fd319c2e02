CREATE TABLE "audit_entries" (
	"tenant_id" uuid NOT NULL,
	"id" text collate "C" NOT NULL,
	"time_ms" bigint NOT NULL,
	"client_id" text collate "C" NOT NULL,
	"client_name" text collate "C" NOT NULL,
	"rpc" text collate "C" NOT NULL,
	"method" text collate "C" NOT NULL,
	"resource" text collate "C" NOT NULL,
	"outcome" text collate "C" NOT NULL,
	"request_id" text collate "C" NOT NULL,
	CONSTRAINT "audit_entries_tenant_id_id_pk" PRIMARY KEY("tenant_id","id")
);
--> statement-breakpoint
CREATE INDEX "audit_entries_time" ON "audit_entries" USING btree ("tenant_id","time_ms","id");--> statement-breakpoint
CREATE INDEX "audit_entries_client" ON "audit_entries" USING btree ("tenant_id","client_id","time_ms","id");--> statement-breakpoint
CREATE INDEX "audit_entries_method" ON "audit_entries" USING btree ("tenant_id","method","time_ms","id");