CREATE TABLE "destinations" (
	"tenant_id" uuid NOT NULL,
	"name" text collate "C" NOT NULL,
	"description" text collate "C" NOT NULL,
	"tags" jsonb NOT NULL,
	"kind" text collate "C" NOT NULL,
	"type" jsonb NOT NULL,
	"secrets" jsonb NOT NULL,
	"max_per_minute" integer NOT NULL,
	"disabled_reason" text collate "C" NOT NULL,
	"created_ms" bigint NOT NULL,
	CONSTRAINT "destinations_tenant_id_name_pk" PRIMARY KEY("tenant_id","name")
);
--> statement-breakpoint
CREATE TABLE "rule_destinations" (
	"tenant_id" uuid NOT NULL,
	"rule_name" text collate "C" NOT NULL,
	"destination_name" text collate "C" NOT NULL,
	"place" integer NOT NULL,
	CONSTRAINT "rule_destinations_tenant_id_rule_name_destination_name_pk" PRIMARY KEY("tenant_id","rule_name","destination_name")
);
--> statement-breakpoint
CREATE TABLE "rule_triggers" (
	"tenant_id" uuid NOT NULL,
	"rule_name" text collate "C" NOT NULL,
	"trigger_name" text collate "C" NOT NULL,
	"place" integer NOT NULL,
	CONSTRAINT "rule_triggers_tenant_id_rule_name_trigger_name_pk" PRIMARY KEY("tenant_id","rule_name","trigger_name")
);
--> statement-breakpoint
CREATE TABLE "rules" (
	"tenant_id" uuid NOT NULL,
	"name" text collate "C" NOT NULL,
	"description" text collate "C" NOT NULL,
	"enabled" boolean NOT NULL,
	"message" text collate "C" NOT NULL,
	"repeat" boolean NOT NULL,
	"repeat_interval_sec" bigint NOT NULL,
	"delay_sec" integer NOT NULL,
	"send_updates" boolean NOT NULL,
	"mute_during_maintenance" boolean NOT NULL,
	"tags" jsonb NOT NULL,
	"created_ms" bigint NOT NULL,
	CONSTRAINT "rules_tenant_id_name_pk" PRIMARY KEY("tenant_id","name")
);
--> statement-breakpoint
CREATE TABLE "triggers" (
	"tenant_id" uuid NOT NULL,
	"name" text collate "C" NOT NULL,
	"description" text collate "C" NOT NULL,
	"tags" jsonb NOT NULL,
	"source" text collate "C" NOT NULL,
	"type" jsonb NOT NULL,
	"created_ms" bigint NOT NULL,
	CONSTRAINT "triggers_tenant_id_name_pk" PRIMARY KEY("tenant_id","name")
);
--> statement-breakpoint
ALTER TABLE "rule_destinations" ADD CONSTRAINT "rule_destinations_rule_fk" FOREIGN KEY ("tenant_id","rule_name") REFERENCES "public"."rules"("tenant_id","name") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "rule_destinations" ADD CONSTRAINT "rule_destinations_destination_fk" FOREIGN KEY ("tenant_id","destination_name") REFERENCES "public"."destinations"("tenant_id","name") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "rule_triggers" ADD CONSTRAINT "rule_triggers_rule_fk" FOREIGN KEY ("tenant_id","rule_name") REFERENCES "public"."rules"("tenant_id","name") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "rule_triggers" ADD CONSTRAINT "rule_triggers_trigger_fk" FOREIGN KEY ("tenant_id","trigger_name") REFERENCES "public"."triggers"("tenant_id","name") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "rule_destinations_destination" ON "rule_destinations" USING btree ("tenant_id","destination_name","rule_name");--> statement-breakpoint
CREATE INDEX "rule_triggers_trigger" ON "rule_triggers" USING btree ("tenant_id","trigger_name","rule_name");