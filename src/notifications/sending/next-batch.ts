import type { Sql } from "../../db/connect.ts";
import { transaction } from "../../db/transaction.ts";
import { failpoint } from "../../failpoint.ts";
import type { Recheck } from "../deciding/recheck.ts";
import { type Claim, type ClaimOptions, claimDue, giveBack } from "../queue/claim.ts";
import { record } from "../queue/result-statements.ts";
import type { TenantRules } from "../rules/tenant-rules.ts";
import { backResult } from "./classify-response.ts";
import type { Opening } from "./delivery-context.ts";
import { type Prepared, prepare } from "./prepare.ts";

export interface BatchOptions extends ClaimOptions, Omit<Opening, "held"> {
  readonly recheck: Recheck;
  /** Returns the rules of a tenant as they were at the last recheck, or later; undefined: they are to be read. */
  heldRules(tenantId: string): TenantRules | undefined;
}

/** What one look at a tenant's deliveries has come to: each that is ready holds a slot, which the caller gives back. */
export interface PreparedBatch extends Prepared, Omit<Claim, "shares" | "tenantId"> {}

/** After an error of ours what was claimed is claimed again after this. */
const backMs = 1000;

/** The next deliveries of a tenant: claims what is due, has it decided again, reads what it says, and prepares it. */
export async function nextBatch(
  db: Sql,
  tenantId: string,
  options: BatchOptions,
  nowMs: number,
): Promise<PreparedBatch> {
  const { shares, ...claim } = await claimDue(db, tenantId, options, nowMs);
  const rows = shares.flatMap((share) => share.rows);
  let prepared: Prepared = { ready: [], ended: [] };
  try {
    failpoint("deliveries:claimed");
    if (rows.length > 0) {
      const verdicts = await options.recheck(tenantId, rows, nowMs);
      const { keyring, world } = options;
      const now = { verdicts, nowMs, keyring, world, held: options.heldRules(tenantId) };
      prepared = await transaction(db, (tx) => prepare(tx, tenantId, shares, now));
    }
    return { ...claim, ...prepared };
  } catch (error) {
    const back = rows.map((row) => ({ ...backResult(row), dueMs: nowMs + backMs }));
    if (back.length > 0) await record(db, tenantId, back, new Set(), nowMs).catch(() => undefined); // else their leases end
    throw error;
  } finally {
    const tried = Map.groupBy(prepared.ready, ({ row }) => row.destinationName);
    const counts = new Map([...tried].map(([name, { length }]) => [name, length]));
    // Without it destinations are charged as if all were tried.
    await giveBack(db, { ...claim, shares }, options.slots, counts).catch(() => undefined);
  }
}
