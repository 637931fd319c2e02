import type { Db } from "../../db/connect.ts";
import { paced } from "../../event-loop.ts";
import { tenantNameOf } from "../../tenants/tenant.ts";
import { type Loaded, readRules } from "./read-rules.ts";
import { triggerFields } from "./rows.ts";
import { type HeldRules, renewed, type TenantRules } from "./tenant-rules.ts";

/** The rules of tenants, held in memory. */
export interface RulesMemory {
  /** The rules of a tenant at this version or a later one: read when an earlier one is held, and then only what has changed. */
  at(db: Db, tenantId: string, version: bigint): Promise<TenantRules>;
  /** The rules of a tenant as they are now. */
  now(db: Db, tenantId: string): Promise<TenantRules>;
  /** Returns the rules of a tenant as they are held, without a look; undefined: they are not. */
  held(tenantId: string): TenantRules | undefined;
  /** Whether the tenant has a rule that notifies at this version; true while that is not known here. */
  mayNotify(tenantId: string, version: bigint): boolean;
}

/** What of a tenant's rules never changes. */
type Own = Pick<HeldRules, "tenantName" | "fields">;

async function ownOf(db: Db, tenantId: string): Promise<Own> {
  const tenantName = await tenantNameOf(db, tenantId);
  return { tenantName, fields: triggerFields(tenantId, tenantName) };
}

/** Keeps the rules of tenants up to `weightMax` characters of triggers and messages; those of tenants that are least in use go. */
export function rulesMemory({ weightMax = 64 << 20 } = {}): RulesMemory {
  const held = new Map<string, HeldRules>();
  /** What is being made ready, by tenant: one after the other. */
  const making = new Map<string, Promise<HeldRules>>();
  let weight = 0;

  function keep(tenantId: string, rules: HeldRules) {
    weight += rules.weight - (held.get(tenantId)?.weight ?? 0);
    held.delete(tenantId);
    held.set(tenantId, rules);
    for (const [id, { weight: own }] of held) {
      if (weight <= weightMax || id === tenantId) break;
      held.delete(id);
      weight -= own;
    }
  }

  /** Makes rules ready that were read: in slices, as work of their tenant, whether or not their reader waits for it. */
  function make(tenantId: string, before: HeldRules | undefined, loaded: Loaded, own: Own) {
    const made = renewed(before, loaded, own, paced(undefined, tenantId))
      .then((rules) => {
        keep(tenantId, rules);
        return rules;
      })
      .finally(() => making.delete(tenantId));
    made.catch(() => undefined); // who waits for it hears of it
    making.set(tenantId, made);
    return made;
  }

  async function at(db: Db, tenantId: string, version: bigint): Promise<TenantRules> {
    for (;;) {
      const before = held.get(tenantId);
      if (before !== undefined && before.version >= version) {
        held.delete(tenantId);
        held.set(tenantId, before);
        return before;
      }
      const other = making.get(tenantId);
      if (other !== undefined) {
        await other;
        continue;
      }
      const own = before ?? (await ownOf(db, tenantId));
      const loaded = await readRules(db, tenantId, before?.version ?? 0n);
      if (!making.has(tenantId) && held.get(tenantId) === before) return await make(tenantId, before, loaded, own);
    }
  }

  return {
    at,
    async now(db, tenantId) {
      const [state] = await db<{ version: bigint }[]>`
        select rules_version as version from tenant_state where tenant_id = ${tenantId}`;
      return await at(db, tenantId, state?.version ?? 0n);
    },
    held: (tenantId) => held.get(tenantId),
    mayNotify(tenantId, version) {
      if (version === 0n) return false;
      const known = held.get(tenantId);
      return known === undefined || known.version < version || known.rules.size > 0;
    },
  };
}
