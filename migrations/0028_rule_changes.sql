CREATE TABLE "rule_changes" (
	"tenant_id" uuid NOT NULL,
	"version" bigint NOT NULL,
	"kind" text collate "C" NOT NULL,
	"name" text collate "C" NOT NULL,
	CONSTRAINT "rule_changes_tenant_id_version_pk" PRIMARY KEY("tenant_id","version")
);
