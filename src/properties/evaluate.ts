import { isDeepStrictEqual } from "node:util";
import type { Predicate } from "../clause/to-predicate.ts";
import type { Db } from "../db/connect.ts";
import { type CustomProperties, customPropertiesMax, type LockedEntity } from "../entities/custom-properties.ts";
import { isOverfull } from "../entities/terms.ts";
import { type Pace, paced } from "../event-loop.ts";

/** Of an entity and the properties that it is to have; undefined: it stays as it is. */
interface Evaluation {
  row: LockedEntity;
  properties: CustomProperties | undefined;
}

/** What updaters make of entities. */
export interface Evaluated {
  byId: ReadonlyMap<string, Evaluation>;
  changes: { id: Buffer; properties: CustomProperties }[];
  /** Entities that the time did not suffice for. */
  left: Buffer[];
}

/** Up to this many evaluations of one updater for one entity are done while the entities are locked. */
export const evaluationsMax = 20_000;
/** After this time no further entity is begun: its job is done again. */
const evaluationMsMax = 2000;
/** What the changes of one transaction take, characters of JSON: after that no further entity is begun. */
const changesMax = 4 << 20;
/** A transaction that is idle for longer could be ended by the database. */
const aliveMs = 5000;

const keyOf = (id: Buffer) => id.toString("latin1");

/** The pace of a tenant's work within a transaction, which stays alive however long others have their turns. */
export function transactionPace(tx: Db, tenantId: string): Pace {
  const pace = paced(undefined, tenantId);
  let askedMs = performance.now();
  const alive = () => {
    const wait = pace();
    if (wait === undefined || performance.now() - askedMs < aliveMs) return wait;
    return wait.then(async () => {
      await tx`select`;
      askedMs = performance.now();
    });
  };
  const { share } = pace;
  return share === undefined ? alive : Object.assign(alive, { share: { ...share, turn: alive } });
}

/**
 * Applies updaters to entities, in slices, for as long as time allows. What `before` has found for an entity that has not
 * changed since counts; entities that it has not reached are left.
 */
export async function evaluate(
  entities: readonly LockedEntity[],
  updaters: readonly ReadyUpdater<LockedEntity>[],
  pace: Pace,
  before?: Evaluated,
): Promise<Evaluated> {
  const byId = new Map<string, Evaluation>();
  const left: Buffer[] = [];
  const endMs = performance.now() + evaluationMsMax;
  let begun = 0;
  let size = 0;
  const isOver = () => begun > 0 && (performance.now() > endMs || size > changesMax);
  for (const row of entities) {
    const known = before?.byId.get(keyOf(row.id));
    await pace();
    if (known !== undefined && isDeepStrictEqual(known.row, row)) {
      byId.set(keyOf(row.id), known);
    } else if ((before !== undefined && known === undefined) || isOver()) {
      left.push(row.id);
    } else {
      begun += 1;
      const properties = await applyUpdaters(row, updaters, customPropertiesMax, pace);
      size += properties === undefined ? 0 : JSON.stringify(properties).length;
      byId.set(keyOf(row.id), { row, properties });
    }
  }
  const changes = [...byId.values()].flatMap(({ row: { id }, properties }) =>
    properties === undefined ? [] : [{ id, properties }],
  );
  return { byId, changes, left };
}

/** An updater that is ready to be applied. */
export interface ReadyUpdater<Row> {
  matches: Predicate<Row>;
  properties: CustomProperties;
}

/**
 * The properties that an entity has after these updaters, each of which sees what the earlier ones have set; undefined
 * when nothing changes. One that would bring the entity above `propertiesMax` properties, or above what the index holds of
 * them, leaves it alone. Work of many updaters is cut into slices.
 */
export async function applyUpdaters<Row extends { custom_properties: CustomProperties }>(
  entity: Row,
  updaters: readonly ReadyUpdater<Row>[],
  propertiesMax: number,
  pace: Pace,
): Promise<CustomProperties | undefined> {
  let row = entity;
  for (const { matches, properties } of updaters) {
    const wait = pace();
    if (wait !== undefined) await wait;
    if (holdsAll(row.custom_properties, properties)) continue;
    // Most answer at once, and a tenant has thousands: only those that do not are waited for.
    const matched = matches(row, pace);
    // One that is undecided leaves the entity alone.
    if ((matched instanceof Promise ? await matched : matched) !== true) continue;
    const next = { ...row.custom_properties, ...properties };
    if (Object.keys(next).length <= propertiesMax && !isOverfull("c", next)) row = { ...row, custom_properties: next };
  }
  return row === entity || isDeepStrictEqual(row.custom_properties, entity.custom_properties)
    ? undefined
    : row.custom_properties;
}

function holdsAll(stored: CustomProperties, properties: CustomProperties): boolean {
  for (const name of Object.keys(properties)) {
    const value = properties[name];
    if (!Object.hasOwn(stored, name)) return false;
    if (stored[name] !== value && !(typeof value === "object" && isDeepStrictEqual(stored[name], value))) return false;
  }
  return true;
}
