import { LRUCache } from "lru-cache";
import type { Db } from "../../db/connect.ts";
import type { OnPoints } from "../../metrics/store.ts";
import type { TenantRules } from "../rules/tenant-rules.ts";
import type { Deciding } from "./deciding.ts";
import type { SourceHooks } from "./sources/source.ts";

/** A server learns of changed rules for points so soon, ms: no statement a batch is spent on it. */
const versionMs = 1000;
const tenantsMax = 1000;

/** Shows points to the sources that look at them, in the transaction that stores them. */
export function onPoints({ memory }: Pick<Deciding, "memory">, sources: Required<SourceHooks>): OnPoints {
  const held = new LRUCache<string, { version: bigint; untilMs: number }>({ max: tenantsMax });

  async function rulesOf(tx: Db, tenantId: string, nowMs: number): Promise<TenantRules> {
    const known = held.get(tenantId);
    if (known !== undefined && nowMs < known.untilMs) return await memory.at(tx, tenantId, known.version);
    const rules = await memory.now(tx, tenantId);
    held.set(tenantId, { version: rules.version, untilMs: nowMs + versionMs });
    return rules;
  }

  return async (tx, tenantId, points, nowMs) =>
    await sources.onPoints(tx, tenantId, await rulesOf(tx, tenantId, nowMs), points, nowMs);
}
