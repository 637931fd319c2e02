-- Made by test/db/migrate.test.ts: npx vitest run test/db/migrate.test.ts --update
create extension btree_gin;
create extension pg_trgm;

CREATE OR REPLACE FUNCTION public.entity_terms(tenant_id uuid, name text, dimensions jsonb, core_properties jsonb, custom_properties jsonb)
 RETURNS tsvector
 LANGUAGE plpgsql
 IMMUTABLE PARALLEL SAFE STRICT COST 10000
AS $function$
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
$function$;

CREATE OR REPLACE FUNCTION public.entity_text(dimensions jsonb, core_properties jsonb, custom_properties jsonb)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN lower(((((dimensions)::text || (core_properties)::text) || (custom_properties)::text) COLLATE pg_c_utf8));

create table alert_groups (
  tenant_id uuid not null,
  rule_id uuid not null,
  group_key bytea not null,
  labels json not null,
  flushed_ms bigint,
  due_ms bigint,
  repeat_ms bigint,
  opened_ms bigint,
  last_ms bigint not null,
  open_at text[] collate "C" not null,
  held boolean not null,
  constraint alert_groups_tenant_id_rule_id_group_key_pk PRIMARY KEY (tenant_id, rule_id, group_key)
);

create table annotations (
  tenant_id uuid not null,
  event_id bytea not null,
  number integer not null,
  id text collate "C" not null,
  text text collate "C" not null,
  created_by text collate "C" not null,
  created_ms bigint not null,
  updated_ms bigint not null,
  place bigint not null,
  constraint annotations_tenant_id_event_id_number_id_pk PRIMARY KEY (tenant_id, event_id, number, id),
  constraint annotations_tenant_id_event_id_number_occurrences_tenant_id_eve FOREIGN KEY (tenant_id, event_id, number) REFERENCES occurrences(tenant_id, event_id, number)
);

create table api_clients (
  tenant_id uuid not null,
  id text collate "C" not null,
  name text collate "C" not null,
  type text collate "C" not null,
  role text collate "C",
  created_ms bigint not null,
  constraint api_clients_tenant_id_id_pk PRIMARY KEY (tenant_id, id),
  constraint api_clients_tenant_id_tenants_id_fk FOREIGN KEY (tenant_id) REFERENCES tenants(id)
);
CREATE INDEX api_clients_name ON public.api_clients USING btree (tenant_id, name, id);

create table api_key_prefixes (
  prefix text collate "C" not null,
  tenant_id uuid not null,
  key_id text collate "C" not null,
  constraint api_key_prefixes_pkey PRIMARY KEY (prefix)
);

create table api_keys (
  tenant_id uuid not null,
  id text collate "C" not null,
  client_id text collate "C" not null,
  prefix text collate "C" not null,
  digest bytea not null,
  description text collate "C" not null,
  created_ms bigint not null,
  expires_ms bigint,
  last_used_ms bigint,
  constraint api_keys_tenant_id_id_pk PRIMARY KEY (tenant_id, id),
  constraint api_keys_prefix UNIQUE (tenant_id, prefix),
  constraint api_keys_tenant_id_client_id_api_clients_tenant_id_id_fk FOREIGN KEY (tenant_id, client_id) REFERENCES api_clients(tenant_id, id) ON DELETE CASCADE
);
CREATE INDEX api_keys_client ON public.api_keys USING btree (tenant_id, client_id, id);

create table audit_entries (
  tenant_id uuid not null,
  id text collate "C" not null,
  time_ms bigint not null,
  client_id text collate "C" not null,
  client_name text collate "C" not null,
  rpc text collate "C" not null,
  method text collate "C" not null,
  resource text collate "C" not null,
  outcome text collate "C" not null,
  request_id text collate "C" not null,
  key_prefix text collate "C",
  session_id text collate "C",
  constraint audit_entries_tenant_id_id_pk PRIMARY KEY (tenant_id, id)
);
CREATE INDEX audit_entries_client ON public.audit_entries USING btree (tenant_id, client_id, time_ms, id);
CREATE INDEX audit_entries_method ON public.audit_entries USING btree (tenant_id, method, time_ms, id);
CREATE INDEX audit_entries_time ON public.audit_entries USING btree (tenant_id, time_ms, id);

