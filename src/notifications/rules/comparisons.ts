import { fromJson, type JsonValue } from "@bufbuild/protobuf";
import type { Fragment } from "postgres";
import { TriggerTypeSchema } from "#gen/belfry/notifications/v1/trigger_pb.ts";
import { textArray } from "../../db/batch.ts";
import type { Db } from "../../db/connect.ts";
import { addToTotal, holdTotal, type Total } from "../../db/running-total.ts";
import { exhausted } from "../../errors.ts";
import { paced } from "../../event-loop.ts";
import { comparisonsOf } from "./sources.ts";

/** With how many texts the enabled rules of a tenant may compare each event, beside what an index decides. */
export const comparisonsMax = 20_000;

/** The texts that enabled rules compare, beside the totals of what a tenant sets up. A 0.3.0 server that lets them grow sets its count to 0. */
const totalOf = "comparisons";

/** What is changed: a rule with its triggers and destinations, or what a trigger looks at. */
export type Compared = { rule: string } | { trigger: string };

/**
 * Makes a change of a rule or trigger, in the caller's transaction, one at a time for each tenant, so that no two changes pass the
 * bound together. What does not grow is always taken. @throws code 8 when the enabled rules would compare too much
 */
export async function withinComparisons<T>(
  tx: Db,
  tenantId: string,
  compared: Compared,
  change: () => Promise<T>,
): Promise<T> {
  const own = () => textsOf(tx, tenantId, compared);
  await holdTotal(tx, tenantId, totalOf);
  const before = await own();
  const done = await change();
  const growth = (await own()) - before;
  if (growth === 0) return done;
  const fits = ({ size }: Total) => growth < 0 || size <= comparisonsMax;
  const total = await addToTotal(tx, tenantId, {
    what: totalOf,
    growth: { count: 0, size: growth },
    fits,
    sum: () => sumAll(tx, tenantId),
  });
  if (fits(total)) return done;
  throw exhausted(
    `the enabled rules of the tenant would compare each event with ${total.size} texts; ${comparisonsMax} are allowed: disable some, or let their triggers need an equality`,
  );
}

/** Finds a row where a rule is enabled and has destinations. Fenced: each rule is looked up by its key. */
const notifies = (db: Db, tenantId: string, name: Fragment) => db`
  select from rules r
  where r.tenant_id = ${tenantId} and r.name = ${name} and r.enabled and (
    select true from rule_destinations d where d.tenant_id = ${tenantId} and d.rule_name = r.name limit 1)
  limit 1`;

/** Finds a row where a rule that notifies, none of this name, uses a trigger. */
const usedBeside = (db: Db, tenantId: string, trigger: Fragment, ruleName: string | null) => db`
  select from rule_triggers u cross join lateral (${notifies(db, tenantId, db`u.rule_name`)}) as user_rule
  where u.tenant_id = ${tenantId} and u.trigger_name = ${trigger} and u.rule_name is distinct from ${ruleName}::text
  limit 1`;

/** How many texts would be compared no more without a rule, or a trigger; null: an earlier version has stored a trigger of theirs. */
function readTexts(tx: Db, tenantId: string, compared: Compared) {
  if ("trigger" in compared)
    return tx<{ texts: number | null }[]>`
      select t.comparisons::float8 as texts from triggers t
      where t.tenant_id = ${tenantId} and t.name = ${compared.trigger} and t.comparisons is distinct from 0
        and exists (${usedBeside(tx, tenantId, tx`${compared.trigger}`, null)})`;
  const { rule } = compared;
  return tx<{ texts: number | null }[]>`
    select (cardinality(o.matchers) + (
      select case when bool_or(t.comparisons is null) then null else coalesce(sum(t.comparisons), 0) end
      from rule_triggers m cross join lateral (
        select comparisons from triggers where tenant_id = ${tenantId} and name = m.trigger_name limit 1) as t
      where m.tenant_id = ${tenantId} and m.rule_name = ${rule} and t.comparisons is distinct from 0
        and not exists (${usedBeside(tx, tenantId, tx`m.trigger_name`, rule)})
      ))::float8 as texts
    from rules o
    where o.tenant_id = ${tenantId} and o.name = ${rule} and exists (${notifies(tx, tenantId, tx`${rule}`)})`;
}

async function textsOf(tx: Db, tenantId: string, compared: Compared): Promise<number> {
  const [row = { texts: 0 }] = await readTexts(tx, tenantId, compared);
  if (row.texts !== null) return row.texts;
  await countOlder(tx, tenantId);
  return await textsOf(tx, tenantId, compared);
}

async function sumAll(tx: Db, tenantId: string): Promise<Total> {
  await countOlder(tx, tenantId);
  const [row] = await tx<[{ texts: number }]>`
    select coalesce(sum(t.comparisons), 0)::float8 + (
        select coalesce(sum(cardinality(o.matchers)), 0)::float8 from rules o
        where o.tenant_id = ${tenantId} and o.enabled and exists (
          select from rule_destinations d where d.tenant_id = ${tenantId} and d.rule_name = o.name)
      ) as texts
    from triggers t
    where t.tenant_id = ${tenantId} and t.comparisons > 0 and exists (
      select from rule_triggers u
        join rules r on r.tenant_id = ${tenantId} and r.name = u.rule_name
        join rule_destinations d on d.tenant_id = ${tenantId} and d.rule_name = u.rule_name
      where u.tenant_id = ${tenantId} and u.trigger_name = t.name and r.enabled
    )`;
  return { count: 1, size: row.texts };
}

/** Counts what earlier versions have stored. */
async function countOlder(tx: Db, tenantId: string): Promise<void> {
  const older = await tx<{ name: string; type: JsonValue }[]>`
    select name, type from triggers where tenant_id = ${tenantId} and comparisons is null`;
  if (older.length === 0) return;
  const pace = paced(undefined, tenantId);
  const counted: [name: string, texts: number][] = [];
  for (const { name, type } of older) {
    await pace();
    counted.push([name, comparisonsOf(fromJson(TriggerTypeSchema, type, { ignoreUnknownFields: true }))]);
  }
  await tx`
    update triggers set comparisons = (${JSON.stringify(Object.fromEntries(counted))}::jsonb ->> name)::int4
    where tenant_id = ${tenantId} and name = any(${textArray(older.map(({ name }) => name))}::text[])
      and comparisons is null`;
}
