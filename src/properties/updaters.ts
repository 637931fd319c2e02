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
import { type QuotaBounds, tooLarge, tooMany } from "../db/admission-quota.ts";
import { jsonArray, textArray } from "../db/batch.ts";
import type { Db } from "../db/connect.ts";
import { orm } from "../db/orm.ts";
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

/** Why an updater cannot be taken, each rule with its path; empty when it can. */
function refusal(updater: CustomPropertyUpdater, path: string): string {
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
  if (broken.length === 0) return brokenClause(entityInput?.clause as Clause, `${path}.entity_input.clause`);
  return rulesText(broken);
}

/** Few enough that the statement of them is put together at once. */
const statementMax = 50;

function portionsOf<T>(items: readonly T[]): T[][] {
  const count = Math.ceil(items.length / statementMax);
  return Array.from({ length: count }, (_, i) => items.slice(i * statementMax, (i + 1) * statementMax));
}

/** What is wrong with a clause. A mistake of an item is reported in its result, so what the language throws is caught here. */
function brokenClause(clause: Clause, path: string): string {
  try {
    return rulesText(brokenKeys(checkClause(clause, path)));
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

/** The updaters that a tenant has: the bytes of each, all of them, and the ids by the names. */
interface Held {
  byId: Map<string, { name: string; bytes: number }>;
  bytes: number;
  owners: Map<string, string>;
}

/** Locks the set, and answers what of each is to be stored, or why it cannot be taken, and what the tenant has. */
async function checkInLock(tx: Db, tenantId: string, updaters: readonly CustomPropertyUpdater[]) {
  const pace = paced(undefined, tenantId);
  const refusals: string[] = [];
  const values: (ReturnType<typeof valuesOf> | undefined)[] = [];
  for (const [i, updater] of updaters.entries()) {
    await pace();
    refusals.push(refusal(updater, `updaters[${i}]`));
    values.push(refusals[i] === "" ? valuesOf(updater) : undefined);
  }
  const sizes: number[] = [];
  for (const part of portionsOf(values)) sizes.push(...(await bytesOf(tx, part)));
  const anyEnabled = updaters.some(({ enabled }) => enabled);
  await lockSet(tx, tenantId, anyEnabled);
  const rows = await heldUpdaters(tx, tenantId);
  const held: Held = {
    byId: new Map(rows.map(({ id, ...row }) => [id, row])),
    bytes: rows.reduce((sum, { bytes }) => sum + bytes, 0),
    owners: new Map(rows.map(({ id, name }) => [name, id])),
  };
  const sent = values.map((each, i): Sent | string =>
    each === undefined ? (refusals[i] as string) : { values: each, bytes: sizes[i] as number },
  );
  return { sent, held };
}

/** Counts an updater among those that the tenant has, in place of the one before, unless there is no room: then answers why. */
function take(held: Held, id: string, { values: { name }, bytes }: Sent, bounds: QuotaBounds): string {
  const before = held.byId.get(id);
  const owner = held.owners.get(name);
  if (owner !== undefined && owner !== id) return alreadyExists(kind, name).rawMessage;
  if (before === undefined && held.byId.size >= bounds.resourcesMax) return tooMany("updaters", bounds).rawMessage;
  const growth = bytes - (before?.bytes ?? 0);
  if (growth > 0 && held.bytes + growth > bounds.resourceBytesMax) {
    return tooLarge("updaters", held.bytes + growth, bounds).rawMessage;
  }
  if (before !== undefined) held.owners.delete(before.name);
  held.owners.set(name, id);
  held.byId.set(id, { name, bytes });
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
  const { sent, held } = await checkInLock(tx, tenantId, updaters);
  const made: Values[] = [];
  const results = sent.map((each): ItemResult => {
    if (typeof each === "string") return { id: "", error: each };
    const id = randomUUIDv7();
    const error = take(held, id, each, bounds);
    if (error !== "") return { id: "", error };
    made.push({ id, ...each.values });
    return good(id);
  });
  if (made.length === 0) return results;
  const times = { createdMs: BigInt(nowMs), updatedMs: BigInt(nowMs) };
  for (const part of portionsOf(made)) {
    await orm(tx)
      .insert(propertyUpdaters)
      .values(part.map((each) => ({ tenantId, ...each, ...times })));
  }
  await changeSet(tx, tenantId);
  await startUpdaters(tx, tenantId, enabledOf(made), nowMs);
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
  const { sent, held } = await checkInLock(tx, tenantId, updaters);
  const changed = new Map<string, Values>();
  const order: Values[] = [];
  const results = sent.map((each, i): ItemResult => {
    const { id } = updaters[i] as CustomPropertyUpdater;
    if (id === "") return { id, error: `updaters[${i}].id: is required` };
    if (typeof each === "string") return { id, error: each };
    if (!held.byId.has(id)) return unknown(id);
    const error = take(held, id, each, bounds);
    if (error !== "") return { id, error };
    const values = { id, ...each.values };
    changed.set(id, values);
    order.push(values);
    return good(id);
  });
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
export async function bytesOf(db: Db, updaters: readonly (Counted | undefined)[]): Promise<number[]> {
  const column = <K extends keyof Counted>(name: K) => updaters.map((each) => each?.[name] ?? null);
  const rows = await db<{ bytes: number }[]>`
    select coalesce(${bytesSql(db)}, 0) as bytes from unnest(
      ${textArray(column("name"))}::text[], ${textArray(column("description"))}::text[], ${jsonArray(column("tags"))}::jsonb[],
      ${jsonArray(column("entityInput"))}::jsonb[], ${jsonArray(column("properties"))}::jsonb[]
    ) with ordinality as sent (name, description, tags, entity_input, properties, place)
    order by place`;
  return rows.map(({ bytes }) => bytes);
}

/** A tenant's updaters, each with its name and the bytes that it holds. */
export function heldUpdaters(db: Db, tenantId: string): Promise<{ id: string; name: string; bytes: number }[]> {
  return db`select id, name, ${bytesSql(db)} as bytes from property_updaters where tenant_id = ${tenantId}`;
}