create table chain_counts (
  tenant_id uuid not null,
  root uuid not null,
  rule_id uuid not null,
  count integer not null,
  delivery_id uuid,
  delivery_ms bigint,
  constraint chain_counts_tenant_id_root_rule_id_pk PRIMARY KEY (tenant_id, root, rule_id)
);

create table console_links (
  tenant_id uuid not null,
  id text collate "C" not null,
  key_id text collate "C" not null,
  digest bytea not null,
  expires_ms bigint not null,
  constraint console_links_tenant_id_id_pk PRIMARY KEY (tenant_id, id),
  constraint console_links_tenant_id_key_id_api_keys_tenant_id_id_fk FOREIGN KEY (tenant_id, key_id) REFERENCES api_keys(tenant_id, id) ON DELETE CASCADE
);
CREATE INDEX console_links_key ON public.console_links USING btree (tenant_id, key_id);

create table console_sessions (
  tenant_id uuid not null,
  id text collate "C" not null,
  key_id text collate "C" not null,
  digest bytea not null,
  created_ms bigint not null,
  last_used_ms bigint not null,
  constraint console_sessions_tenant_id_id_pk PRIMARY KEY (tenant_id, id),
  constraint console_sessions_tenant_id_key_id_api_keys_tenant_id_id_fk FOREIGN KEY (tenant_id, key_id) REFERENCES api_keys(tenant_id, id) ON DELETE CASCADE
);
CREATE INDEX console_sessions_key ON public.console_sessions USING btree (tenant_id, key_id, created_ms, id);

create table credential_uses (
  tenant_id uuid not null,
  credential_id text collate "C" not null,
  kind text collate "C" not null,
  used_by text collate "C" not null,
  constraint credential_uses_tenant_id_credential_id_kind_used_by_pk PRIMARY KEY (tenant_id, credential_id, kind, used_by),
  constraint credential_uses_credential_fk FOREIGN KEY (tenant_id, credential_id) REFERENCES credentials(tenant_id, id)
);
CREATE INDEX credential_uses_user ON public.credential_uses USING btree (tenant_id, kind, used_by);

create table credentials (
  tenant_id uuid not null,
  id text collate "C" not null,
  name text collate "C" not null,
  type text collate "C" not null,
  description text collate "C" not null,
  tags jsonb not null,
  allowed_api_clients jsonb not null,
  secrets jsonb not null,
  allowed_hosts jsonb,
  bound_hosts jsonb,
  constraint credentials_tenant_id_id_pk PRIMARY KEY (tenant_id, id)
);
CREATE INDEX credentials_name ON public.credentials USING btree (tenant_id, name, id);

create table data_keys (
  tenant_id uuid not null,
  master_key_id text collate "C" not null,
  wrapped bytea not null,
  constraint data_keys_tenant_id_pk PRIMARY KEY (tenant_id)
);

create table delivery_counts (
  tenant_id uuid not null,
  about text collate "C" not null,
  name text collate "C" not null,
  slot_ms bigint not null,
  count integer not null,
  constraint delivery_counts_tenant_id_about_name_slot_ms_pk PRIMARY KEY (tenant_id, about, name, slot_ms)
);

create table delivery_history (
  tenant_id uuid not null,
  id uuid not null,
  created_ms bigint not null,
  rule_id uuid not null,
  rule_name text collate "C" not null,
  trigger_names text[] collate "C" not null,
  destination_name text collate "C" not null,
  subject bytea not null,
  event_id bytea,
  number integer,
  entity_id bytea,
  metric_name text collate "C",
  occasion text collate "C" not null,
  told jsonb not null,
  attempts jsonb not null,
  error text collate "C" not null,
  status text collate "C" not null,
  ended_ms bigint not null,
  constraint delivery_history_tenant_id_created_ms_id_pk PRIMARY KEY (tenant_id, created_ms, id)
);

create table delivery_threads (
  tenant_id uuid not null,
  destination_name text collate "C" not null,
  subject bytea not null,
  state jsonb not null,
  sent boolean not null,
  updated_ms bigint not null,
  constraint delivery_threads_tenant_id_destination_name_subject_pk PRIMARY KEY (tenant_id, destination_name, subject)
);

