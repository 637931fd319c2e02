-- oldest server: 0.1.0

-- The terms by which entities are found: each three characters in a row of the name, in lower case; the pairs of the dimensions;
-- the properties by kind and value. All begin with the end of the tenant's id, so that a search reads the lists of one tenant
-- only. A function that holds queries begins and ends each of them at every call; this one holds none, and takes less than half
-- of the time. Its names are PostgreSQL's own, since the search path may hold no others while an index is made.
-- src/entities/terms.ts spells the same.
create function entity_terms(tenant_id uuid, name text, dimensions jsonb, core_properties jsonb, custom_properties jsonb) returns tsvector
language plpgsql immutable strict parallel safe
as $$
declare
  tenant constant text := right(tenant_id::text, 8);
  lowered constant text := lower(name collate "pg_c_utf8");
  pairs constant text := dimensions::text;
  terms text[] := '{}';
  members jsonb;
  member jsonb;
  field text;
  items jsonb;
  item jsonb;
  kind text;
  content text;
  number float8;
begin
  for place in 1 .. length(lowered) - 2 loop
    terms := array_append(terms, tenant || 'n' || substr(lowered, place, 3));
  end loop;

  -- The pairs of the JSON text as PostgreSQL prints it: cut where it joins them while it is short. A lexeme may have 2046 bytes.
  if octet_length(pairs) < 2000 then
    terms := terms || string_to_array(
      tenant || 'd' || replace(substr(pairs, 3, greatest(length(pairs) - 4, 0)), '", "', e'\n' || tenant || 'd'), e'\n');
  else
    members := jsonb_path_query_array(dimensions, '$.keyvalue()');
    for i in 0 .. jsonb_array_length(members) - 1 loop
      content := jsonb_build_object(members -> i ->> 'key', members -> i -> 'value')::text;
      terms := array_append(terms, tenant || 'd' || left(substr(content, 3, length(content) - 4), 400));
    end loop;
  end if;

  for source in 1 .. 2 loop
    members := jsonb_path_query_array(case source when 1 then core_properties else custom_properties end, '$.keyvalue()');
    for i in 0 .. jsonb_array_length(members) - 1 loop
      member := members -> i;
      field := member ->> 'key';
      field := tenant || case source when 1 then 'm' else 'c' end || length(field) || ':' || left(field, 100);
      items := member -> 'value';
      if jsonb_typeof(items) <> 'array' then items := jsonb_build_array(items); end if;
      for j in 0 .. jsonb_array_length(items) - 1 loop
        item := items -> j;
        kind := jsonb_typeof(item);
        content := item #>> '{}';
        if kind = 'string' then
          terms := array_append(terms, field || 't' || left(content, 64));
          if content collate "C" < ':' and content ~ '^-?(0|[1-9][0-9]*)([.][0-9]+)?([eE][+-]?[0-9]+)?$'
            and pg_input_is_valid(content, 'float8') then
            number := content::float8;
            terms := array_append(terms,
              field || case when number < 0 then 'X' else 'x' end || encode(float8send(abs(number)), 'hex'));
          end if;
        elsif kind = 'number' then
          number := content::float8;
          terms := array_append(terms,
            field || case when number < 0 then 'N' else 'n' end || encode(float8send(abs(number)), 'hex'));
        elsif kind = 'boolean' then
          terms := array_append(terms, field || 'b' || content);
        end if;
      end loop;
    end loop;
  end loop;
  return array_to_tsvector(terms);
