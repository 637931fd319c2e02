-- oldest server: 0.1.0

-- Views of events that people of a tenant share.
CREATE TABLE "event_views" (
	"tenant_id" uuid NOT NULL,
	"name" text collate "C" NOT NULL,
	"query" text collate "C" NOT NULL,
	"display" text collate "C" NOT NULL,
	"created_by" text collate "C" NOT NULL,
	"created_ms" bigint NOT NULL,
	"updated_ms" bigint NOT NULL,
	CONSTRAINT "event_views_tenant_id_name_pk" PRIMARY KEY("tenant_id","name")
);