create table destination_states (
  tenant_id uuid not null,
  destination_name text collate "C" not null,
  failures integer not null,
  opened integer not null,
  open_until_ms bigint not null,
  probe_until_ms bigint not null,
  allowed_ms bigint not null,
  minute_ms bigint not null,
  minute_count integer not null,
  summary_ms bigint not null,
  constraint destination_states_tenant_id_destination_name_pk PRIMARY KEY (tenant_id, destination_name),
  constraint destination_states_destination_fk FOREIGN KEY (tenant_id, destination_name) REFERENCES destinations(tenant_id, name) ON DELETE CASCADE
);

create table destinations (
  tenant_id uuid not null,
  name text collate "C" not null,
  description text collate "C" not null,
  tags jsonb not null,
  kind text collate "C" not null,
  type jsonb not null,
  secrets jsonb not null,
  max_per_minute integer not null,
  disabled_reason text collate "C" not null,
  created_ms bigint not null,
  constraint destinations_tenant_id_name_pk PRIMARY KEY (tenant_id, name)
);

create table dictionary_entries (
  tenant_id uuid not null,
  kind text collate "C" not null,
  name text collate "C" not null,
  entry jsonb not null,
  constraint dictionary_entries_tenant_id_kind_name_pk PRIMARY KEY (tenant_id, kind, name)
);

create table due_deliveries (
  tenant_id uuid not null,
  id uuid not null,
  created_ms bigint not null,
  rule_id uuid not null,
  rule_name text collate "C" not null,
  trigger_names text[] collate "C" not null,
  destination_name text collate "C" not null,
  subject bytea not null,
  event_id bytea,
  number integer,
  entity_id bytea,
  metric_name text collate "C",
  occasion text collate "C" not null,
  told jsonb not null,
  attempts jsonb not null,
  error text collate "C" not null,
  due_ms bigint not null,
  lease_until_ms bigint not null,
  fence bigint not null,
  tries integer not null,
  slow_tries integer not null,
  retried_ms bigint,
  silence_id uuid,
  constraint due_deliveries_tenant_id_id_pk PRIMARY KEY (tenant_id, id)
);
CREATE INDEX due_deliveries_by_age ON public.due_deliveries USING btree (tenant_id, destination_name, subject, created_ms, id) WHERE (created_ms >= 0);
CREATE INDEX due_deliveries_by_due ON public.due_deliveries USING btree (tenant_id, destination_name, due_ms, id) WHERE (tries >= 0);

create table due_work (
  tenant_id uuid not null,
  kind text collate "C" not null,
  due_ms bigint not null,
  constraint due_work_tenant_id_kind_pk PRIMARY KEY (tenant_id, kind)
);
CREATE INDEX due_work_by_due ON public.due_work USING btree (kind, due_ms, tenant_id) WHERE (due_ms >= 0);

create table entities (
  tenant_id uuid not null,
  id bytea not null,
  name text collate "C" not null,
  dimensions jsonb not null,
  metadata jsonb not null,
  core_properties jsonb not null default '{}'::jsonb,
  custom_properties jsonb not null default '{}'::jsonb,
  model_production_state bigint,
  window_production_state bigint,
  priority bigint,
  model_ms bigint,
  created_ms bigint not null,
  updated_ms bigint not null,
  liveness_ms bigint not null,
  content_hash bytea,
  deleted_ms bigint,
  idle boolean,
  constraint entities_tenant_id_id_pk PRIMARY KEY (tenant_id, id)
);
CREATE INDEX entities_by_parents ON public.entities USING gin (COALESCE((dimensions -> '_svc_parent_entity_id'::text), (core_properties -> '_svc_parent_entity_id'::text))) WITH (fastupdate='false') WHERE (COALESCE((dimensions -> '_svc_parent_entity_id'::text), (core_properties -> '_svc_parent_entity_id'::text)) IS NOT NULL);
CREATE INDEX entities_deleted ON public.entities USING btree (tenant_id, name) WHERE (deleted_ms IS NOT NULL);
CREATE INDEX entities_id ON public.entities USING hash (id) WHERE (deleted_ms IS NULL);
CREATE INDEX entities_name ON public.entities USING btree (tenant_id, name, id) WHERE (deleted_ms IS NULL);
CREATE INDEX entities_terms ON public.entities USING gin (entity_terms(tenant_id, name, dimensions, core_properties, custom_properties));
CREATE INDEX entities_text ON public.entities USING gin (tenant_id, entity_text(dimensions, core_properties, custom_properties) gin_trgm_ops);

