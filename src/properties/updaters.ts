import { randomUUIDv7 } from "node:crypto";
import { create, toJson } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { and, eq } from "drizzle-orm";
import { type Clause, QuerySchema } from "#gen/belfry/clause/v1/clause_pb.ts";
import {
  type CustomPropertyUpdater,
  CustomPropertyUpdaterSchema,
} from "#gen/belfry/properties/v1/custom_property_updater_pb.ts";
import { checkClause } from "../clause/check.ts";
import { type ExpressionCount, newExpressionCount } from "../clause/expression.ts";
import { type QuotaBounds, tooLarge, tooMany } from "../db/admission-quota.ts";
import { jsonArray, textArray } from "../db/batch.ts";
import type { Db } from "../db/connect.ts";
import { orm } from "../db/orm.ts";
import { addToTotal, type Total } from "../db/running-total.ts";
import { alreadyExists, notFound } from "../errors.ts";
import { paced } from "../event-loop.ts";
import type { Broken } from "../rpc/constraint-rules.ts";
import { rulesText, validateItem } from "../rpc/validate.ts";
import type { UpdaterRow } from "./messages.ts";
import { propertyUpdaters } from "./tables.ts";
import { brokenKeys } from "./updater-fields.ts";
import { startUpdaters } from "./updater-job.ts";
import { changeSet, lockSet } from "./updater-set.ts";
import { brokenProperties } from "./values.ts";

/** What became of one item: an empty error says that all went well. */
export interface ItemResult {
  id: string;
  error: string;
}

const kind = "custom property updater";
const identified = (tenantId: string, id: string) =>
  and(eq(propertyUpdaters.tenantId, tenantId), eq(propertyUpdaters.id, id));
/** Those of these ids that there are. One by one: a list of ids may look dearer than all updaters of a tenant by their names (design/statements). */
const those = async (ids: readonly string[], change: (id: string) => Promise<{ id: string }[]>) =>
  new Set((await Promise.all([...new Set(ids)].map(change))).flatMap((rows) => rows.map(({ id }) => id)));
const unknown = (id: string): ItemResult => ({ id, error: notFound(kind, id).rawMessage });
const good = (id: string): ItemResult => ({ id, error: "" });

/** Why an updater cannot be taken, each rule with its path; empty when it can. Its expressions count together with those of the same request. */
function refusal(updater: CustomPropertyUpdater, path: string, expressions: ExpressionCount): string {
  const { name, entityInput, properties } = updater;
  const broken: Broken[] = [];
  const rules = validateItem(CustomPropertyUpdaterSchema, updater, path);
  if (name === "") broken.push({ path: `${path}.name`, rule: "is required" });
  if (entityInput === undefined) broken.push({ path: `${path}.entity_input`, rule: "is required" });
  else if (entityInput.clause === undefined) broken.push({ path: `${path}.entity_input.clause`, rule: "is required" });
  if (properties === undefined) broken.push({ path: `${path}.properties`, rule: "is required" });
  // Properties that are more than they may be are not looked at any further.
  else if (!rules.some((each) => each.path === `${path}.properties`)) {
    broken.push(...brokenProperties(properties, `${path}.properties`));
  }
  broken.push(...rules);
  if (broken.length === 0)
    return brokenClause(entityInput?.clause as Clause, `${path}.entity_input.clause`, expressions);
  return rulesText(broken);
}

/** Few enough that the statement of them is put together at once. */
const statementMax = 50;

function portionsOf<T>(items: readonly T[]): T[][] {
  const count = Math.ceil(items.length / statementMax);
  return Array.from({ length: count }, (_, i) => items.slice(i * statementMax, (i + 1) * statementMax));
}

/** What is wrong with a clause. A mistake of an item is reported in its result, so what the language throws is caught here. */
function brokenClause(clause: Clause, path: string, expressions: ExpressionCount): string {
  try {
    return rulesText(brokenKeys(checkClause(clause, path, "refuse", expressions)));
  } catch (error) {
    if (error instanceof ConnectError && error.code === Code.InvalidArgument) return error.rawMessage;
    throw error;
  }
}