end
$$;
--> statement-breakpoint
-- The texts of an entity beside its name, for searches within them; case is folded.
create function entity_text(dimensions jsonb, core_properties jsonb, custom_properties jsonb) returns text
language sql immutable parallel safe
return lower((dimensions::text || core_properties::text || custom_properties::text) collate "pg_c_utf8");
--> statement-breakpoint
CREATE TABLE "api_clients" (
	"tenant_id" uuid NOT NULL,
	"id" text collate "C" NOT NULL,
	"name" text collate "C" NOT NULL,
	"type" text collate "C" NOT NULL,
	"role" text collate "C",
	"created_ms" bigint NOT NULL,
	CONSTRAINT "api_clients_tenant_id_id_pk" PRIMARY KEY("tenant_id","id")
);
--> statement-breakpoint
CREATE TABLE "api_key_prefixes" (
	"prefix" text collate "C" PRIMARY KEY NOT NULL,
	"tenant_id" uuid NOT NULL,
	"key_id" text collate "C" NOT NULL
);
--> statement-breakpoint
CREATE TABLE "api_keys" (
	"tenant_id" uuid NOT NULL,
	"id" text collate "C" NOT NULL,
	"client_id" text collate "C" NOT NULL,
	"prefix" text collate "C" NOT NULL,
	"digest" "bytea" NOT NULL,
	"description" text collate "C" NOT NULL,
	"created_ms" bigint NOT NULL,
	"expires_ms" bigint,
	"last_used_ms" bigint,
	CONSTRAINT "api_keys_tenant_id_id_pk" PRIMARY KEY("tenant_id","id"),
	CONSTRAINT "api_keys_prefix" UNIQUE("tenant_id","prefix")
);
--> statement-breakpoint
CREATE TABLE "tenants" (
	"id" uuid PRIMARY KEY NOT NULL,
	"name" text collate "C" NOT NULL,
	"created_ms" bigint NOT NULL,
	CONSTRAINT "tenants_name_unique" UNIQUE("name")
);
--> statement-breakpoint
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
CREATE TABLE "dictionary_entries" (
	"tenant_id" uuid NOT NULL,
	"kind" text collate "C" NOT NULL,
	"name" text collate "C" NOT NULL,
	"entry" jsonb NOT NULL,
	CONSTRAINT "dictionary_entries_tenant_id_kind_name_pk" PRIMARY KEY("tenant_id","kind","name")
);
--> statement-breakpoint
CREATE TABLE "entities" (
	"tenant_id" uuid NOT NULL,
	"id" "bytea" NOT NULL,
	"name" text collate "C" NOT NULL,
	"dimensions" jsonb NOT NULL,
	"metadata" jsonb NOT NULL,
	"core_properties" jsonb DEFAULT '{}'::jsonb NOT NULL,
	"custom_properties" jsonb DEFAULT '{}'::jsonb NOT NULL,
	"model_production_state" bigint,
	"window_production_state" bigint,
	"priority" bigint,
	"model_ms" bigint,
	"created_ms" bigint NOT NULL,
	"updated_ms" bigint NOT NULL,
	"liveness_ms" bigint NOT NULL,
	"content_hash" "bytea",
	"deleted_ms" bigint,
	CONSTRAINT "entities_tenant_id_id_pk" PRIMARY KEY("tenant_id","id")
)
-- Half of each page stays free for what models change in its rows: names and what custom properties say stand in indexes,
-- metadata and liveness do not, and a row that finds room on its page is rewritten without a new entry in any index.
WITH (fillfactor = 50);
--> statement-breakpoint
CREATE TABLE "entity_keys" (
	"tenant_id" uuid NOT NULL,
	"source" text collate "C" NOT NULL,
	"key" text collate "C" NOT NULL,
	CONSTRAINT "entity_keys_tenant_id_source_key_pk" PRIMARY KEY("tenant_id","source","key")
);
--> statement-breakpoint
CREATE TABLE "annotations" (
	"tenant_id" uuid NOT NULL,
	"event_id" "bytea" NOT NULL,
	"number" integer NOT NULL,
	"id" text collate "C" NOT NULL,
	"text" text collate "C" NOT NULL,
	"created_by" text collate "C" NOT NULL,
	"created_ms" bigint NOT NULL,
	"updated_ms" bigint NOT NULL,
	"place" bigint NOT NULL,
	CONSTRAINT "annotations_tenant_id_event_id_number_id_pk" PRIMARY KEY("tenant_id","event_id","number","id")
);
--> statement-breakpoint
CREATE TABLE "events" (
	"tenant_id" uuid NOT NULL,
	"id" "bytea" NOT NULL,
	"entity_id" "bytea" NOT NULL,
	"name" text collate "C" NOT NULL,
	CONSTRAINT "events_tenant_id_id_pk" PRIMARY KEY("tenant_id","id")
);
--> statement-breakpoint
CREATE TABLE "feed" (
	"tenant_id" uuid NOT NULL,
	"position" bigint NOT NULL,
	"created_ms" bigint NOT NULL,
	"changes" "bytea" NOT NULL,
	CONSTRAINT "feed_tenant_id_position_pk" PRIMARY KEY("tenant_id","position")
);
--> statement-breakpoint
CREATE TABLE "instances" (
	"tenant_id" uuid NOT NULL,
	"event_id" "bytea" NOT NULL,
	"time_ms" bigint NOT NULL,
	"severity" smallint NOT NULL,
	"status" smallint NOT NULL,
	"number" integer NOT NULL,
	CONSTRAINT "instances_tenant_id_time_ms_event_id_severity_status_pk" PRIMARY KEY("tenant_id","time_ms","event_id","severity","status")
);
--> statement-breakpoint
CREATE TABLE "occurrences" (
	"tenant_id" uuid NOT NULL,
	"event_id" "bytea" NOT NULL,
	"number" integer NOT NULL,
	"severity" smallint NOT NULL,
	"status" smallint NOT NULL,
	"acknowledged" boolean NOT NULL,
	"type" text collate "C" NOT NULL,
	"summary" text collate "C" NOT NULL,
	"body" text collate "C" NOT NULL,
	"metadata" jsonb NOT NULL,
	"start_ms" bigint NOT NULL,
	"last_seen_ms" bigint NOT NULL,
	"end_ms" bigint,
	"instance_count" bigint NOT NULL,
	"seen_slot" bigint GENERATED ALWAYS AS (last_seen_ms / 300000) STORED,
	CONSTRAINT "occurrences_tenant_id_event_id_number_pk" PRIMARY KEY("tenant_id","event_id","number")
)
-- Last sights move with each repeat; their slot of five minutes, which has an index, moves with few. A row that finds room on its
-- page is rewritten without a new entry in any index.
WITH (fillfactor = 60);
--> statement-breakpoint
CREATE TABLE "due_work" (
	"tenant_id" uuid NOT NULL,
	"kind" text collate "C" NOT NULL,
	"due_ms" bigint NOT NULL,
	CONSTRAINT "due_work_tenant_id_kind_pk" PRIMARY KEY("tenant_id","kind")
)
-- Rows come and go and are claimed where they lie: room on each page, and a vacuum by number, not by share.
WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);
--> statement-breakpoint
CREATE TABLE "jobs" (
	"tenant_id" uuid NOT NULL,
	"kind" text collate "C" NOT NULL,
	"id" text collate "C" NOT NULL,
	"payload" jsonb NOT NULL,
	"size" integer NOT NULL,
	"due_ms" bigint NOT NULL,
	"created_ms" bigint NOT NULL,
	"fence" bigint NOT NULL,
	"lease_until_ms" bigint NOT NULL,
	"failures" integer NOT NULL,
	CONSTRAINT "jobs_tenant_id_kind_id_pk" PRIMARY KEY("tenant_id","kind","id")
)
-- Rows come and go and are claimed where they lie: room on each page, and a vacuum by number, not by share.
WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);
--> statement-breakpoint
CREATE TABLE "leases" (
	"name" text collate "C" PRIMARY KEY NOT NULL,
	"holder" text collate "C" NOT NULL,
	"until_ms" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "maintenance_members" (
	"tenant_id" uuid NOT NULL,
	"entity_id" "bytea" NOT NULL,
	"window_id" text collate "C" NOT NULL,
	"run_start_ms" bigint NOT NULL,
	"version" bigint NOT NULL,
	"state" integer NOT NULL,
	"exit_state" integer,
	CONSTRAINT "maintenance_members_tenant_id_entity_id_window_id_pk" PRIMARY KEY("tenant_id","entity_id","window_id")
);
--> statement-breakpoint
CREATE TABLE "maintenance_targets" (
	"tenant_id" uuid NOT NULL,
	"window_id" text collate "C" NOT NULL,
	"place" bigint NOT NULL,
	"ids" "bytea" NOT NULL,
	CONSTRAINT "maintenance_targets_tenant_id_window_id_place_pk" PRIMARY KEY("tenant_id","window_id","place")
);
--> statement-breakpoint
CREATE TABLE "maintenance_windows" (
	"tenant_id" uuid NOT NULL,
	"id" text collate "C" NOT NULL,
	"name" text collate "C" NOT NULL,
	"description" text collate "C" NOT NULL,
	"owner" text collate "C" NOT NULL,
	"tags" jsonb NOT NULL,
	"clause" jsonb NOT NULL,
	"schedule" jsonb NOT NULL,
	"notification" jsonb,
	"run_mode" smallint NOT NULL,
	"status" smallint NOT NULL,
	"maintenance_state" integer NOT NULL,
	"exit_state" integer NOT NULL,
	"override_exit_state" boolean NOT NULL,
	"force" boolean NOT NULL,
	"do_not_propagate_to_children" boolean NOT NULL,
	"created_ms" bigint NOT NULL,
	"updated_ms" bigint NOT NULL,
	"created_by" text collate "C" NOT NULL,
	"updated_by" text collate "C" NOT NULL,
	"run_state" smallint NOT NULL,
	"skip_next" integer NOT NULL,
	"handled_ms" bigint,
	"next_due_ms" bigint,
	"next_start_ms" bigint,
	"run_start_ms" bigint,
	"run_end_ms" bigint,
	"version" bigint NOT NULL,
	CONSTRAINT "maintenance_windows_tenant_id_id_pk" PRIMARY KEY("tenant_id","id"),
	CONSTRAINT "maintenance_windows_name" UNIQUE("tenant_id","name")
);
--> statement-breakpoint
CREATE TABLE "metric_chunks" (
	"tenant_id" uuid NOT NULL,
	"series" bigint NOT NULL,
	"first_ms" bigint NOT NULL,
	"last_ms" bigint NOT NULL,
	"points" integer NOT NULL,
	"chunk" "bytea" NOT NULL,
	CONSTRAINT "metric_chunks_tenant_id_series_first_ms_pk" PRIMARY KEY("tenant_id","series","first_ms")
) PARTITION BY RANGE ("first_ms");
--> statement-breakpoint
CREATE TABLE "metric_heads" (
	"tenant_id" uuid NOT NULL,
	"bucket" smallint NOT NULL,
	"written_us" bigint NOT NULL,
	"part" integer NOT NULL,
	"level" smallint NOT NULL,
	"first_series" bigint NOT NULL,
	"last_series" bigint NOT NULL,
	"first_ms" bigint NOT NULL,
	"last_ms" bigint NOT NULL,
	"points" integer NOT NULL,
	"block" "bytea" NOT NULL,
	CONSTRAINT "metric_heads_tenant_id_bucket_written_us_part_pk" PRIMARY KEY("tenant_id","bucket","written_us","part")
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_insert_scale_factor = 0.5,
	toast.autovacuum_vacuum_scale_factor = 0.05);
--> statement-breakpoint
CREATE TABLE "series" (
	"tenant_id" uuid NOT NULL,
	"number" bigint NOT NULL,
	"entity_id" "bytea" NOT NULL,
	"metric" text collate "C" NOT NULL,
	"units" text collate "C" NOT NULL,
	"description" text collate "C" NOT NULL,
	"created_ms" bigint NOT NULL,
	"unused_ms" bigint,
	CONSTRAINT "series_tenant_id_number_pk" PRIMARY KEY("tenant_id","number")
);
--> statement-breakpoint
CREATE TABLE "series_counts" (
	"tenant_id" uuid NOT NULL,
	"last_number" bigint NOT NULL,
	"count" bigint NOT NULL,
	CONSTRAINT "series_counts_tenant_id_pk" PRIMARY KEY("tenant_id")
);
--> statement-breakpoint
CREATE TABLE "delivery_counts" (
	"tenant_id" uuid NOT NULL,
	"about" text collate "C" NOT NULL,
	"name" text collate "C" NOT NULL,
	"slot_ms" bigint NOT NULL,
	"count" integer NOT NULL,
	CONSTRAINT "delivery_counts_tenant_id_about_name_slot_ms_pk" PRIMARY KEY("tenant_id","about","name","slot_ms")
);
--> statement-breakpoint
CREATE TABLE "delivery_history" (
	"tenant_id" uuid NOT NULL,
	"id" uuid NOT NULL,
	"created_ms" bigint NOT NULL,
	"rule_id" uuid NOT NULL,
	"rule_name" text collate "C" NOT NULL,
	"trigger_names" text[] collate "C" NOT NULL,
	"destination_name" text collate "C" NOT NULL,
	"subject" "bytea" NOT NULL,
	"event_id" "bytea",
	"number" integer,
	"entity_id" "bytea",
	"metric_name" text collate "C",
	"occasion" text collate "C" NOT NULL,
	"told" jsonb NOT NULL,
	"attempts" jsonb NOT NULL,
	"error" text collate "C" NOT NULL,
	"status" text collate "C" NOT NULL,
	"ended_ms" bigint NOT NULL,
	CONSTRAINT "delivery_history_tenant_id_created_ms_id_pk" PRIMARY KEY("tenant_id","created_ms","id")
) PARTITION BY RANGE ("created_ms");
--> statement-breakpoint
CREATE TABLE "delivery_threads" (
	"tenant_id" uuid NOT NULL,
	"destination_name" text collate "C" NOT NULL,
	"subject" "bytea" NOT NULL,
	"state" jsonb NOT NULL,
	"sent" boolean NOT NULL,
	"updated_ms" bigint NOT NULL,
	CONSTRAINT "delivery_threads_tenant_id_destination_name_subject_pk" PRIMARY KEY("tenant_id","destination_name","subject")
);
--> statement-breakpoint
CREATE TABLE "destination_states" (
	"tenant_id" uuid NOT NULL,
	"destination_name" text collate "C" NOT NULL,
	"failures" integer NOT NULL,
	"opened" integer NOT NULL,
	"open_until_ms" bigint NOT NULL,
	"probe_until_ms" bigint NOT NULL,
	"allowed_ms" bigint NOT NULL,
	"minute_ms" bigint NOT NULL,
	"minute_count" integer NOT NULL,
	"summary_ms" bigint NOT NULL,
	CONSTRAINT "destination_states_tenant_id_destination_name_pk" PRIMARY KEY("tenant_id","destination_name")
) WITH (fillfactor = 50);
--> statement-breakpoint
CREATE TABLE "due_deliveries" (
	"tenant_id" uuid NOT NULL,
	"id" uuid NOT NULL,
	"created_ms" bigint NOT NULL,
	"rule_id" uuid NOT NULL,
	"rule_name" text collate "C" NOT NULL,
	"trigger_names" text[] collate "C" NOT NULL,
	"destination_name" text collate "C" NOT NULL,
	"subject" "bytea" NOT NULL,
	"event_id" "bytea",
	"number" integer,
	"entity_id" "bytea",
	"metric_name" text collate "C",
	"occasion" text collate "C" NOT NULL,
	"told" jsonb NOT NULL,
	"attempts" jsonb NOT NULL,
	"error" text collate "C" NOT NULL,
	"due_ms" bigint NOT NULL,
	"lease_until_ms" bigint NOT NULL,
	"fence" bigint NOT NULL,
	"tries" integer NOT NULL,
	"slow_tries" integer NOT NULL,
	"retried_ms" bigint,
	CONSTRAINT "due_deliveries_tenant_id_id_pk" PRIMARY KEY("tenant_id","id")
)
-- Rows come and go and are claimed where they lie: room on each page, and a vacuum by number, not by share.
WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);
--> statement-breakpoint
CREATE TABLE "stale_watches" (
	"tenant_id" uuid NOT NULL,
	"trigger_name" text collate "C" NOT NULL,
	"entity_id" "bytea" NOT NULL,
	"last_ms" bigint NOT NULL,
	"fired" boolean NOT NULL,
	CONSTRAINT "stale_watches_tenant_id_trigger_name_entity_id_pk" PRIMARY KEY("tenant_id","trigger_name","entity_id")
);
--> statement-breakpoint
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
CREATE TABLE "rule_matches" (
	"tenant_id" uuid NOT NULL,
	"subject" "bytea" NOT NULL,
	"rule_id" uuid NOT NULL,
	"entity_id" "bytea" NOT NULL,
	"event_id" "bytea",
	"number" integer,
	"metric_name" text collate "C",
	"trigger_names" text[] collate "C" NOT NULL,
	"standing" boolean NOT NULL,
	"muted" boolean NOT NULL,
	"chain" text[] collate "C" NOT NULL,
	"severity" smallint,
	"status" smallint,
	"acknowledged" boolean,
	"value" double precision,
	"value_ms" bigint,
	"matched_ms" bigint NOT NULL,
	"first_due_ms" bigint,
	"notified_ms" bigint,
	"last_ms" bigint NOT NULL,
	CONSTRAINT "rule_matches_tenant_id_subject_rule_id_pk" PRIMARY KEY("tenant_id","subject","rule_id")
) WITH (fillfactor = 70);
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
	"id" uuid DEFAULT gen_random_uuid() NOT NULL,
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
CREATE TABLE "property_updater_sets" (
	"tenant_id" uuid NOT NULL,
	"version" bigint NOT NULL,
	"enabled" boolean NOT NULL,
	CONSTRAINT "property_updater_sets_tenant_id_pk" PRIMARY KEY("tenant_id")
);
--> statement-breakpoint
CREATE TABLE "property_updaters" (
	"tenant_id" uuid NOT NULL,
	"id" text collate "C" NOT NULL,
	"name" text collate "C" NOT NULL,
	"description" text collate "C" NOT NULL,
	"entity_input" jsonb NOT NULL,
	"properties" jsonb NOT NULL,
	"enabled" boolean NOT NULL,
	"sequence" integer NOT NULL,
	"tags" jsonb NOT NULL,
	"created_ms" bigint NOT NULL,
	"updated_ms" bigint NOT NULL,
	CONSTRAINT "property_updaters_tenant_id_id_pk" PRIMARY KEY("tenant_id","id"),
	CONSTRAINT "property_updaters_name" UNIQUE("tenant_id","name")
);
--> statement-breakpoint
CREATE TABLE "audit_entries" (
	"tenant_id" uuid NOT NULL,
	"id" text collate "C" NOT NULL,
	"time_ms" bigint NOT NULL,
	"client_id" text collate "C" NOT NULL,
	"client_name" text collate "C" NOT NULL,
	"rpc" text collate "C" NOT NULL,
	"method" text collate "C" NOT NULL,
	"resource" text collate "C" NOT NULL,
	"outcome" text collate "C" NOT NULL,
	"request_id" text collate "C" NOT NULL,
	CONSTRAINT "audit_entries_tenant_id_id_pk" PRIMARY KEY("tenant_id","id")
);
--> statement-breakpoint
CREATE TABLE "rule_changes" (
	"tenant_id" uuid NOT NULL,
	"version" bigint NOT NULL,
	"kind" text collate "C" NOT NULL,
	"name" text collate "C" NOT NULL,
	CONSTRAINT "rule_changes_tenant_id_version_pk" PRIMARY KEY("tenant_id","version")
);
--> statement-breakpoint
CREATE TABLE "tenant_state" (
	"tenant_id" uuid NOT NULL,
	"rules_version" bigint DEFAULT 0 NOT NULL,
	CONSTRAINT "tenant_state_tenant_id_pk" PRIMARY KEY("tenant_id")
);
--> statement-breakpoint
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
ALTER TABLE "api_clients" ADD CONSTRAINT "api_clients_tenant_id_tenants_id_fk" FOREIGN KEY ("tenant_id") REFERENCES "public"."tenants"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "api_keys" ADD CONSTRAINT "api_keys_tenant_id_client_id_api_clients_tenant_id_id_fk" FOREIGN KEY ("tenant_id","client_id") REFERENCES "public"."api_clients"("tenant_id","id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "credential_uses" ADD CONSTRAINT "credential_uses_credential_fk" FOREIGN KEY ("tenant_id","credential_id") REFERENCES "public"."credentials"("tenant_id","id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "annotations" ADD CONSTRAINT "annotations_tenant_id_event_id_number_occurrences_tenant_id_event_id_number_fk" FOREIGN KEY ("tenant_id","event_id","number") REFERENCES "public"."occurrences"("tenant_id","event_id","number") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "events" ADD CONSTRAINT "events_tenant_id_entity_id_entities_tenant_id_id_fk" FOREIGN KEY ("tenant_id","entity_id") REFERENCES "public"."entities"("tenant_id","id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "occurrences" ADD CONSTRAINT "occurrences_tenant_id_event_id_events_tenant_id_id_fk" FOREIGN KEY ("tenant_id","event_id") REFERENCES "public"."events"("tenant_id","id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "destination_states" ADD CONSTRAINT "destination_states_destination_fk" FOREIGN KEY ("tenant_id","destination_name") REFERENCES "public"."destinations"("tenant_id","name") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "stale_watches" ADD CONSTRAINT "stale_watches_trigger_fk" FOREIGN KEY ("tenant_id","trigger_name") REFERENCES "public"."triggers"("tenant_id","name") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "rule_destinations" ADD CONSTRAINT "rule_destinations_rule_fk" FOREIGN KEY ("tenant_id","rule_name") REFERENCES "public"."rules"("tenant_id","name") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "rule_destinations" ADD CONSTRAINT "rule_destinations_destination_fk" FOREIGN KEY ("tenant_id","destination_name") REFERENCES "public"."destinations"("tenant_id","name") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "rule_triggers" ADD CONSTRAINT "rule_triggers_rule_fk" FOREIGN KEY ("tenant_id","rule_name") REFERENCES "public"."rules"("tenant_id","name") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "rule_triggers" ADD CONSTRAINT "rule_triggers_trigger_fk" FOREIGN KEY ("tenant_id","trigger_name") REFERENCES "public"."triggers"("tenant_id","name") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "user_account_groups" ADD CONSTRAINT "user_account_groups_account_fk" FOREIGN KEY ("tenant_id","account_id") REFERENCES "public"."user_accounts"("tenant_id","id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "user_account_groups" ADD CONSTRAINT "user_account_groups_group_fk" FOREIGN KEY ("tenant_id","group_name") REFERENCES "public"."user_groups"("tenant_id","name") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "api_clients_name" ON "api_clients" USING btree ("tenant_id","name","id");--> statement-breakpoint
CREATE INDEX "api_keys_client" ON "api_keys" USING btree ("tenant_id","client_id","id");--> statement-breakpoint
CREATE INDEX "credential_uses_user" ON "credential_uses" USING btree ("tenant_id","kind","used_by");--> statement-breakpoint
CREATE INDEX "credentials_name" ON "credentials" USING btree ("tenant_id","name","id");--> statement-breakpoint
CREATE UNIQUE INDEX "master_keys_current" ON "master_keys" USING btree ("current") WHERE "master_keys"."current";--> statement-breakpoint
CREATE INDEX "entities_name" ON "entities" USING btree ("tenant_id","name","id") WHERE deleted_ms is null;--> statement-breakpoint
CREATE INDEX "entities_id" ON "entities" USING hash ("id") WHERE deleted_ms is null;--> statement-breakpoint
CREATE INDEX "entities_terms" ON "entities" USING gin (entity_terms(tenant_id, name, dimensions, core_properties, custom_properties));--> statement-breakpoint
CREATE INDEX "entities_text" ON "entities" USING gin ("tenant_id",entity_text(dimensions, core_properties, custom_properties) gin_trgm_ops);--> statement-breakpoint
CREATE INDEX "entities_parents" ON "entities" USING gin (coalesce(dimensions -> '_svc_parent_entity_id', core_properties -> '_svc_parent_entity_id')) WITH (fastupdate=false) WHERE deleted_ms is null
        and coalesce(dimensions -> '_svc_parent_entity_id', core_properties -> '_svc_parent_entity_id') is not null;--> statement-breakpoint
CREATE INDEX "events_entity" ON "events" USING btree ("tenant_id","entity_id");--> statement-breakpoint
CREATE INDEX "events_name" ON "events" USING btree ("tenant_id","name","id");--> statement-breakpoint
CREATE INDEX "occurrences_seen" ON "occurrences" USING btree ("tenant_id","seen_slot");--> statement-breakpoint
CREATE INDEX "occurrences_end" ON "occurrences" USING btree ("tenant_id","end_ms");--> statement-breakpoint
CREATE INDEX "occurrences_start" ON "occurrences" USING btree ("tenant_id","event_id","start_ms","number");--> statement-breakpoint
CREATE INDEX "due_work_due" ON "due_work" USING btree ("kind","due_ms","tenant_id");--> statement-breakpoint
CREATE INDEX "jobs_due" ON "jobs" USING btree ("tenant_id","kind","due_ms","id");--> statement-breakpoint
CREATE INDEX "maintenance_members_window" ON "maintenance_members" USING btree ("tenant_id","window_id","run_start_ms","version");--> statement-breakpoint
CREATE UNIQUE INDEX "series_entity" ON "series" USING btree ("tenant_id","entity_id","metric");--> statement-breakpoint
CREATE INDEX "due_deliveries_order" ON "due_deliveries" USING btree ("tenant_id","destination_name","subject","created_ms","id");--> statement-breakpoint
CREATE INDEX "due_deliveries_due" ON "due_deliveries" USING btree ("tenant_id","destination_name","due_ms","id");--> statement-breakpoint
CREATE INDEX "stale_watches_fired" ON "stale_watches" USING btree ("tenant_id","trigger_name","entity_id") WHERE fired;--> statement-breakpoint
CREATE INDEX "rule_destinations_destination" ON "rule_destinations" USING btree ("tenant_id","destination_name","rule_name");--> statement-breakpoint
CREATE INDEX "rule_matches_muted" ON "rule_matches" USING btree ("tenant_id","entity_id") WHERE muted;--> statement-breakpoint
CREATE INDEX "rule_triggers_trigger" ON "rule_triggers" USING btree ("tenant_id","trigger_name","rule_name");--> statement-breakpoint
CREATE INDEX "audit_entries_time" ON "audit_entries" USING btree ("tenant_id","time_ms","id");--> statement-breakpoint
CREATE INDEX "audit_entries_client" ON "audit_entries" USING btree ("tenant_id","client_id","time_ms","id");--> statement-breakpoint
CREATE INDEX "audit_entries_method" ON "audit_entries" USING btree ("tenant_id","method","time_ms","id");--> statement-breakpoint
CREATE INDEX "user_account_groups_group" ON "user_account_groups" USING btree ("tenant_id","group_name","account_id");--> statement-breakpoint
CREATE UNIQUE INDEX "user_accounts_email" ON "user_accounts" USING btree ("tenant_id",lower(email collate pg_c_utf8));--> statement-breakpoint
CREATE INDEX "user_accounts_first_name" ON "user_accounts" USING btree ("tenant_id","first_name","id");--> statement-breakpoint
CREATE INDEX "user_accounts_last_name" ON "user_accounts" USING btree ("tenant_id","last_name","id");
--> statement-breakpoint
-- Compressed already. Out of line, so that what looks at times alone reads few pages.
ALTER TABLE "metric_chunks" ALTER COLUMN "chunk" SET STORAGE EXTERNAL;
--> statement-breakpoint
ALTER TABLE "metric_heads" ALTER COLUMN "block" SET STORAGE EXTERNAL;
--> statement-breakpoint
-- An ANALYZE would make the terms and texts of all entities that it looks at anew, for statistics that no plan needs.
ALTER INDEX "entities_terms" ALTER COLUMN 1 SET STATISTICS 0;
--> statement-breakpoint
ALTER INDEX "entities_text" ALTER COLUMN 2 SET STATISTICS 0;
--> statement-breakpoint
ALTER TABLE "entities"
	ALTER COLUMN "dimensions" SET STATISTICS 0, ALTER COLUMN "metadata" SET STATISTICS 0,
	ALTER COLUMN "core_properties" SET STATISTICS 0, ALTER COLUMN "custom_properties" SET STATISTICS 0;