create table entity_keys (
  tenant_id uuid not null,
  source text collate "C" not null,
  key text collate "C" not null,
  constraint entity_keys_tenant_id_source_key_pk PRIMARY KEY (tenant_id, source, key)
);

create table event_views (
  tenant_id uuid not null,
  name text collate "C" not null,
  query text collate "C" not null,
  display text collate "C" not null,
  created_by text collate "C" not null,
  created_ms bigint not null,
  updated_ms bigint not null,
  constraint event_views_tenant_id_name_pk PRIMARY KEY (tenant_id, name)
);

create table events (
  tenant_id uuid not null,
  id bytea not null,
  entity_id bytea not null,
  name text collate "C" not null,
  dedup_key text collate "C",
  alert_labels json,
  constraint events_tenant_id_id_pk PRIMARY KEY (tenant_id, id),
  constraint events_tenant_id_entity_id_entities_tenant_id_id_fk FOREIGN KEY (tenant_id, entity_id) REFERENCES entities(tenant_id, id)
);
CREATE INDEX events_entity ON public.events USING btree (tenant_id, entity_id);
CREATE INDEX events_key ON public.events USING btree (tenant_id, dedup_key, id) WHERE (dedup_key IS NOT NULL);
CREATE INDEX events_labels ON public.events USING gin (tenant_id, ((alert_labels)::jsonb) jsonb_path_ops) WHERE (alert_labels IS NOT NULL);
CREATE INDEX events_name ON public.events USING btree (tenant_id, name, id);

create table feed (
  tenant_id uuid not null,
  position bigint not null,
  created_ms bigint not null,
  changes bytea not null,
  earlier bytea,
  facts text collate "C",
  fact_count integer,
  constraint feed_tenant_id_position_pk PRIMARY KEY (tenant_id, "position")
);

create table feed_cursors (
  tenant_id uuid not null,
  name text collate "C" not null,
  position bigint not null,
  done integer not null,
  constraint feed_cursors_tenant_id_name_pk PRIMARY KEY (tenant_id, name)
);

create table group_members (
  tenant_id uuid not null,
  rule_id uuid not null,
  group_key bytea not null,
  member bytea not null,
  subject bytea not null,
  joins_ms bigint not null,
  sent_to text[] collate "C" not null,
  again_at text[] collate "C" not null default '{}'::text[],
  constraint group_members_tenant_id_rule_id_group_key_member_pk PRIMARY KEY (tenant_id, rule_id, group_key, member)
);
CREATE INDEX group_members_by_member ON public.group_members USING btree (tenant_id, rule_id, member);

create table group_message_members (
  tenant_id uuid not null,
  message_id uuid not null,
  place integer not null,
  subject bytea not null,
  event_id bytea,
  number integer,
  entity_id bytea not null,
  resolved boolean not null,
  constraint group_message_members_tenant_id_message_id_place_pk PRIMARY KEY (tenant_id, message_id, place)
);
CREATE INDEX group_message_members_by_entity ON public.group_message_members USING btree (tenant_id, entity_id);
CREATE INDEX group_message_members_by_subject ON public.group_message_members USING btree (tenant_id, subject);

create table group_messages (
  tenant_id uuid not null,
  id uuid not null,
  told json not null,
  constraint group_messages_tenant_id_id_pk PRIMARY KEY (tenant_id, id)
);

create table grouped_rules (
  tenant_id uuid not null,
  rule_id uuid not null,
  grouping jsonb not null,
  constraint grouped_rules_tenant_id_rule_id_pk PRIMARY KEY (tenant_id, rule_id)
);

create table instances (
  tenant_id uuid not null,
  event_id bytea not null,
  time_ms bigint not null,
  severity smallint not null,
  status smallint not null,
  number integer not null,
  constraint instances_tenant_id_time_ms_event_id_severity_status_pk PRIMARY KEY (tenant_id, time_ms, event_id, severity, status)
);

