-- oldest server: 0.1.0

-- What remote write 1.0 says of metrics, for all processes. The version before neither reads nor writes it.
CREATE TABLE "metric_facts" (
	"tenant_id" uuid NOT NULL,
	"metric" text collate "C" NOT NULL,
	"units" text collate "C" NOT NULL,
	"description" text collate "C" NOT NULL,
	"instrument" text collate "C" NOT NULL,
	"said_ms" bigint NOT NULL,
	CONSTRAINT "metric_facts_tenant_id_metric_pk" PRIMARY KEY("tenant_id","metric")
);
