/** Statements that ask for a whole range of a tenant's rows, and why they may read it. */
export const wholeRanges: readonly { begin: string; why: string }[] = [
  // Jobs, points and notifications.
  {
    begin: 'select floor(extract(epoch from statement_timestamp()) * 1000)::float8 as "nowMs" from triggers',
    why: "the triggers of a tenant, when a rule or trigger has changed",
  },
  {
    begin: "with state as materialized ( select rules_version",
    why: "all rules of a tenant, when they are first held; then those that have changed",
  },
  {
    begin: "with recursive first (name",
    why: "each destination that has something due: one look in the index for each",
  },
  {
    begin: "with recursive watched (name)",
    why: "each trigger that has watches: one look in the index for each",
  },
  {
    begin: "update stale_watches set last_ms = last_ms +",
    why: "all watches of a tenant, after a time without any server",
  },
  {
    begin: "update stale_watches set last_ms = (extract",
    why: "all watches of a trigger that has changed",
  },
  {
    begin: "update stale_watches set fired = false",
    why: "what of a trigger stays away, by the index of these",
  },
  {
    begin: "select string_agg(entity_id, ''::bytea order by entity_id) as ids from ( select entity_id,",
    why: "all watches of a trigger, held against the entities that it means; rested in proportion",
  },
  {
    begin: "select entity_id as id from stale_watches",
    why: "the watches of a trigger, when the oldest may stay away too long",
  },
  {
    begin: "select min(last_ms)::float8 as ms from stale_watches",
    why: "the watches of a trigger, when the oldest may stay away too long",
  },
  {
    begin: "select subject, event_id is null and not standing",
    why: "a portion of 1,000 in the order of the key",
  },
  {
    begin: "select max(number)::float8 as last, count(*)::float8 as count from ( select number from series",
    why: "a portion of 1,000 in the order of the key",
  },
  {
    begin: "select number, unused_ms as marked from series",
    why: "the series of one portion",
  },
  {
    begin: "with gone as ( delete from series",
    why: "the series of one portion",
  },
  {
    begin: "select bucket, level, count(distinct written_us)",
    why: "all rows of the head, which merging keeps few",
  },
  {
    begin: "with oldest as materialized ( select written_us, part",
    why: "a bucket of the head",
  },
  {
    begin: "with chunks as materialized ( select series, first_ms",
    why: "chunks of the span, and the rows of the head in the buckets of its series",
  },
  {
    begin: "with near as materialized ( select id, sum(size)",
    why: "at most 1,000 jobs that are due",
  },
  {
    begin: "select least( (select min(due_ms) from jobs",
    why: "the jobs of a lane that are due and claimed",
  },
  {
    begin: 'select * from ( (select id, created_ms as "createdMs"',
    why: "a list of deliveries, filtered by what has no index",
  },
  {
    begin: "select (select count(*) from due_deliveries",
    why: "the total of a list of deliveries",
  },
  {
    begin: "delete from rule_matches where tenant_id = $1 and rule_id",
    why: "what is noted of all subjects of a tenant, when a rule is deleted",
  },
  {
    begin: 'select "name", "description"',
    why: "a list of rules, triggers or destinations, which BELFRY_RESOURCES_MAX bounds",
  },
  {
    begin: "select count(*)::float8 as count, (coalesce(sum(",
    why: "all of a kind that is bounded by number and bytes",
  },
];