create table jobs (
  tenant_id uuid not null,
  kind text collate "C" not null,
  id text collate "C" not null,
  payload jsonb not null,
  size integer not null,
  due_ms bigint not null,
  created_ms bigint not null,
  fence bigint not null,
  lease_until_ms bigint not null,
  failures integer not null,
  constraint jobs_tenant_id_kind_id_pk PRIMARY KEY (tenant_id, kind, id)
);
CREATE INDEX jobs_by_due ON public.jobs USING btree (tenant_id, kind, due_ms, id) WHERE (size >= 0);

create table leases (
  name text collate "C" not null,
  holder text collate "C" not null,
  until_ms bigint not null,
  constraint leases_pkey PRIMARY KEY (name)
);

create table maintenance_members (
  tenant_id uuid not null,
  entity_id bytea not null,
  window_id text collate "C" not null,
  run_start_ms bigint not null,
  version bigint not null,
  state integer not null,
  exit_state integer,
  constraint maintenance_members_tenant_id_entity_id_window_id_pk PRIMARY KEY (tenant_id, entity_id, window_id)
);
CREATE INDEX maintenance_members_window ON public.maintenance_members USING btree (tenant_id, window_id, run_start_ms, version);

create table maintenance_targets (
  tenant_id uuid not null,
  window_id text collate "C" not null,
  place bigint not null,
  ids bytea not null,
  constraint maintenance_targets_tenant_id_window_id_place_pk PRIMARY KEY (tenant_id, window_id, place)
);

create table maintenance_windows (
  tenant_id uuid not null,
  id text collate "C" not null,
  name text collate "C" not null,
  description text collate "C" not null,
  owner text collate "C" not null,
  tags jsonb not null,
  clause jsonb not null,
  schedule jsonb not null,
  notification jsonb,
  run_mode smallint not null,
  status smallint not null,
  maintenance_state integer not null,
  exit_state integer not null,
  override_exit_state boolean not null,
  force boolean not null,
  do_not_propagate_to_children boolean not null,
  created_ms bigint not null,
  updated_ms bigint not null,
  created_by text collate "C" not null,
  updated_by text collate "C" not null,
  run_state smallint not null,
  skip_next integer not null,
  handled_ms bigint,
  next_due_ms bigint,
  next_start_ms bigint,
  run_start_ms bigint,
  run_end_ms bigint,
  version bigint not null,
  constraint maintenance_windows_tenant_id_id_pk PRIMARY KEY (tenant_id, id),
  constraint maintenance_windows_name UNIQUE (tenant_id, name)
);

create table master_keys (
  id text collate "C" not null,
  proof bytea not null,
  current boolean not null,
  constraint master_keys_pkey PRIMARY KEY (id)
);
CREATE UNIQUE INDEX master_keys_current ON public.master_keys USING btree (current) WHERE current;

create table metric_chunks (
  tenant_id uuid not null,
  series bigint not null,
  first_ms bigint not null,
  last_ms bigint not null,
  points integer not null,
  chunk bytea not null,
  constraint metric_chunks_tenant_id_series_first_ms_pk PRIMARY KEY (tenant_id, series, first_ms)
);

create table metric_facts (
  tenant_id uuid not null,
  metric text collate "C" not null,
  units text collate "C" not null,
  description text collate "C" not null,
  instrument text collate "C" not null,
  said_ms bigint not null,
  constraint metric_facts_tenant_id_metric_pk PRIMARY KEY (tenant_id, metric)
);

create table metric_heads (
  tenant_id uuid not null,
  bucket smallint not null,
  written_us bigint not null,
  part integer not null,
  level smallint not null,
  first_series bigint not null,
  last_series bigint not null,
  first_ms bigint not null,
  last_ms bigint not null,
  points integer not null,
  block bytea not null,
  constraint metric_heads_tenant_id_bucket_written_us_part_pk PRIMARY KEY (tenant_id, bucket, written_us, part)
);

create table migrations (
  name text collate "C" not null,
  digest text not null,
  oldest_server text,
  applied_at timestamp with time zone not null default now(),
  constraint migrations_pkey PRIMARY KEY (name)
);