/** What is stored of an updater that is good, but for its id and times. */
function valuesOf({ name, description, entityInput, properties = {}, enabled, sequence, tags }: CustomPropertyUpdater) {
  const input = toJson(QuerySchema, entityInput ?? create(QuerySchema));
  return { name, description, entityInput: input, properties, enabled, sequence, tags };
}

/** An updater that may be taken, and the bytes that it will hold. */
interface Sent {
  values: ReturnType<typeof valuesOf>;
  bytes: number;
}

/** An updater as it is counted. */
interface StoredUpdater {
  id: string;
  name: string;
  bytes: number;
}

/** What a tenant has: of the updaters that a request touches each, by id and by name; at most how many all are, and their bytes. */
interface Held {
  byId: Map<string, { name: string; bytes: number }>;
  owners: Map<string, string>;
  count: number;
  bytes: number;
  /** Whether one found no room. */
  full: boolean;
}

/** Locks the set, and answers what of each is to be stored, or why it cannot be taken, and which of those that they touch there are. */
async function checkInLock(tx: Db, tenantId: string, updaters: readonly CustomPropertyUpdater[]) {
  const pace = paced(undefined, tenantId);
  const expressions = newExpressionCount();
  const refusals: string[] = [];
  const values: (ReturnType<typeof valuesOf> | undefined)[] = [];
  for (const [i, updater] of updaters.entries()) {
    await pace();
    refusals.push(refusal(updater, `updaters[${i}]`, expressions));
    values.push(refusals[i] === "" ? valuesOf(updater) : undefined);
  }
  const sizes: number[] = [];
  for (const part of portionsOf(values)) sizes.push(...(await updaterBytes(tx, part)));
  const anyEnabled = updaters.some(({ enabled }) => enabled);
  await lockSet(tx, tenantId, anyEnabled);
  // What is refused is not looked for: PostgreSQL takes no NUL.
  const touched = await touchedUpdaters(
    tx,
    tenantId,
    updaters.filter((_, i) => refusals[i] === ""),
  );
  const sent = values.map((each, i): Sent | string =>
    each === undefined ? (refusals[i] as string) : { values: each, bytes: sizes[i] as number },
  );
  return { sent, touched };
}

/**
 * Answers what of a request is taken, in its order. Where one finds no room by the total that is kept, all are judged again by what the rows
 * hold: `judge` may be called several times, each with a `Held` to change.
 */
async function withinRoom<T>(
  tx: Db,
  tenantId: string,
  touched: readonly StoredUpdater[],
  judge: (held: Held) => T,
): Promise<T> {
  function judged({ count, size }: Total) {
    const byId = new Map(touched.map(({ id, ...row }) => [id, row]));
    const owners = new Map(touched.map(({ id, name }) => [name, id]));
    const held: Held = { byId, owners, count, bytes: size, full: false };
    return { answer: judge(held), held };
  }
  const adding = { what: "updaters", sum: () => sumUpdaters(tx, tenantId) };
  const total = await addToTotal(tx, tenantId, {
    ...adding,
    growth: { count: 0, size: 0 },
    fits: (kept) => !judged(kept).held.full,
  });
  const { answer, held } = judged(total);
  const growth = { count: held.count - total.count, size: held.bytes - total.size };
  if (growth.count !== 0 || growth.size !== 0) await addToTotal(tx, tenantId, { ...adding, growth, fits: () => true });
  return answer;
}

