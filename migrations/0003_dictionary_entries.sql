CREATE TABLE "dictionary_entries" (
	"tenant_id" uuid NOT NULL,
	"kind" text collate "C" NOT NULL,
	"name" text collate "C" NOT NULL,
	"entry" jsonb NOT NULL,
	CONSTRAINT "dictionary_entries_tenant_id_kind_name_pk" PRIMARY KEY("tenant_id","kind","name")
);
