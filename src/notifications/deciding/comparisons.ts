import { fromJson, type JsonValue } from "@bufbuild/protobuf";
import { TriggerTypeSchema } from "#gen/belfry/notifications/v1/trigger_pb.ts";
import { textArray } from "../../db/batch.ts";
import type { Db } from "../../db/connect.ts";
import { exhausted } from "../../errors.ts";
import { paced } from "../../event-loop.ts";
import { holdCount } from "../../tenants/usage-counters.ts";
import { comparisonsOf } from "../sources.ts";

/** With how many texts the enabled rules of a tenant may compare each event, beside what an index decides. */
export const comparisonsMax = 20_000;

/**
 * Makes a change of rules or triggers, in the caller's transaction, one at a time for each tenant, so that no two changes pass the
 * bound together. What does not grow is always taken. @throws code 8 when the enabled rules would compare too much
 */
export async function withinComparisons<T>(tx: Db, tenantId: string, change: () => Promise<T>): Promise<T> {
  await holdCount(tx, tenantId, "comparisons");
  await countOlder(tx, tenantId);
  const before = await sum(tx, tenantId);
  const done = await change();
  const after = await sum(tx, tenantId);
  if (after <= comparisonsMax || after <= before) return done;
  throw exhausted(
    `the enabled rules of the tenant would compare each event with ${after} texts; ${comparisonsMax} are allowed: disable some, or let their triggers need an equality`,
  );
}

async function sum(tx: Db, tenantId: string): Promise<number> {
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
  return row.texts;
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