create table occurrences (
  tenant_id uuid not null,
  event_id bytea not null,
  number integer not null,
  severity smallint not null,
  status smallint not null,
  acknowledged boolean not null,
  type text collate "C" not null,
  summary text collate "C" not null,
  body text collate "C" not null,
  metadata jsonb not null,
  start_ms bigint not null,
  last_seen_ms bigint not null,
  end_ms bigint,
  instance_count bigint not null,
  seen_slot bigint default (last_seen_ms / 300000),
  expires_ms bigint,
  kept_open_ms bigint,
  closed_by smallint,
  constraint occurrences_tenant_id_event_id_number_pk PRIMARY KEY (tenant_id, event_id, number),
  constraint occurrences_tenant_id_event_id_events_tenant_id_id_fk FOREIGN KEY (tenant_id, event_id) REFERENCES events(tenant_id, id)
);
CREATE INDEX occurrences_end ON public.occurrences USING btree (tenant_id, end_ms);
CREATE INDEX occurrences_expiry ON public.occurrences USING btree (tenant_id, expires_ms, event_id) WHERE ((end_ms IS NULL) AND (expires_ms IS NOT NULL));
CREATE INDEX occurrences_open ON public.occurrences USING btree (tenant_id, severity, seen_slot) WHERE ((end_ms IS NULL) AND (number >= 0));
CREATE INDEX occurrences_seen ON public.occurrences USING btree (tenant_id, seen_slot);
CREATE INDEX occurrences_start ON public.occurrences USING btree (tenant_id, event_id, start_ms, number);
CREATE INDEX occurrences_terms ON public.occurrences USING gin (tenant_id, type, metadata jsonb_path_ops) WITH (gin_pending_list_limit='128');

create table property_updater_sets (
  tenant_id uuid not null,
  version bigint not null,
  enabled boolean not null,
  constraint property_updater_sets_tenant_id_pk PRIMARY KEY (tenant_id)
);

create table property_updaters (
  tenant_id uuid not null,
  id text collate "C" not null,
  name text collate "C" not null,
  description text collate "C" not null,
  entity_input jsonb not null,
  properties jsonb not null,
  enabled boolean not null,
  sequence integer not null,
  tags jsonb not null,
  created_ms bigint not null,
  updated_ms bigint not null,
  constraint property_updaters_tenant_id_id_pk PRIMARY KEY (tenant_id, id),
  constraint property_updaters_name UNIQUE (tenant_id, name)
);

create table rule_changes (
  tenant_id uuid not null,
  version bigint not null,
  kind text collate "C" not null,
  name text collate "C" not null,
  constraint rule_changes_tenant_id_version_pk PRIMARY KEY (tenant_id, version)
);

create table rule_destinations (
  tenant_id uuid not null,
  rule_name text collate "C" not null,
  destination_name text collate "C" not null,
  place integer not null,
  constraint rule_destinations_tenant_id_rule_name_destination_name_pk PRIMARY KEY (tenant_id, rule_name, destination_name),
  constraint rule_destinations_destination_fk FOREIGN KEY (tenant_id, destination_name) REFERENCES destinations(tenant_id, name),
  constraint rule_destinations_rule_fk FOREIGN KEY (tenant_id, rule_name) REFERENCES rules(tenant_id, name) ON DELETE CASCADE
);
CREATE INDEX rule_destinations_destination ON public.rule_destinations USING btree (tenant_id, destination_name, rule_name);

create table rule_matches (
  tenant_id uuid not null,
  subject bytea not null,
  rule_id uuid not null,
  entity_id bytea not null,
  event_id bytea,
  number integer,
  metric_name text collate "C",
  trigger_names text[] collate "C" not null,
  standing boolean not null,
  muted boolean not null,
  chain text[] collate "C" not null,
  severity smallint,
  status smallint,
  acknowledged boolean,
  value double precision,
  value_ms bigint,
  matched_ms bigint not null,
  first_due_ms bigint,
  notified_ms bigint,
  last_ms bigint not null,
  metric_labels jsonb,
  grouped boolean not null default false,
  constraint rule_matches_tenant_id_subject_rule_id_pk PRIMARY KEY (tenant_id, subject, rule_id)
);
CREATE INDEX rule_matches_muted ON public.rule_matches USING btree (tenant_id, entity_id) WHERE muted;

