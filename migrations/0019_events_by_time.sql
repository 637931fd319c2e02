CREATE TABLE "feed" (
	"tenant_id" uuid NOT NULL,
	"position" bigint NOT NULL,
	"created_ms" bigint NOT NULL,
	"changes" "bytea" NOT NULL,
	CONSTRAINT "feed_tenant_id_position_pk" PRIMARY KEY("tenant_id","position")
);
--> statement-breakpoint
CREATE TABLE "tenant_state" (
	"tenant_id" uuid NOT NULL,
	"rules_version" bigint DEFAULT 0 NOT NULL,
	CONSTRAINT "tenant_state_tenant_id_pk" PRIMARY KEY("tenant_id")
);
--> statement-breakpoint
DROP INDEX "occurrences_last_seen";--> statement-breakpoint
-- Last sights move with each repeat, and so did the index over them; its slot of five minutes moves with few. A row that
-- finds room on its page is rewritten without a new entry in any index.
ALTER TABLE "occurrences" SET (fillfactor = 60);--> statement-breakpoint
-- By time: what comes is appended, and counting and retention read ranges.
ALTER TABLE "instances" DROP CONSTRAINT "instances_tenant_id_event_id_time_ms_severity_status_pk";--> statement-breakpoint
ALTER TABLE "instances" ADD CONSTRAINT "instances_tenant_id_time_ms_event_id_severity_status_pk" PRIMARY KEY("tenant_id","time_ms","event_id","severity","status");--> statement-breakpoint
ALTER TABLE "occurrences" ADD COLUMN "seen_slot" bigint GENERATED ALWAYS AS (last_seen_ms / 300000) STORED;--> statement-breakpoint
-- They equal what the newest occurrence says.
ALTER TABLE "events" DROP COLUMN "last_number";--> statement-breakpoint
ALTER TABLE "events" DROP COLUMN "last_seen_ms";