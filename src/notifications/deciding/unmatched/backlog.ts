import { LRUCache } from "lru-cache";
import type { Db } from "../../../db/connect.ts";
import { exhausted } from "../../../errors.ts";
import { countUnmatched, type Waiting } from "./unmatched-changes.ts";

/** How much of a tenant may wait to be matched: beyond it further events of this tenant are refused. */
const changesMax = 50_000;
const bytesMax = 128 * 1024 * 1024;
/** How old a count may be, ms. */
const freshMs = 1000;
const tenantsMax = 10_000;
const retryAfterSec = 5;

/** How much of which tenant waits, as this process knows it. */
export interface Backlog {
  /** Changes of a tenant were left to be matched: how many there are is counted soon. */
  grew(tenantId: string): void;
  /** @throws code 8 when too many wait */
  check(tenantId: string): void;
}

/** Counts by `db`, beside the calls; a tenant that was never seen to leave anything is not counted at all. */
export function backlog(db: Db): Backlog {
  const known = new LRUCache<string, Waiting & { atMs: number; counting: boolean }>({ max: tenantsMax });

  function count(tenantId: string) {
    const there = known.get(tenantId) ?? { changes: 0, bytes: 0, atMs: -Infinity, counting: false };
    if (there.counting || performance.now() - there.atMs < freshMs) return;
    there.counting = true;
    known.set(tenantId, there);
    countUnmatched(db, tenantId)
      .then((waiting) => {
        if (waiting.changes === 0) known.delete(tenantId);
        else known.set(tenantId, { ...waiting, atMs: performance.now(), counting: false });
      })
      .catch(() => known.delete(tenantId));
  }

  return {
    grew: count,
    check(tenantId) {
      const waiting = known.get(tenantId);
      if (waiting === undefined) return;
      count(tenantId);
      if (waiting.changes <= changesMax && waiting.bytes <= bytesMax) return;
      throw exhausted(
        `${waiting.changes} changes of events wait to be held against the tenant's rules, more than may wait; send the request again`,
        retryAfterSec * (1 + Math.random() / 2),
      );
    },
  };
}
