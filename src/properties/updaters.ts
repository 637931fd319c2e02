import { randomUUIDv7 } from "node:crypto";
import { create, toJson } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { and, eq, sql } from "drizzle-orm";
import { type Clause, QuerySchema } from "#gen/belfry/clause/v1/clause_pb.ts";
import {
  type CustomPropertyUpdater,
  CustomPropertyUpdaterSchema,
} from "#gen/belfry/properties/v1/custom_property_updater_pb.ts";
import { checkClause } from "../clause/check.ts";
import { textArray } from "../db/batch.ts";
import type { Db } from "../db/connect.ts";
import { orm } from "../db/orm.ts";
import { type Bounds, tooMany } from "../db/room.ts";
import { alreadyExists, notFound } from "../errors.ts";
import type { Broken } from "../rpc/rules.ts";
import { validateItem } from "../rpc/validate.ts";
import { startUpdaters } from "./run.ts";
import { propertyUpdaters } from "./tables.ts";
import { brokenKeys } from "./updater-fields.ts";
import { changeSet, lockSet } from "./updater-set.ts";
import { brokenProperties } from "./values.ts";

/** What became of one item: an empty error says that all went well. */
export interface ItemResult {
  id: string;
  error: string;
}

const kind = "custom property updater";
const identified = (tenantId: string, ids: readonly string[]) =>
  and(eq(propertyUpdaters.tenantId, tenantId), sql`${propertyUpdaters.id} = any(${textArray(ids)}::text[])`);
const unknown = (id: string): ItemResult => ({ id, error: notFound(kind, id).rawMessage });
const good = (id: string): ItemResult => ({ id, error: "" });

/** Why an updater cannot be taken, each rule with its path; empty when it can. */
function refusal(updater: CustomPropertyUpdater, path: string): string {
  const { name, entityInput, properties } = updater;
  const broken: Broken[] = [];
  if (name === "") broken.push({ path: `${path}.name`, rule: "is required" });
  if (entityInput === undefined) broken.push({ path: `${path}.entity_input`, rule: "is required" });
  else if (entityInput.clause === undefined) broken.push({ path: `${path}.entity_input.clause`, rule: "is required" });
  if (properties === undefined) broken.push({ path: `${path}.properties`, rule: "is required" });
  else broken.push(...brokenProperties(properties, `${path}.properties`));
  broken.push(...validateItem(CustomPropertyUpdaterSchema, updater, path));
  if (broken.length === 0) return brokenClause(entityInput?.clause as Clause, `${path}.entity_input.clause`);
  return textOf(broken);
}

const textOf = (broken: readonly Broken[]) => broken.map(({ path, rule }) => `${path}: ${rule}`).join("; ");

/** What is wrong with a clause. A mistake of an item is told in its result, so what the language throws is caught here. */
function brokenClause(clause: Clause, path: string): string {
  try {
    return textOf(brokenKeys(checkClause(clause, path)));
  } catch (error) {
    if (error instanceof ConnectError && error.code === Code.InvalidArgument) return error.rawMessage;
    throw error;
  }
}

interface Values {
  id: string;
  updater: CustomPropertyUpdater;
}

/** What is stored of an updater that is good, but for its id and times. */
function valuesOf({ name, description, entityInput, properties = {}, enabled, sequence, tags }: CustomPropertyUpdater) {
  const input = toJson(QuerySchema, entityInput ?? create(QuerySchema));
  return { name, description, entityInput: input, properties, enabled, sequence, tags };
}

/** Locks the set, and answers why each of these cannot be taken, and the names of the tenant's updaters by their ids. */
async function checkInLock(tx: Db, tenantId: string, updaters: readonly CustomPropertyUpdater[]) {
  const refusals = updaters.map((updater, i) => refusal(updater, `updaters[${i}]`));
  const anyEnabled = updaters.some(({ enabled }) => enabled);
  await lockSet(tx, tenantId, anyEnabled);
  const rows = await orm(tx)
    .select({ id: propertyUpdaters.id, name: propertyUpdaters.name })
    .from(propertyUpdaters)
    .where(eq(propertyUpdaters.tenantId, tenantId));
  return { refusals, names: new Map(rows.map(({ id, name }) => [id, name])) };
}

