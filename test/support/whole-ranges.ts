/** Of what does not name its rows by id or name. */
const notByKey = String.raw`(?!.*\b(?:id|name)"? (?:= \$|= any\(|in \(\$|>= asked\.))`;
/** Of what is no page of destinations whose addresses may have to be sealed. */
const notToSeal = '(?!select "name", "kind", "type" from)';

/**
 * Statements that ask for a whole range of a tenant's rows, by how they begin, and why they may read it. Clauses of callers
 * may ask for all that a tenant has.
 */
export const wholeRanges: readonly { begin: RegExp; why: string }[] = [
  {
    begin: /^select array\[ ?\( ?(?:with owners|select count)/,
    why: "counts candidates of a clause, 36,000 of each index at most",
  },
  { begin: /^with walked as materialized/, why: "walks back until a clause has matched enough for a page" },
  { begin: /^with matching as/, why: "a clause may match all of the tenant's, and is counted" },
  { begin: /^select count\(\*\)(?: as \w+)? from/, why: "counts what a list or a clause asks for" },
  {
    begin: /^select o\.event_id, o\.number from (?:occurrences o|\(.*) where .* order by o\.seen_slot desc limit/,
    why: "the latest occurrences of a range, 50,000 at most",
  },
  {
    begin: /^with found as materialized \( ?select o\.event_id, o\.number, o\.severity/,
    why: "groups what a query matches, 200,000 at most",
  },
  {
    begin: /^select o\.event_id, o\.number, count\(\*\) over \(\) as total from (?:occurrences|\( ?select distinct)/,
    why: "the first 1,000 that a query matches, and how many more there are",
  },
  {
    begin: /^select r\.id, r\.name, r\.enabled, r\.message, .* order by name limit \$\d+\)\) order by r\.name$/,
    why: "all rules of a tenant, which an occurrence is explained by",
  },
  {
    begin: /^select subject, entity_id as "entityId", metric_name .* from rule_matches .* limit 100000$/,
    why: "the series and entities that a silence may hold, 100,000 at most",
  },
  {
    begin: /^select id, dimensions, floor\(extract\(epoch/,
    why: "looks at 1,000 entities of OpenTelemetry in the order of ids",
  },
  {
    begin: /^update (?:due_deliveries|alert_groups) set due_ms = \$1 where tenant_id = \$2 and (?:silence_id|held)/,
    why: "all that waits for a silence, when it ends",
  },
  {
    begin: /^select id from group_messages where tenant_id = \$1 and id < \$2::uuid and id <> all/,
    why: "what waits names messages that stay: what waits is little",
  },
  { begin: /^with share as materialized/, why: "all destinations, with one look at what waits for each" },
  {
    begin: /^with failed as materialized .* from delivery_history/,
    why: "the failed deliveries of a destination, and what was sent since the oldest that may be needed, by what has no index",
  },
  {
    begin:
      /^(?:update (?:due_deliveries|alert_groups) set due_ms = \$1|select from alert_groups) where tenant_id = \$\d(?: and flushed_ms is null)?$/,
    why: "tests look at all",
  },
  { begin: /^select \(case when e\.alert_labels is not null/, why: "a test reads a label" },
  { begin: /^with counted as \(/, why: "counts the events of a range" },
  {
    begin: /^select m\.rule_id as id from \( select rule_id, event_id, number from rule_matches/,
    why: "what rules match, 1,000 at most",
  },
  {
    begin: /^select metric, units, description, instrument, said_ms from metric_facts/,
    why: "what remote write says of metrics, 1,000 in the order of names",
  },
  {
    begin:
      /^select o\.event_id, o\.number(?:, o\.severity, .*)? from (?:occurrences o left join events e on|\( ?select distinct) /,
    why: "a test asks a clause of all, or reads all",
  },
  {
    begin: /^delete from metric_facts where tenant_id = \$1 and (?:said_ms <|metric in)/,
    why: "what remote write no longer says of metrics, of which a tenant has 10,000",
  },
  { begin: /^insert into occurrences .* select o\.tenant_id, o\.event_id, n,/, why: "a test makes many" },
  { begin: /^update occurrences set status = 4 - status/, why: "a test changes one, by its key" },
  { begin: /^insert into "\w+" \("tenant_id", .* from generate_series\(/, why: "a test fills tables" },
  {
    begin: /^select from due_deliveries where tenant_id = \$1 and silence_id is not null$/,
    why: "a test looks at all",
  },
  {
    begin:
      /^(?!.* \?\| )select id from (?:unnest\(\S+\) as wanted .* as )?entities where tenant_id = \$\d and deleted_ms is null/,
    why: "by a clause",
  },
  {
    begin: /^select id, name, (?:case when|dimensions).* from (?:unnest.* as )?entities where tenant_id/,
    why: "a page by a clause",
  },
  { begin: /^select string_agg\(id, ''::bytea/, why: "all entities that a clause matches, in portions" },
  { begin: /^with picked as materialized/, why: "locks all entities that a clause matches, a portion at most" },
  {
    begin:
      /^select id from entities where tenant_id = \$\d and deleted_ms is null and .* order by id for no key update$/,
    why: "locks all entities that a clause matches, a portion at most",
  },
  { begin: /^with recursive walk/, why: "the contents of a page by a clause" },
  {
    begin: /^select id, case when deleted_ms is null then greatest/,
    why: "looks at a portion of 1,000 in the order of ids",
  },
  {
    begin: /^update property_updater_sets set .* exists \(select from property_updaters/,
    why: "whether any updater is enabled: up to the first that is",
  },
  { begin: /^delete from feed where/, why: "removes what is older than an hour" },
  {
    begin: /^select h\.summary_id as id from summary_members h where h\.tenant_id = \$1 and h\.summary_id </,
    why: "looks for ten summaries that are older than the retention",
  },
  {
    begin: /^delete from (?:instances|audit_entries|delivery_\w+|summary_members)/,
    why: "removes what is older than its retention",
  },
  {
    begin: new RegExp(
      `^${notByKey}${notToSeal}select .* from "?(?:api_clients|api_keys|user_accounts|user_groups|credentials|destinations|rules|triggers|maintenance_windows|property_updaters|dictionary_entries|audit_entries|silences|event_views)"?`,
    ),
    why: "lists that are shown or loaded whole, or by a filter",
  },
  {
    begin: /^select "tenant_id" as "tenantId", "id" as "id", .* from maintenance_windows/,
    why: "a page by a clause",
  },
  {
    begin: /^select 1 from (?:entities) where tenant_id = \$\d and deleted_ms is null/,
    why: "whether a clause matches any",
  },
  { begin: /^select entity\.id as "entityId", entity\.name/, why: "the first entity that a clause matches" },
  { begin: /^select source, key from entity_keys/, why: "all names of a tenant's fields" },
  {
    begin: /^select position, created_ms, changes(?:, earlier)? from feed/,
    why: "the feed from a place on, a page at a time",
  },
  {
    begin: /^select position, created_ms::float8 as "createdMs", facts, changes from/,
    why: "the feed behind a cursor, a page at a time",
  },
  {
    begin: /^select coalesce\(sum\(fact_count\), 0\)|^select created_ms::float8 as ms from feed .* in changes\) > 0/,
    why: "the feed behind a cursor, which is bounded",
  },
  {
    begin: /^select subject, event_id is null and not standing/,
    why: "looks at a portion of 1,000 matches in the order of subjects",
  },
  {
    begin: /^select position from feed|^select (?:name |id )?from events where tenant_id = \$1$/,
    why: "a test looks at all",
  },
  {
    begin: /^select o\.event_id, .* from occurrences o left join .* order by o\.start_ms$/,
    why: "a test looks at all",
  },
  {
    begin:
      /^select o\.event_id, o\.number from (?:occurrences o|\(.*) where o\.tenant_id = \$\d+ and o\.end_ms is null limit/,
    why: "all alerts that are open, or the candidates of a filter",
  },
  {
    begin: /^select subject, rule_id, entity_id, event_id, number, metric_name, standing from rule_matches/,
    why: "looks at a portion of 2,000 matches in the order of subjects",
  },
  {
    begin: /^insert into series as stored \(.*, unused_ms\)|^delete from series where tenant_id = \$1 and number >=/,
    why: "a portion of series in the order of their numbers",
  },
  // Jobs, points and notifications.
  {
    begin:
      /^(?:select|select \*|delete) from (?:jobs|rule_matches|due_deliveries) where tenant_id = \$1$|^select number from series where tenant_id = \$1 order by number$|^update entities set deleted_ms = \$1 where tenant_id = \$2$|^select from entities where tenant_id = \$1$|^select payload from jobs where tenant_id = \$1 and due_ms/,
    why: "tests look at all",
  },
  { begin: /^with near as materialized \( select id, sum\(size\)/, why: "at most 1,000 jobs that are due" },
  { begin: /^select least\( \(select min\(due_ms\) from jobs/, why: "the jobs of a lane that are due and claimed" },
  {
    begin:
      /^select max\(number\)::float8 as last|^select number, unused_ms as marked|^with gone as \( delete from series/,
    why: "a portion of 1,000 series in the order of their numbers",
  },
  { begin: /^select bucket, level, count\(distinct/, why: "all rows of the head, which merging keeps few" },
  { begin: /^with oldest as materialized \( select written_us/, why: "a bucket of the head" },
  {
    begin: /^with chunks as materialized/,
    why: "the chunks of a span, and the rows of the head in the buckets of their series",
  },
  {
    begin: /^with state as materialized/,
    why: "all rules of a tenant when they are first held, then those that have changed",
  },
  { begin: /^with recursive first \(name/, why: "one look for each destination that has something due" },
  { begin: /^with recursive watched/, why: "one look for each trigger that has watches" },
  {
    begin: /^select string_agg\(entity_id|^select entity_id as id from stale_watches|^select min\(last_ms\)/,
    why: "all watches of a trigger, in proportion to the time between looks, or when the oldest may be stale",
  },
  {
    begin: /^update stale_watches set (?:last_ms =|fired = false)/,
    why: "all watches of a trigger that has changed, or after a time without any server; those that have fired",
  },
  {
    begin: /^select \* from \( \(select id, created_ms as "createdMs"|^select \(select count\(\*\) from due_deliveries/,
    why: "a list of deliveries by what has no index, and its total",
  },
  {
    begin: /^delete from rule_matches where tenant_id = \$1 and rule_id/,
    why: "what is noted of all subjects, when a rule is deleted",
  },
  {
    begin: /^select root, rule_id as "ruleId" from chain_counts|^delete from chain_counts/,
    why: "a portion of what is older than it is kept, in the order of the key",
  },
];
