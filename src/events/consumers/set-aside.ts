import type { Db } from "../../db/connect.ts";
import { paced } from "../../event-loop.ts";
import { firstOf } from "../../jobs/payload.ts";
import { enqueue, type Job } from "../../jobs/queue.ts";
import type { JobKind } from "../../jobs/worker.ts";
import { decodeFacts, encodeFacts, type Fact } from "../facts.ts";
import { keyText, type OccurrenceKey } from "../occurrences.ts";
import type { Consumer } from "./consumer.ts";

/** The jobs that try once more what a consumer could not consume: each fails, and runs again later, until it succeeds. */
const asideKind = (name: string) => `${name}.aside`;

/** The payload of such a job. */
interface Aside {
  facts: string;
  storedMs: number;
  cause: string;
}

const idOf = (key: OccurrenceKey) => Buffer.from(keyText(key), "latin1").toString("base64url");

/** Leaves facts that always fail to a job of their own, so that those behind them are consumed. */
export async function setAside(
  tx: Db,
  tenantId: string,
  name: string,
  { fact, cause, storedMs, nowMs }: { fact: Fact; cause: string; storedMs: number; nowMs: number },
): Promise<void> {
  const [stored] = await encodeFacts([fact], paced(undefined, tenantId));
  const payload: Aside = { facts: stored?.text ?? "", storedMs, cause };
  const id = `${idOf({ eventId: fact.event.id, number: fact.after.number })}:${fact.root}`;
  await enqueue(tx, { tenantId, kind: asideKind(name) }, [{ id, payload }], nowMs);
}

/** Consumes what was set aside; a run that fails counts as one of a failing job. */
export function asideJob(consumer: Consumer): JobKind {
  async function run(tx: Db, tenantId: string, [job]: readonly Job[], nowMs: number) {
    if (job === undefined) return [];
    const { facts: text, storedMs } = job.payload as Aside;
    const facts = await decodeFacts(text, paced(undefined, tenantId));
    const { taken } = await consumer.batch(tx, tenantId, facts, { storedMs, nowMs });
    return taken < facts.length ? [{ id: job.id, payload: job.payload, dueMs: nowMs + 1000 }] : [];
  }
  return { name: asideKind(consumer.name), sizeMax: 1, share: 0.5, run };
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
