import { and, eq, sql } from "drizzle-orm";
import { labelMatcher } from "../../clause/label-matcher.ts";
import { byteaArray, int4Array, uuidArray } from "../../db/batch.ts";
import type { Db } from "../../db/connect.ts";
import { home } from "../../db/home-row.ts";
import { orm } from "../../db/orm.ts";
import { planWithoutValues } from "../../db/plans.ts";
import { failedPrecondition } from "../../errors.ts";
import { type Pace, paced } from "../../event-loop.ts";
import type { LabelView } from "../../events/labels.ts";
import { type AskedLabels, openAlerts } from "../../events/open-alerts.ts";
import { cancel, enqueue, type Job } from "../../jobs/queue.ts";
import type { Finish, JobKind } from "../../jobs/worker.ts";
import { readLabels, subjectLabelsKey } from "../subject/labels.ts";
import { occurrenceSubject, type Subject } from "../subject/subject.ts";
import { announceSilences, endSilences, type StoredSilence } from "./silences.ts";
import { loadedSilence, silencesInForce, workMs } from "./silences-in-force.ts";
import { silences as table } from "./tables.ts";

/** The job that looks at a tenant's silences which end with what they matched: one a tenant while there are any. */
export const resolvedKind = "notifications.silences";
const jobId = "until-resolved";
/** How often it looks at those that are active, ms. */
const everyMs = 1000;
const portion = 1000;
/** Silences that one look ends. */
const endsMax = 200;

/** Leaves the look at silences that end with what they matched, in the transaction that begins one. */
export async function lookUntilResolved(tx: Db, tenantId: string, silence: StoredSilence, nowMs: number) {
  const dueMs = Math.max(nowMs, Number(silence.startsMs));
  await cancel(tx, { tenantId, kind: resolvedKind }, jobId);
  await enqueue(
    tx,
    { tenantId, kind: resolvedKind },
    [{ id: jobId, payload: {}, dueMs: Math.min(dueMs, nowMs + everyMs) }],
    nowMs,
  );
}

/** Something open with its labels. */
interface OpenSubject {
  readonly subject: Pick<Subject, "key" | "eventId" | "number">;
  readonly labels: LabelView;
}

/** Reads what is open: occurrences that the matchers match, and all that rules match that is none, in pages. */
async function* openSubjects(db: Db, tenantId: string, asked: AskedLabels): AsyncGenerator<OpenSubject[]> {
  for await (const page of openAlerts(db, tenantId, asked))
    yield page.map(({ event, occurrence, labels }) => ({
      subject: occurrenceSubject(event, occurrence.number),
      labels,
    }));
  const rows = await db<
    {
      subject: Buffer;
      entityId: Buffer;
      metricName: string | null;
      metricLabels: Record<string, string> | null;
      triggerNames: string[];
      value: number | null;
    }[]
  >`
    select subject, entity_id as "entityId", metric_name as "metricName", metric_labels as "metricLabels",
      trigger_names as "triggerNames", value
    from rule_matches where tenant_id = ${tenantId} and standing and event_id is null limit 100000`;
  for (let from = 0; from < rows.length; from += portion) {
    const page = rows.slice(from, from + portion).map(({ triggerNames, value, ...row }) => ({
      subject: {
        key: row.subject,
        entityId: row.entityId,
        ...(row.metricName !== null && { metricName: row.metricName }),
        ...(row.metricLabels !== null && { metricLabels: row.metricLabels }),
      },
      triggerNames,
      value,
    }));
    const found = await readLabels(db, tenantId, page);
    yield page.flatMap((each) => {
      const state = found.get(subjectLabelsKey(each));
      return state === undefined ? [] : [{ subject: each.subject, labels: state.labels }];
    });
  }
}

/** Finds what is open that a silence's matchers match. */
export async function openMatches(
  db: Db,
  tenantId: string,
  parts: StoredSilence["parts"],
  pace: Pace,
): Promise<OpenSubject["subject"][]> {
  const always = { id: "", startsMs: 0, endsMs: null, ruleNames: [], destinationNames: [] };
  const silence = silencesInForce(new Map([["", loadedSilence({ ...always, matchers: parts })]]));
  const equalities = parts.filter(({ operator }) => operator === "=").map(labelMatcher);
  const found: OpenSubject["subject"][] = [];
  for await (const page of openSubjects(db, tenantId, { matchers: equalities, path: "", pace }))
    for (const { subject, labels } of page)
      if ((await silence.matching(labels, 0, pace)).length > 0) found.push(subject);
  return found;
}

