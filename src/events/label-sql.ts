import type { Fragment } from "postgres";
import { textArray } from "../db/batch.ts";
import type { Db } from "../db/connect.ts";
import { annotationPrefix, generatorKey, labelPrefix, reasonKey, severityNames } from "./labels.ts";

/**
 * One label of an occurrence as `labelView` makes it, over o, its event e and its entity n: text, null where there is none.
 * A statement reads it where rows are too many to be read one by one; test/events/group.test.ts holds the two against each other.
 */
export function labelSql(db: Db, name: string): Fragment {
  const plain = db`case jsonb_typeof(o.metadata -> ${name}::text)
      when 'string' then nullif(o.metadata ->> ${name}::text, '') when 'boolean' then o.metadata ->> ${name}::text
      when 'number' then ${shortest(db, name)}
    end`;
  const own = db`coalesce(${ownSql(db, name)}, nullif(n.dimensions ->> ${name}::text, ''), ${plain})`;
  return db`(case
    when e.alert_labels is not null then nullif(e.alert_labels ->> ${name}::text, '')
    when o.type = 'alert' and e.dedup_key ~ '^[0-9a-f]{64}$' then nullif(${sentSql(db, name)}, '')
    else ${own} end)`;
}

/** What an occurrence says of itself under this name. */
function ownSql(db: Db, name: string): Fragment {
  switch (name) {
    case "alertname":
      return db`nullif(e.name, '')`;
    case "severity":
      return db`(${textArray(severityNames)}::text[])[o.severity + 1]`;
    case "type":
      return db`nullif(o.type, '')`;
    default:
      return db`null::text`;
  }
}

/** A label of an alert that its metadata hold. */
function sentSql(db: Db, name: string): Fragment {
  const key = `${labelPrefix}${name}`;
  const marked = db`case jsonb_typeof(o.metadata -> ${key}::text) when 'string' then o.metadata ->> ${key}::text end`;
  const hasOther = [labelPrefix, annotationPrefix].some((prefix) => name.startsWith(prefix));
  if (hasOther || name === reasonKey || name === generatorKey) return marked;
  const bare = db`case jsonb_typeof(o.metadata -> ${name}::text) when 'string' then o.metadata ->> ${name}::text end`;
  return db`coalesce(${marked}, ${bare})`;
}

/** A number in JSON's shortest form. PostgreSQL keeps its digits, and writes them without an exponent where JSON has one. */
function shortest(db: Db, name: string): Fragment {
  return db`(
      select case
          when whole ~ '^.{22}' and fraction = '' then sign || left(whole, 1) || rtrim('.' || rtrim(substr(whole, 2), '0'), '.')
            || 'e+' || length(whole) - 1
          when whole = '0' and fraction ~ '^0{6}' then sign || left(digits, 1) || rtrim('.' || substr(digits, 2), '.')
            || 'e-' || length(fraction) - length(digits) + 1
          else value
        end
      from (select o.metadata ->> ${name}::text as value) as read
        cross join lateral (select case when value like '-%' then '-' else '' end as sign, ltrim(split_part(value, '.', 1), '-') as whole,
          split_part(value, '.', 2) as fraction) as parts
        cross join lateral (select ltrim(fraction, '0') as digits) as significant
    )`;
}
