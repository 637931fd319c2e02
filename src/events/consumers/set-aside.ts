import type { Db } from "../../db/connect.ts";
import { paced } from "../../event-loop.ts";
import { enqueue, firstOf, type Job } from "../../jobs/queue.ts";
import type { JobKind } from "../../jobs/worker.ts";
import { decodeFacts, encodeFacts, type Fact } from "../facts.ts";
import { encodeChanges, entryOf } from "../feed.ts";
import { type OccurrenceKey, occurrenceText } from "../occurrences.ts";
import type { Consumer } from "./consumer.ts";
import { changedBehindMs } from "./cursors.ts";
import { occurrencesNow } from "./facts-now.ts";

/** The jobs that try once more what a consumer could not consume: each fails, and runs again later, until it succeeds. */
const asideKind = (name: string) => `${name}.aside`;

/** The payload of such a job. */
interface Aside {
  /** Of one fact, what its row of the feed would hold. */
  facts: string;
  /** In base64; absent in those of 0.3. */
  changes?: string;
  storedMs: number;
  cause: string;
}

/** The consumer has not yet come to a later change of the occurrence: the job runs again after this time, ms. */
const busyMs = 1000;

const idOf = (key: OccurrenceKey) => Buffer.from(occurrenceText(key), "latin1").toString("base64url");

interface ToSetAside {
  fact: Fact;
  cause: string;
  storedMs: number;
  nowMs: number;
  /** Whether a server of 0.3 may read it. */
  oldForm?: boolean | undefined;
}

/** Leaves facts that always fail to a job of their own, so that those behind them are consumed. */
export async function setAside(
  tx: Db,
  tenantId: string,
  name: string,
  { fact, cause, storedMs, nowMs, oldForm = false }: ToSetAside,
): Promise<void> {
  const [stored] = await encodeFacts([fact], paced(undefined, tenantId), oldForm);
  const payload: Aside = { facts: stored?.text ?? "", storedMs, cause };
  if (!oldForm) payload.changes = encodeChanges([entryOf(fact)]).toString("base64");
  const id = `${idOf({ eventId: fact.event.id, number: fact.after.number })}:${fact.root}`;
  await enqueue(tx, { tenantId, kind: asideKind(name) }, [{ id, payload }], nowMs);
}

/** Consumes what was set aside; a run that fails counts as one of a failing job. */
export function asideJob(consumer: Consumer): JobKind {
  async function run(tx: Db, tenantId: string, [job]: readonly Job[], nowMs: number) {
    if (job === undefined) return [];
    const { facts: text, changes, storedMs } = job.payload as Aside;
    const beside = changes === undefined ? undefined : Buffer.from(changes, "base64");
    const facts = await decodeFacts(text, beside, paced(undefined, tenantId));
    const now = await factsOfNow(tx, tenantId, consumer.name, facts);
    if (now === undefined) return [{ id: job.id, payload: job.payload, dueMs: nowMs + busyMs }];
    const { rulesVersion } = now;
    if ((await consumer.batch(tx, tenantId, now.facts, { storedMs, nowMs, rulesVersion })).taken < now.facts.length)
      return [{ id: job.id, payload: job.payload, dueMs: nowMs + busyMs }];
    return [];
  }
  return { name: asideKind(consumer.name), sizeMax: 1, run };
}

/**
 * The facts with their occurrences as they are now, under the locks of their events: later changes have been consumed since, and what a
 * fact carries would be decided after them. None of an occurrence that is deleted; undefined: later changes wait to be consumed, which
 * come first.
 */
async function factsOfNow(tx: Db, tenantId: string, name: string, facts: readonly Fact[]) {
  const keys = facts.map(({ event, after }) => ({ eventId: event.id, number: after.number }));
  const { found, rulesVersion } = await occurrencesNow(tx, tenantId, keys);
  for (const key of keys) if ((await changedBehindMs(tx, tenantId, name, key)) !== undefined) return undefined;
  const asNow = facts.flatMap((fact, i) => {
    const now = found.get(occurrenceText(keys[i] as OccurrenceKey));
    return now === undefined ? [] : [{ ...fact, event: now.event, after: now.occurrence, news: false }];
  });
  return { facts: asNow, rulesVersion };
}

/** Why facts of an occurrence are set aside, and when they are tried again; undefined: none is. By the key. */
export async function asideOf(
  db: Db,
  tenantId: string,
  name: string,
  key: OccurrenceKey,
): Promise<{ cause: string; dueMs: number } | undefined> {
  const job = await firstOf(db, { tenantId, kind: asideKind(name) }, `${idOf(key)}:`);
  return job && { cause: (job.payload as Aside).cause, dueMs: job.dueMs };
}