create table rule_triggers (
  tenant_id uuid not null,
  rule_name text collate "C" not null,
  trigger_name text collate "C" not null,
  place integer not null,
  constraint rule_triggers_tenant_id_rule_name_trigger_name_pk PRIMARY KEY (tenant_id, rule_name, trigger_name),
  constraint rule_triggers_rule_fk FOREIGN KEY (tenant_id, rule_name) REFERENCES rules(tenant_id, name) ON DELETE CASCADE,
  constraint rule_triggers_trigger_fk FOREIGN KEY (tenant_id, trigger_name) REFERENCES triggers(tenant_id, name)
);
CREATE INDEX rule_triggers_trigger ON public.rule_triggers USING btree (tenant_id, trigger_name, rule_name);

create table rules (
  tenant_id uuid not null,
  name text collate "C" not null,
  id uuid not null default gen_random_uuid(),
  description text collate "C" not null,
  enabled boolean not null,
  message text collate "C" not null,
  repeat boolean not null,
  repeat_interval_sec bigint not null,
  delay_sec integer not null,
  send_updates boolean not null,
  mute_during_maintenance boolean not null,
  tags jsonb not null,
  created_ms bigint not null,
  repeat_while smallint,
  matchers text[] collate "C" not null default '{}'::text[],
  grouping jsonb,
  constraint rules_tenant_id_name_pk PRIMARY KEY (tenant_id, name)
);

create table series (
  tenant_id uuid not null,
  number bigint not null,
  entity_id bytea not null,
  metric text collate "C" not null,
  units text collate "C" not null,
  description text collate "C" not null,
  created_ms bigint not null,
  unused_ms bigint,
  labels jsonb,
  labels_begin text collate "C" not null default ''::text,
  labels_hash bytea not null default '\x'::bytea,
  instrument text collate "C" not null default ''::text,
  constraint series_tenant_id_number_pk PRIMARY KEY (tenant_id, number)
);
CREATE UNIQUE INDEX series_identity ON public.series USING btree (tenant_id, entity_id, metric, labels_begin, labels_hash);

create table series_counts (
  tenant_id uuid not null,
  last_number bigint not null,
  count bigint not null,
  constraint series_counts_tenant_id_pk PRIMARY KEY (tenant_id)
);

create table series_labels (
  tenant_id uuid not null,
  entity_id bytea not null,
  key text collate "C" not null,
  value_begin text collate "C" not null,
  series bigint not null,
  constraint series_labels_tenant_id_entity_id_key_value_begin_series_pk PRIMARY KEY (tenant_id, entity_id, key, value_begin, series)
);

create table silence_subjects (
  tenant_id uuid not null,
  silence_id uuid not null,
  subject bytea not null,
  event_id bytea,
  number integer,
  constraint silence_subjects_tenant_id_silence_id_subject_pk PRIMARY KEY (tenant_id, silence_id, subject)
);

create table silences (
  tenant_id uuid not null,
  id uuid not null,
  matchers text[] collate "C" not null,
  parts jsonb not null,
  canonical text[] collate "C" not null,
  starts_ms bigint not null,
  ends_ms bigint,
  until_resolved boolean not null,
  judged boolean not null,
  rule_names text[] collate "C" not null,
  destination_names text[] collate "C" not null,
  comment text collate "C" not null,
  created_by text collate "C" not null,
  client_id text collate "C" not null,
  client_name text collate "C" not null,
  key_prefix text collate "C" not null,
  created_ms bigint not null,
  updated_ms bigint not null,
  constraint silences_tenant_id_id_pk PRIMARY KEY (tenant_id, id)
);
CREATE INDEX silences_by_age ON public.silences USING btree (tenant_id, created_ms, id);
CREATE INDEX silences_by_end ON public.silences USING btree (tenant_id, ends_ms);

