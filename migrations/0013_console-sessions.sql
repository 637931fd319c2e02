-- oldest server: 0.1.0

-- Browsers that are logged in, and links that log one in; which key and session each call in the audit log came with.
CREATE TABLE "console_links" (
	"tenant_id" uuid NOT NULL,
	"id" text collate "C" NOT NULL,
	"key_id" text collate "C" NOT NULL,
	"digest" "bytea" NOT NULL,
	"expires_ms" bigint NOT NULL,
	CONSTRAINT "console_links_tenant_id_id_pk" PRIMARY KEY("tenant_id","id")
);
--> statement-breakpoint
CREATE TABLE "console_sessions" (
	"tenant_id" uuid NOT NULL,
	"id" text collate "C" NOT NULL,
	"key_id" text collate "C" NOT NULL,
	"digest" "bytea" NOT NULL,
	"created_ms" bigint NOT NULL,
	"last_used_ms" bigint NOT NULL,
	CONSTRAINT "console_sessions_tenant_id_id_pk" PRIMARY KEY("tenant_id","id")
);
--> statement-breakpoint
ALTER TABLE "audit_entries" ADD COLUMN "key_prefix" text collate "C";--> statement-breakpoint
ALTER TABLE "audit_entries" ADD COLUMN "session_id" text collate "C";--> statement-breakpoint
ALTER TABLE "tenant_state" ADD COLUMN "first_session_ms" bigint;--> statement-breakpoint
ALTER TABLE "console_links" ADD CONSTRAINT "console_links_tenant_id_key_id_api_keys_tenant_id_id_fk" FOREIGN KEY ("tenant_id","key_id") REFERENCES "api_keys"("tenant_id","id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "console_sessions" ADD CONSTRAINT "console_sessions_tenant_id_key_id_api_keys_tenant_id_id_fk" FOREIGN KEY ("tenant_id","key_id") REFERENCES "api_keys"("tenant_id","id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "console_links_key" ON "console_links" USING btree ("tenant_id","key_id");--> statement-breakpoint
CREATE INDEX "console_sessions_key" ON "console_sessions" USING btree ("tenant_id","key_id","created_ms","id");
--> statement-breakpoint
-- Two indexes begin with the tenant: as in 0012.
alter table console_links alter column tenant_id set statistics 0;
--> statement-breakpoint
alter table console_sessions alter column tenant_id set statistics 0;
