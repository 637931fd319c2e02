import type { Clause } from "#gen/belfry/clause/v1/clause_pb.ts";
import { checkClause } from "../clause/check.ts";
import { pacedPredicateOf } from "../clause/to-predicate.ts";
import type { Db } from "../db/connect.ts";
import type { CustomProperties, LockedEntity } from "../entities/custom-properties.ts";
import { type Pace, paced } from "../event-loop.ts";
import { tenantNameOf } from "../tenants/tenant.ts";
import type { ReadyUpdater } from "./evaluate.ts";
import { toQuery, type UpdaterRow } from "./messages.ts";
import { updaterResolver } from "./updater-fields.ts";
import { setVersion } from "./updater-set.ts";

type Updaters = readonly ReadyUpdater<LockedEntity>[];
type Row = Pick<UpdaterRow, "entityInput" | "properties"> & { length: number };

/** Of a tenant, as they were at a version. */
interface Held {
  version: bigint;
  updaters: Updaters;
  /** About how many characters of clauses and properties they hold. */
  weight: number;
}

/** Of an updater, whatever it holds. */
const ownWeight = 500;

async function read(tx: Db, tenantId: string, pace: Pace): Promise<Omit<Held, "version">> {
  const rows = await tx<Row[]>`
    select entity_input as "entityInput", properties, length(entity_input::text) + length(properties::text) as length
    from property_updaters where tenant_id = ${tenantId} and enabled order by sequence, name`;
  const resolver = updaterResolver(tenantId, await tenantNameOf(tx, tenantId));
  const updaters: ReadyUpdater<LockedEntity>[] = [];
  for (const { entityInput, properties } of rows) {
    await pace();
    const clause = checkClause(toQuery(entityInput).clause as Clause, "clause", "differ");
    updaters.push({ matches: pacedPredicateOf(clause, resolver), properties: properties as CustomProperties });
  }
  return { updaters, weight: rows.reduce((sum, { length }) => sum + ownWeight + length, 0) };
}

/**
 * The enabled updaters of a tenant in their order, compiled once a change. Keeps those of up to `tenantsMax` tenants, which hold
 * about `weightMax` characters together; those of tenants that are least in use go.
 */
export function readyUpdaters({ tenantsMax = 1000, weightMax = 32 << 20 } = {}) {
  const known = new Map<string, Held>();
  let weight = 0;

  function forget(tenantId: string) {
    weight -= known.get(tenantId)?.weight ?? 0;
    known.delete(tenantId);
  }

  function keep(tenantId: string, held: Held) {
    forget(tenantId);
    known.set(tenantId, held);
    weight += held.weight;
    for (const id of known.keys()) {
      if ((weight <= weightMax && known.size <= tenantsMax) || id === tenantId) break;
      forget(id);
    }
  }

  return async (tx: Db, tenantId: string, pace = paced(undefined, tenantId)): Promise<Updaters> => {
    // The version is read first: what is read after it is of that version or a later one, and then read again next time.
    const version = await setVersion(tx, tenantId);
    const before = known.get(tenantId);
    const held = before?.version === version ? before : { version, ...(await read(tx, tenantId, pace)) };
    keep(tenantId, held);
    return held.updaters;
  };
}
