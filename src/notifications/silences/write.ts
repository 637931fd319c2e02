import type { QuotaBounds } from "../../db/admission-quota.ts";
import type { Db } from "../../db/connect.ts";
import { afterCommit, transaction } from "../../db/transaction.ts";
import { paced } from "../../event-loop.ts";
import {
  announceSilences,
  createSilence,
  expireSilence,
  readSilenceMatchers,
  replaceSilence,
  type SilenceAuthor,
  type StoredSilence,
  type WantedSilence,
  type WrittenSilence,
} from "./silences.ts";
import { keepSubjects, lookUntilResolved, openMatches } from "./until-resolved.ts";

/** What writing silences needs. */
export interface SilenceWriting {
  readonly bounds: QuotaBounds;
  nowMs(): number;
  /** Reports what sends that a tenant has something due. */
  wake(tenantId: string): void;
  wakeJobs(): void;
}

/** Whose key writes, and where the silence is in the request, for errors. */
interface By {
  readonly author: SilenceAuthor;
  readonly at: string;
}

/** Writes the audit row of a write to the silence with this id, in its transaction. */
type Audit = (tx: Db, id: string) => Promise<void>;

/** Writes silences for both doors: each call is a transaction with an audit row of the silence, and one of a silence that it replaces. */
export interface SilenceWriter {
  create(tenantId: string, wanted: WantedSilence, by: By, audit: Audit): Promise<StoredSilence>;
  replace(
    tenantId: string,
    id: string,
    wanted: WantedSilence,
    by: By & { again: boolean; keepsScope?: boolean },
    audit: Audit,
  ): Promise<StoredSilence>;
  expire(tenantId: string, id: string, audit: Audit): Promise<StoredSilence>;
}

/** Makes what writes silences. */
export function silenceWriter(db: Db, { bounds, nowMs, wake, wakeJobs }: SilenceWriting): SilenceWriter {
  /** Finds, before the transaction, what a silence waits for that begins at once. */
  async function found(tenantId: string, { matchers, startsMs, endsMs }: WantedSilence, at: string) {
    if (endsMs !== undefined || (startsMs ?? 0) > nowMs()) return undefined;
    const parts = readSilenceMatchers(matchers, `${at}matchers`);
    return await openMatches(db, tenantId, parts, paced(undefined, tenantId));
  }

  async function write(
    tenantId: string,
    audit: Audit,
    work: (tx: Db, now: number) => Promise<WrittenSilence>,
    open?: Awaited<ReturnType<typeof found>>,
  ): Promise<StoredSilence> {
    return await transaction(db, async (tx) => {
      const now = Math.floor(nowMs());
      const { silence: row, changed } = await work(tx, now);
      if (row.untilResolved && !row.judged && (row.endsMs === null || row.endsMs > BigInt(now))) {
        // One that keeps a start that lies ahead is judged then.
        if (open !== undefined && row.startsMs <= BigInt(now)) await keepSubjects(tx, tenantId, row, open);
        await lookUntilResolved(tx, tenantId, row, now);
        afterCommit(tx, wakeJobs);
      }
      // In turn: a transaction has one connection.
      for (const id of new Set([...changed, row.id])) await audit(tx, id);
      await announceSilences(tx, tenantId, changed);
      afterCommit(tx, () => wake(tenantId));
      return row;
    });
  }

  return {
    create: async (tenantId, wanted, { author, at }, audit) =>
      await write(
        tenantId,
        audit,
        (tx, now) => createSilence(tx, tenantId, wanted, { author, nowMs: now, bounds, at }),
        await found(tenantId, wanted, at),
      ),
    replace: async (tenantId, id, wanted, { author, at, ...how }, audit) =>
      await write(
        tenantId,
        audit,
        (tx, now) => replaceSilence(tx, tenantId, id, wanted, { author, nowMs: now, bounds, at, ...how }),
        await found(tenantId, wanted, at),
      ),
    expire: (tenantId, id, audit) => write(tenantId, audit, (tx, now) => expireSilence(tx, tenantId, id, now)),
  };
}