/** Keeps what a silence waits for. @throws code 9 when there is nothing */
export async function keepSubjects(
  tx: Db,
  tenantId: string,
  silence: StoredSilence,
  subjects: readonly OpenSubject["subject"][],
): Promise<void> {
  if (subjects.length === 0)
    throw failedPrecondition("nothing is open that the silence matches, so it would end at once");
  for (let from = 0; from < subjects.length; from += portion) {
    const some = subjects.slice(from, from + portion);
    await tx`
      insert into silence_subjects (tenant_id, silence_id, subject, event_id, number)
      select home.tenant_id, ${silence.id}::uuid, subject, event_id, number from ${home(tx, tenantId)}, unnest(
        ${byteaArray(some.map(({ key }) => key))}::bytea[],
        ${byteaArray(some.map(({ eventId }) => eventId ?? null))}::bytea[],
        ${int4Array(some.map(({ number }) => number ?? null))}::int4[]
      ) as found (subject, event_id, number)
      on conflict do nothing`;
  }
  await orm(tx)
    .update(table)
    .set({ judged: true })
    .where(and(eq(table.tenantId, tenantId), eq(table.id, silence.id)));
}

/**
 * Ends silences when nothing is open any more of what they matched when they began. A look judges new ones for `workMs`, one at least, and
 * ends as many as `endsMax`; the rest follow in the next.
 */
export function resolvedJob(): JobKind {
  async function run(tx: Db, tenantId: string, jobs: readonly Job[], nowMs: number, finish?: Finish) {
    const running = await orm(tx)
      .select()
      .from(table)
      .where(
        and(
          eq(table.tenantId, tenantId),
          eq(table.untilResolved, true),
          sql`(${table.endsMs} is null or ${table.endsMs} > ${BigInt(nowMs)})`,
        ),
      )
      .orderBy(table.id)
      .for("update");
    const begun = running.filter(({ startsMs }) => startsMs <= BigInt(nowMs));
    const pace = paced(undefined, tenantId);
    const over: StoredSilence[] = [];
    const untilMs = performance.now() + workMs;
    const unjudged = begun.filter(({ judged }) => !judged);
    let left = unjudged.length;
    for (const silence of unjudged) {
      if (left < unjudged.length && performance.now() > untilMs) break;
      left -= 1;
      const subjects = await openMatches(tx, tenantId, silence.parts, pace);
      if (subjects.length === 0) over.push(silence);
      else await keepSubjects(tx, tenantId, silence, subjects);
    }
    const judged = begun.filter((silence) => silence.judged);
    const open = judged.length === 0 ? new Set<string>() : await stillOpen(tx, tenantId, judged);
    const ended = judged.filter(({ id }) => !open.has(id));
    over.push(...ended.slice(0, endsMax));
    if (over.length > 0) await endSilences(tx, tenantId, over, nowMs);
    const isOver = new Set(over);
    const later = running.filter((silence) => !isOver.has(silence));
    const isWhole = left === 0 && ended.length <= endsMax;
    const lookMs = isWhole ? nowMs + everyMs : nowMs;
    const dueMs = later.some(({ startsMs }) => startsMs <= BigInt(nowMs))
      ? lookMs
      : Math.min(...later.map(({ startsMs }) => Number(startsMs)));
    const again = later.length === 0 ? [] : jobs.map(({ id, payload }) => ({ id, payload, dueMs }));
    await finish?.(again);
    await announceSilences(
      tx,
      tenantId,
      over.map(({ id }) => id),
    );
    return again;
  }
  return { name: resolvedKind, sizeMax: 1, timed: true, run };
}

/** Returns of which silences something is still open. By the primary keys. */
async function stillOpen(tx: Db, tenantId: string, silences: readonly StoredSilence[]): Promise<Set<string>> {
  planWithoutValues(tx);
  const rows = await tx<{ id: string }[]>`
    select asked.id from unnest(${uuidArray(silences.map(({ id }) => id))}::uuid[]) as asked (id)
    where exists (
      select from silence_subjects s
      where s.tenant_id = ${tenantId} and s.silence_id = asked.id and (
        exists (select from occurrences o
          where o.tenant_id = ${tenantId} and o.event_id = s.event_id and o.number = s.number and o.end_ms is null)
        or (s.event_id is null and exists (select from rule_matches r
          where r.tenant_id = ${tenantId} and r.subject = s.subject and r.standing))))`;
  return new Set(rows.map(({ id }) => id));
}
