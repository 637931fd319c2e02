import { LRUCache } from "lru-cache";
import type { Db } from "../../db/connect.ts";
import { exhausted } from "../../errors.ts";
import { type Behind, countBehind } from "./cursors.ts";

/** Greatest age of a count, ms. */
const freshMs = 1000;
const tenantsMax = 10_000;
const retryAfterSec = 5;

/** Counts, beside the calls, what waits of tenants whose rows were seen to wait in this process. */
export function backlog(db: Db, name: string, max: Behind) {
  const known = new LRUCache<string, Behind & { atMs: number; counting: boolean }>({ max: tenantsMax });

  function count(tenantId: string) {
    const there = known.get(tenantId) ?? { facts: 0, bytes: 0, atMs: -Infinity, counting: false };
    if (there.counting || performance.now() - there.atMs < freshMs) return;
    there.counting = true;
    known.set(tenantId, there);
    countBehind(db, tenantId, name)
      .then((behind) => {
        if (behind.facts === 0) known.delete(tenantId);
        else known.set(tenantId, { ...behind, atMs: performance.now(), counting: false });
      })
      .catch(() => known.delete(tenantId));
  }

  return {
    grew: count,
    check(tenantId: string): void {
      const behind = known.get(tenantId);
      if (behind === undefined) return;
      count(tenantId);
      if (behind.facts <= max.facts && behind.bytes <= max.bytes) return;
      throw exhausted(
        `${behind.facts} changes of events wait to be held against the tenant's rules, more than may wait; send the request again`,
        retryAfterSec * (1 + Math.random() / 2),
      );
    },
  };
}