/** Creates updaters and starts those that are enabled; results in the order sent. Call it after `expectEnabled` if one is. */
export async function createUpdaters(
  tx: Db,
  tenantId: string,
  updaters: readonly CustomPropertyUpdater[],
  nowMs: number,
  bounds: Bounds,
): Promise<ItemResult[]> {
  const { refusals, names } = await checkInLock(tx, tenantId, updaters);
  const taken = new Set(names.values());
  const made: Values[] = [];
  const results = updaters.map((updater, i): ItemResult => {
    const error = refusals[i] || (taken.has(updater.name) ? alreadyExists(kind, updater.name).rawMessage : "");
    if (error !== "") return { id: "", error };
    if (taken.size >= bounds.resourcesMax) return { id: "", error: tooMany("updaters", bounds).rawMessage };
    taken.add(updater.name);
    const id = randomUUIDv7();
    made.push({ id, updater });
    return good(id);
  });
  if (made.length === 0) return results;
  const times = { createdMs: BigInt(nowMs), updatedMs: BigInt(nowMs) };
  const rows = made.map(({ id, updater }) => ({ tenantId, id, ...valuesOf(updater), ...times }));
  await orm(tx).insert(propertyUpdaters).values(rows);
  await changeSet(tx, tenantId);
  await startUpdaters(tx, tenantId, enabledOf(made), nowMs);
  return results;
}

const enabledOf = (rows: readonly Values[]) => rows.filter(({ updater }) => updater.enabled).map(({ id }) => id);

/** Replaces updaters as a whole, one after the other, and starts those that are enabled now; results in the order sent. */
export async function replaceUpdaters(
  tx: Db,
  tenantId: string,
  updaters: readonly CustomPropertyUpdater[],
  nowMs: number,
): Promise<ItemResult[]> {
  const { refusals, names } = await checkInLock(tx, tenantId, updaters);
  const changed = new Map<string, Values>();
  const order: Values[] = [];
  const results = updaters.map((updater, i): ItemResult => {
    const { id, name } = updater;
    if (id === "") return { id, error: `updaters[${i}].id: is required` };
    if (refusals[i] !== "") return { id, error: refusals[i] as string };
    if (!names.has(id)) return unknown(id);
    if ([...names].some(([other, taken]) => other !== id && taken === name)) {
      return { id, error: alreadyExists(kind, name).rawMessage };
    }
    names.set(id, name);
    changed.set(id, { id, updater });
    order.push({ id, updater });
    return good(id);
  });
  if (order.length === 0) return results;
  // One after the other: within one statement a name could be taken before its last owner has given it up.
  await Promise.all(order.map((each) => replaceOne(tx, tenantId, each, nowMs)));
  await changeSet(tx, tenantId);
  await startUpdaters(tx, tenantId, enabledOf([...changed.values()]), nowMs);
  return results;
}

async function replaceOne(tx: Db, tenantId: string, { id, updater }: Values, nowMs: number): Promise<void> {
  await orm(tx)
    .update(propertyUpdaters)
    .set({ ...valuesOf(updater), updatedMs: BigInt(nowMs) })
    .where(and(eq(propertyUpdaters.tenantId, tenantId), eq(propertyUpdaters.id, id)));
}

/** Deletes updaters; what they have set stays. Results in the order sent; an id that comes twice is unknown then. */
export async function deleteUpdaters(tx: Db, tenantId: string, ids: readonly string[]): Promise<ItemResult[]> {
  await lockSet(tx, tenantId, false);
  const rows = await orm(tx)
    .delete(propertyUpdaters)
    .where(identified(tenantId, ids))
    .returning({ id: propertyUpdaters.id });
  const gone = new Set(rows.map(({ id }) => id));
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
  const rows = await orm(tx)
    .update(propertyUpdaters)
    .set({ enabled, updatedMs: BigInt(nowMs) })
    .where(identified(tenantId, ids))
    .returning({ id: propertyUpdaters.id });
  const found = new Set(rows.map(({ id }) => id));
  await changeSet(tx, tenantId);
  if (enabled) await startUpdaters(tx, tenantId, [...found], nowMs);
  return ids.map((id) => (found.has(id) ? good(id) : unknown(id)));
}
