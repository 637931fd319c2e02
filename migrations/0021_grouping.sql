-- oldest server: 0.1.0

-- Groups of what rules match, and the messages that report them. The version before leaves them empty, and notifies each match by itself.
CREATE TABLE "alert_groups" (
	"tenant_id" uuid NOT NULL,
	"rule_id" uuid NOT NULL,
	"group_key" "bytea" NOT NULL,
	"labels" json NOT NULL,
	"flushed_ms" bigint,
	"due_ms" bigint,
	"repeat_ms" bigint,
	"opened_ms" bigint,
	"last_ms" bigint NOT NULL,
	"open_at" text[] collate "C" NOT NULL,
	"held" boolean NOT NULL,
	CONSTRAINT "alert_groups_tenant_id_rule_id_group_key_pk" PRIMARY KEY("tenant_id","rule_id","group_key")
);
--> statement-breakpoint
CREATE TABLE "group_members" (
	"tenant_id" uuid NOT NULL,
	"rule_id" uuid NOT NULL,
	"group_key" "bytea" NOT NULL,
	"member" "bytea" NOT NULL,
	"subject" "bytea" NOT NULL,
	"joins_ms" bigint NOT NULL,
	"sent_to" text[] collate "C" NOT NULL,
	CONSTRAINT "group_members_tenant_id_rule_id_group_key_member_pk" PRIMARY KEY("tenant_id","rule_id","group_key","member")
);
--> statement-breakpoint
CREATE TABLE "group_message_members" (
	"tenant_id" uuid NOT NULL,
	"message_id" uuid NOT NULL,
	"place" integer NOT NULL,
	"subject" "bytea" NOT NULL,
	"event_id" "bytea",
	"number" integer,
	"entity_id" "bytea" NOT NULL,
	"resolved" boolean NOT NULL,
	CONSTRAINT "group_message_members_tenant_id_message_id_place_pk" PRIMARY KEY("tenant_id","message_id","place")
);
--> statement-breakpoint
CREATE TABLE "group_messages" (
	"tenant_id" uuid NOT NULL,
	"id" uuid NOT NULL,
	"told" json NOT NULL,
	CONSTRAINT "group_messages_tenant_id_id_pk" PRIMARY KEY("tenant_id","id")
);
--> statement-breakpoint
CREATE TABLE "grouped_rules" (
	"tenant_id" uuid NOT NULL,
	"rule_id" uuid NOT NULL,
	"grouping" jsonb NOT NULL,
	CONSTRAINT "grouped_rules_tenant_id_rule_id_pk" PRIMARY KEY("tenant_id","rule_id")
);
--> statement-breakpoint
ALTER TABLE "rule_matches" ADD COLUMN "grouped" boolean DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE "rules" ADD COLUMN "grouping" jsonb;--> statement-breakpoint
CREATE INDEX "group_members_by_member" ON "group_members" USING btree ("tenant_id","rule_id","member");--> statement-breakpoint
CREATE INDEX "group_message_members_by_subject" ON "group_message_members" USING btree ("tenant_id","subject");--> statement-breakpoint
CREATE INDEX "group_message_members_by_entity" ON "group_message_members" USING btree ("tenant_id","entity_id");--> statement-breakpoint
-- Two indexes or more begin with the tenant: as in 0012.
alter table group_members alter column tenant_id set statistics 0;
--> statement-breakpoint
alter table group_message_members alter column tenant_id set statistics 0;