create table stale_watches (
  tenant_id uuid not null,
  trigger_name text collate "C" not null,
  entity_id bytea not null,
  last_ms bigint not null,
  fired boolean not null,
  constraint stale_watches_tenant_id_trigger_name_entity_id_pk PRIMARY KEY (tenant_id, trigger_name, entity_id),
  constraint stale_watches_trigger_fk FOREIGN KEY (tenant_id, trigger_name) REFERENCES triggers(tenant_id, name) ON DELETE CASCADE
);
CREATE INDEX stale_watches_fired ON public.stale_watches USING btree (tenant_id, trigger_name, entity_id) WHERE fired;

create table summary_members (
  tenant_id uuid not null,
  summary_id uuid not null,
  delivery_id uuid not null,
  created_ms bigint not null,
  destination_name text collate "C" not null,
  subject bytea not null,
  rule_id uuid not null,
  of_window boolean not null,
  over boolean not null,
  told jsonb,
  constraint summary_members_tenant_id_summary_id_delivery_id_pk PRIMARY KEY (tenant_id, summary_id, delivery_id)
);
CREATE INDEX summary_members_by_subject ON public.summary_members USING btree (tenant_id, destination_name, subject) WHERE (created_ms >= 0);

create table tenant_counts (
  tenant_id uuid not null,
  what text collate "C" not null,
  count bigint not null,
  size bigint,
  counted_ms bigint,
  constraint tenant_counts_tenant_id_what_pk PRIMARY KEY (tenant_id, what)
);

create table tenant_state (
  tenant_id uuid not null,
  rules_version bigint not null default 0,
  first_session_ms bigint,
  constraint tenant_state_tenant_id_pk PRIMARY KEY (tenant_id)
);

create table tenants (
  id uuid not null,
  name text collate "C" not null,
  created_ms bigint not null,
  constraint tenants_pkey PRIMARY KEY (id),
  constraint tenants_name_unique UNIQUE (name)
);

create table triggers (
  tenant_id uuid not null,
  name text collate "C" not null,
  description text collate "C" not null,
  tags jsonb not null,
  source text collate "C" not null,
  type jsonb not null,
  created_ms bigint not null,
  comparisons integer,
  constraint triggers_tenant_id_name_pk PRIMARY KEY (tenant_id, name)
);

create table unmatched_changes (
  tenant_id uuid not null,
  position bigint not null,
  id uuid not null,
  created_ms bigint not null,
  count integer not null,
  done integer not null,
  bytes integer not null,
  changes text collate "C" not null,
  constraint unmatched_changes_tenant_id_position_id_pk PRIMARY KEY (tenant_id, "position", id)
);

create table user_account_groups (
  tenant_id uuid not null,
  account_id text collate "C" not null,
  group_name text collate "C" not null,
  place integer not null,
  constraint user_account_groups_tenant_id_account_id_group_name_pk PRIMARY KEY (tenant_id, account_id, group_name),
  constraint user_account_groups_account_fk FOREIGN KEY (tenant_id, account_id) REFERENCES user_accounts(tenant_id, id) ON DELETE CASCADE,
  constraint user_account_groups_group_fk FOREIGN KEY (tenant_id, group_name) REFERENCES user_groups(tenant_id, name) ON DELETE CASCADE
);
CREATE INDEX user_account_groups_group ON public.user_account_groups USING btree (tenant_id, group_name, account_id);

create table user_accounts (
  tenant_id uuid not null,
  id text collate "C" not null,
  email text collate "C" not null,
  password_hash text collate "C" not null,
  first_name text collate "C" not null,
  last_name text collate "C" not null,
  created_ms bigint not null,
  updated_ms bigint not null,
  constraint user_accounts_tenant_id_id_pk PRIMARY KEY (tenant_id, id)
);
CREATE UNIQUE INDEX user_accounts_email ON public.user_accounts USING btree (tenant_id, lower((email COLLATE pg_c_utf8)));
CREATE INDEX user_accounts_first_name ON public.user_accounts USING btree (tenant_id, first_name, id);
CREATE INDEX user_accounts_last_name ON public.user_accounts USING btree (tenant_id, last_name, id);

create table user_groups (
  tenant_id uuid not null,
  name text collate "C" not null,
  cloud_roles jsonb not null,
  restriction_filters jsonb not null,
  constraint user_groups_tenant_id_name_pk PRIMARY KEY (tenant_id, name)
);
