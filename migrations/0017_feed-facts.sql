-- oldest server: 0.1.0

-- What consumers of the feed look at of each report and change, and how far each of them is. No cursor is made here: the first
-- transaction that stores facts makes it, at the end of the feed.
CREATE TABLE "feed_cursors" (
	"tenant_id" uuid NOT NULL,
	"name" text collate "C" NOT NULL,
	"position" bigint NOT NULL,
	"done" integer NOT NULL,
	CONSTRAINT "feed_cursors_tenant_id_name_pk" PRIMARY KEY("tenant_id","name")
);
--> statement-breakpoint
ALTER TABLE "feed" ADD COLUMN "facts" text collate "C";--> statement-breakpoint
ALTER TABLE "feed" ADD COLUMN "fact_count" integer;