/** Counts an updater among those that the tenant has, in place of the one before, unless there is no room: then answers why. */
function take(held: Held, id: string, { values: { name }, bytes }: Sent, bounds: QuotaBounds): string {
  const before = held.byId.get(id);
  const owner = held.owners.get(name);
  if (owner !== undefined && owner !== id) return alreadyExists(kind, name).rawMessage;
  const growth = bytes - (before?.bytes ?? 0);
  const crowded = before === undefined && held.count >= bounds.resourcesMax;
  if (crowded || (growth > 0 && held.bytes + growth > bounds.resourceBytesMax)) {
    held.full = true;
    return (crowded ? tooMany("updaters", bounds) : tooLarge("updaters", held.bytes + growth, bounds)).rawMessage;
  }
  if (before !== undefined) held.owners.delete(before.name);
  held.owners.set(name, id);
  held.byId.set(id, { name, bytes });
  held.count += before === undefined ? 1 : 0;
  held.bytes += growth;
  return "";
}

/** Creates updaters and starts those that are enabled; results in the order sent. Call it after `expectEnabled` if one is. */
export async function createUpdaters(
  tx: Db,
  tenantId: string,
  updaters: readonly CustomPropertyUpdater[],
  nowMs: number,
  bounds: QuotaBounds,
): Promise<ItemResult[]> {
  const { sent, touched } = await checkInLock(tx, tenantId, updaters);
  const { results, made } = await withinRoom(tx, tenantId, touched, (held) => {
    const made: Values[] = [];
    const results = sent.map((each): ItemResult => {
      if (typeof each === "string") return { id: "", error: each };
      const id = randomUUIDv7();
      const error = take(held, id, each, bounds);
      if (error !== "") return { id: "", error };
      made.push({ id, ...each.values });
      return good(id);
    });
    return { results, made };
  });
  if (made.length === 0) return results;
  const times = { createdMs: BigInt(nowMs), updatedMs: BigInt(nowMs) };
  for (const part of portionsOf(made)) {
    await orm(tx)
      .insert(propertyUpdaters)
      .values(part.map((each) => ({ tenantId, ...each, ...times })));
  }
  const enabled = enabledOf(made);
  const asked = updaters.some((each) => each.enabled);
  await changeSet(tx, tenantId, enabled.length > 0 ? "one is enabled" : asked ? undefined : "as before");
  await startUpdaters(tx, tenantId, enabled, nowMs);
  return results;
}

type Values = Sent["values"] & { id: string };

const enabledOf = (rows: readonly Values[]) => rows.filter(({ enabled }) => enabled).map(({ id }) => id);

/** Replaces updaters as a whole, one after the other, and starts those that are enabled now; results in the order sent. */
export async function replaceUpdaters(
  tx: Db,
  tenantId: string,
  updaters: readonly CustomPropertyUpdater[],
  nowMs: number,
  bounds: QuotaBounds,
): Promise<ItemResult[]> {
  const { sent, touched } = await checkInLock(tx, tenantId, updaters);
  const { results, order } = await withinRoom(tx, tenantId, touched, (held) => {
    const order: Values[] = [];
    const results = sent.map((each, i): ItemResult => {
      const { id } = updaters[i] as CustomPropertyUpdater;
      if (id === "") return { id, error: `updaters[${i}].id: is required` };
      if (typeof each === "string") return { id, error: each };
      if (!held.byId.has(id)) return unknown(id);
      const error = take(held, id, each, bounds);
      if (error !== "") return { id, error };
      order.push({ id, ...each.values });
      return good(id);
    });
    return { results, order };
  });
  const changed = new Map(order.map((values) => [values.id, values]));
  if (order.length === 0) return results;
  // One after the other: within one statement a name could be taken before its last owner has given it up.
  for (const part of portionsOf(order)) {
    await Promise.all(part.map((each) => replaceOne(tx, tenantId, each, nowMs)));
  }
  await changeSet(tx, tenantId);
  await startUpdaters(tx, tenantId, enabledOf([...changed.values()]), nowMs);
  return results;
}

async function replaceOne(tx: Db, tenantId: string, { id, ...values }: Values, nowMs: number): Promise<void> {
  await orm(tx)
    .update(propertyUpdaters)
    .set({ ...values, updatedMs: BigInt(nowMs) })
    .where(identified(tenantId, id));
}

