CREATE TABLE "credential_uses" (
	"tenant_id" uuid NOT NULL,
	"credential_id" text collate "C" NOT NULL,
	"kind" text collate "C" NOT NULL,
	"used_by" text collate "C" NOT NULL,
	CONSTRAINT "credential_uses_tenant_id_credential_id_kind_used_by_pk" PRIMARY KEY("tenant_id","credential_id","kind","used_by")
);
--> statement-breakpoint
CREATE TABLE "credentials" (
	"tenant_id" uuid NOT NULL,
	"id" text collate "C" NOT NULL,
	"name" text collate "C" NOT NULL,
	"type" text collate "C" NOT NULL,
	"description" text collate "C" NOT NULL,
	"tags" jsonb NOT NULL,
	"allowed_api_clients" jsonb NOT NULL,
	"secrets" jsonb NOT NULL,
	CONSTRAINT "credentials_tenant_id_id_pk" PRIMARY KEY("tenant_id","id")
);
--> statement-breakpoint
CREATE TABLE "data_keys" (
	"tenant_id" uuid NOT NULL,
	"master_key_id" text collate "C" NOT NULL,
	"wrapped" "bytea" NOT NULL,
	CONSTRAINT "data_keys_tenant_id_pk" PRIMARY KEY("tenant_id")
);
--> statement-breakpoint
CREATE TABLE "master_keys" (
	"id" text collate "C" PRIMARY KEY NOT NULL,
	"proof" "bytea" NOT NULL,
	"current" boolean NOT NULL
);
--> statement-breakpoint
ALTER TABLE "credential_uses" ADD CONSTRAINT "credential_uses_credential_fk" FOREIGN KEY ("tenant_id","credential_id") REFERENCES "public"."credentials"("tenant_id","id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "credential_uses_user" ON "credential_uses" USING btree ("tenant_id","kind","used_by");--> statement-breakpoint
CREATE INDEX "credentials_name" ON "credentials" USING btree ("tenant_id","name","id");--> statement-breakpoint
CREATE UNIQUE INDEX "master_keys_current" ON "master_keys" USING btree ("current") WHERE "master_keys"."current";