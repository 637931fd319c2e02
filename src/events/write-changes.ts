import { bigintArray, byteaArray, int4Array } from "../db/batch.ts";
import type { Db } from "../db/connect.ts";
import { home } from "../db/home-row.ts";
import { failpoint } from "../failpoint.ts";
import type { Change, KeptOpen } from "./changes.ts";
import { columnKeys, marked, writing } from "./columns.ts";
import type { Occurrence } from "./lifecycle.ts";

/** What all changes of one occurrence come to. */
interface Written {
  eventId: Buffer;
  first: Occurrence | undefined;
  last: Occurrence;
}

function summed(changes: readonly KeptOpen[]): Written[] {
  const byLast = new Map<Occurrence, Written>();
  for (const { event, before, after } of changes) {
    const earlier = before && byLast.get(before);
    if (earlier === undefined) {
      byLast.set(after, { eventId: event.id, first: before, last: after });
    } else {
      byLast.delete(earlier.last);
      earlier.last = after;
      byLast.set(after, earlier);
    }
  }
  return [...byLast.values()];
}

const seen = marked({ seen: true });
const still = columnKeys.filter((key) => !seen.some((each) => each === key));

/** Whether an occurrence was only seen once more, counted, or kept open. */
const onlySeen = (first: Occurrence, last: Occurrence) => still.every((key) => first[key] === last[key]);

/** Sends what writes changed occurrences: those that were only seen once more, and all others. */
export function writeOccurrences(tx: Db, tenantId: string, changes: readonly KeptOpen[]): PromiseLike<unknown>[] {
  const all = summed(changes);
  const known = all.filter(({ first, last }) => first !== undefined && onlySeen(first, last));
  const others = all.filter(({ first, last }) => first === undefined || !onlySeen(first, last));
  const statements: PromiseLike<unknown>[] = [];
  if (known.length > 0) statements.push(writeSeen(tx, tenantId, known));
  if (others.length > 0) statements.push(writeWhole(tx, tenantId, others));
  return statements;
}

/*
 * Both are inserts, of which the conflicts with what is there are found by the primary key alone: an update would be joined with
 * all of the tenant's rows where PostgreSQL takes these for few (design/statements).
 */

const whole = writing(columnKeys.filter((key) => key !== "number"));
const ofSeen = writing(seen);

const idArray = (written: readonly Written[]) => byteaArray(written.map(({ eventId }) => eventId));
const lasts = (written: readonly Written[]) => written.map(({ last }) => last);

/** What no occurrence has: none is made, since those that are seen once more are there, under the locks of their events. */
async function writeSeen(tx: Db, tenantId: string, written: readonly Written[]): Promise<void> {
  const rows = await tx<{ made: boolean }[]>`
    insert into occurrences as o (tenant_id, event_id, ${whole.names(tx)})
    select home.tenant_id, event_id, ${ofSeen.orBlanks(tx)}
    from ${home(tx, tenantId)},
      unnest(${idArray(written)}::bytea[], ${ofSeen.arrays(tx, lasts(written))}) as seen (event_id, ${ofSeen.names(tx)})
    on conflict (tenant_id, event_id, number) do update set ${ofSeen.replaced(tx)}
    returning o.xmax::text = '0' as made`;
  if (rows.some(({ made }) => made)) throw new Error("an occurrence that was read under its event's lock is not there");
}

async function writeWhole(tx: Db, tenantId: string, written: readonly Written[]): Promise<void> {
  await tx`
    insert into occurrences (tenant_id, event_id, ${whole.names(tx)})
    select home.tenant_id, made.*
    from ${home(tx, tenantId)},
      unnest(${idArray(written)}::bytea[], ${whole.arrays(tx, lasts(written))}) as made (event_id, ${whole.names(tx)})
    on conflict (tenant_id, event_id, number) do update set ${whole.replaced(tx)}`;
  failpoint("ingest:occurrences-written");
}

/** Sends what writes the instances of changes. */
export function writeInstances(tx: Db, tenantId: string, changes: readonly Change[]): PromiseLike<unknown>[] {
  const rows = changes.flatMap(({ event, after, instance }) =>
    instance === undefined ? [] : [{ eventId: event.id, number: after.number, instance }],
  );
  if (rows.length === 0) return [];
  // In the order of the key, so that those of one page are added together.
  rows.sort((a, b) => Number(a.instance.timeMs - b.instance.timeMs) || Buffer.compare(a.eventId, b.eventId));
  return [
    tx`
      insert into instances (tenant_id, event_id, time_ms, severity, status, number)
      select home.tenant_id, event_id, time_ms, severity, status, number
      from ${home(tx, tenantId)}, unnest(
        ${byteaArray(rows.map(({ eventId }) => eventId))}::bytea[],
        ${bigintArray(rows.map(({ instance }) => instance.timeMs))}::bigint[],
        ${int4Array(rows.map(({ instance }) => instance.severity))}::int4[],
        ${int4Array(rows.map(({ instance }) => instance.status))}::int4[],
        ${int4Array(rows.map(({ number }) => number))}::int4[]
      ) as counted (event_id, time_ms, severity, status, number)`.execute(),
  ];
}