/** Deletes updaters; what they have set stays. Results in the order sent; an id that comes twice is unknown then. */
export async function deleteUpdaters(tx: Db, tenantId: string, ids: readonly string[]): Promise<ItemResult[]> {
  await lockSet(tx, tenantId, false);
  const gone = await those(
    ids,
    async (id) =>
      await orm(tx).delete(propertyUpdaters).where(identified(tenantId, id)).returning({ id: propertyUpdaters.id }),
  );
  if (gone.size > 0) await changeSet(tx, tenantId);
  return ids.map((id) => (gone.delete(id) ? good(id) : unknown(id)));
}

/** Enables updaters and starts them, or disables them; results in the order sent. Call it after `expectEnabled` to enable. */
export async function switchUpdaters(
  tx: Db,
  tenantId: string,
  ids: readonly string[],
  enabled: boolean,
  nowMs: number,
): Promise<ItemResult[]> {
  await lockSet(tx, tenantId, enabled);
  const found = await those(
    ids,
    async (id) =>
      await orm(tx)
        .update(propertyUpdaters)
        .set({ enabled, updatedMs: BigInt(nowMs) })
        .where(identified(tenantId, id))
        .returning({ id: propertyUpdaters.id }),
  );
  await changeSet(tx, tenantId);
  if (enabled) await startUpdaters(tx, tenantId, [...found], nowMs);
  return ids.map((id) => (found.has(id) ? good(id) : unknown(id)));
}

/** What counts of an updater for the bound of bytes. */
type Counted = Pick<UpdaterRow, "name" | "description" | "tags" | "entityInput" | "properties">;

/** The bytes that an updater takes when it is read: the same before it is stored as afterwards. */
const bytesSql = (db: Db) => db`octet_length(name) + octet_length(description) + octet_length(tags::text)
  + octet_length(entity_input::text) + octet_length(properties::text)`;

/** The bytes that each of these will hold; 0 for undefined. */
export async function updaterBytes(db: Db, updaters: readonly (Counted | undefined)[]): Promise<number[]> {
  const column = <K extends keyof Counted>(name: K) => updaters.map((each) => each?.[name] ?? null);
  const rows = await db<{ bytes: number }[]>`
    select coalesce(${bytesSql(db)}, 0) as bytes from unnest(
      ${textArray(column("name"))}::text[], ${textArray(column("description"))}::text[], ${jsonArray(column("tags"))}::jsonb[],
      ${jsonArray(column("entityInput"))}::jsonb[], ${jsonArray(column("properties"))}::jsonb[]
    ) with ordinality as sent (name, description, tags, entity_input, properties, place)
    order by place`;
  return rows.map(({ bytes }) => bytes);
}

/** Of a tenant's updaters those that have an id or a name of these. */
function touchedUpdaters(
  db: Db,
  tenantId: string,
  updaters: readonly CustomPropertyUpdater[],
): Promise<StoredUpdater[]> {
  const columns = db`id, name, ${bytesSql(db)} as bytes`;
  return db`
    select found.* from unnest(${textArray(updaters.map(({ name }) => name))}::text[]) as asked (name) cross join lateral (
      select ${columns} from property_updaters where tenant_id = ${tenantId} and name = asked.name limit 1) as found
    union
    select found.* from unnest(${textArray(updaters.map(({ id }) => id))}::text[]) as asked (id) cross join lateral (
      select ${columns} from property_updaters where tenant_id = ${tenantId} and id = asked.id limit 1) as found`;
}

/** How many updaters a tenant has, and their bytes. */
export async function sumUpdaters(db: Db, tenantId: string): Promise<Total> {
  const [row] = await db<[Total]>`
    select count(*)::float8 as count, coalesce(sum(${bytesSql(db)}), 0)::float8 as size
    from property_updaters where tenant_id = ${tenantId}`;
  return row;
}
