CREATE TABLE "user_account_groups" (
	"tenant_id" uuid NOT NULL,
	"account_id" text collate "C" NOT NULL,
	"group_name" text collate "C" NOT NULL,
	"place" integer NOT NULL,
	CONSTRAINT "user_account_groups_tenant_id_account_id_group_name_pk" PRIMARY KEY("tenant_id","account_id","group_name")
);
--> statement-breakpoint
CREATE TABLE "user_accounts" (
	"tenant_id" uuid NOT NULL,
	"id" text collate "C" NOT NULL,
	"email" text collate "C" NOT NULL,
	"password_hash" text collate "C" NOT NULL,
	"first_name" text collate "C" NOT NULL,
	"last_name" text collate "C" NOT NULL,
	"created_ms" bigint NOT NULL,
	"updated_ms" bigint NOT NULL,
	CONSTRAINT "user_accounts_tenant_id_id_pk" PRIMARY KEY("tenant_id","id")
);
--> statement-breakpoint
CREATE TABLE "user_groups" (
	"tenant_id" uuid NOT NULL,
	"name" text collate "C" NOT NULL,
	"cloud_roles" jsonb NOT NULL,
	"restriction_filters" jsonb NOT NULL,
	CONSTRAINT "user_groups_tenant_id_name_pk" PRIMARY KEY("tenant_id","name")
);
--> statement-breakpoint
ALTER TABLE "user_account_groups" ADD CONSTRAINT "user_account_groups_account_fk" FOREIGN KEY ("tenant_id","account_id") REFERENCES "public"."user_accounts"("tenant_id","id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "user_account_groups" ADD CONSTRAINT "user_account_groups_group_fk" FOREIGN KEY ("tenant_id","group_name") REFERENCES "public"."user_groups"("tenant_id","name") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "user_account_groups_group" ON "user_account_groups" USING btree ("tenant_id","group_name","account_id");--> statement-breakpoint
CREATE UNIQUE INDEX "user_accounts_email" ON "user_accounts" USING btree ("tenant_id",lower(email collate pg_c_utf8));--> statement-breakpoint
CREATE INDEX "user_accounts_first_name" ON "user_accounts" USING btree ("tenant_id","first_name","id");--> statement-breakpoint
CREATE INDEX "user_accounts_last_name" ON "user_accounts" USING btree ("tenant_id","last_name","id");