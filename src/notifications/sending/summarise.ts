import { uuidArray } from "../../db/batch.ts";
import type { Db } from "../../db/connect.ts";
import { idText } from "../../entities/identity.ts";
import { type ClaimedDelivery, memberKey } from "../queue/delivery-queue.ts";
import type { Memberships } from "../queue/summaries.ts";
import { readSubjects } from "../subject/read-subjects.ts";
import type { SummarySnapshot } from "../subject/snapshot.ts";
import { keyText } from "../subject/subject.ts";
import { type NamedEntity, notifiedEntity, standInOf } from "./compose.ts";

/** Deliveries that go as one. */
export interface Summary {
  /** The one that is sent as the summary, under its id. */
  readonly row: ClaimedDelivery;
  readonly others: readonly ClaimedDelivery[];
  readonly told: SummarySnapshot;
}

/** Members whose names a summary says. */
const namedMax = 100;

interface Named {
  readonly row: ClaimedDelivery;
  readonly name: string;
  readonly entity: NamedEntity;
}

/** The names of deliveries; those that are about what was deleted have none. */
async function readNames(tx: Db, tenantId: string, rows: readonly ClaimedDelivery[]): Promise<Named[]> {
  const states = await readSubjects(
    tx,
    tenantId,
    rows.map(({ subject }) => subject),
  );
  return rows.flatMap((row) => {
    const { key, eventId, entityId, metricName } = row.subject;
    const state = states.get(keyText(key));
    const entity = entityId === undefined ? standInOf(row) : state?.entity;
    const name = eventId === undefined ? (metricName ?? entity?.name) : state?.occurrence?.event.name;
    return entity === undefined || name === undefined ? [] : [{ row, name, entity }];
  });
}

/** The names alone where they tell members apart, else with those of their entities. */
function labelsOf(all: readonly Named[]): string[] {
  const names = new Set(all.map(({ name }) => name));
  if (names.size === all.length) return [...names];
  const isOfOne = new Set(all.map(({ entity }) => entity.id.toString("hex"))).size === 1;
  return [...new Set(all.map(({ name, entity }) => (isOfOne ? name : `${name} (${entity.name})`)))];
}

/** What was the summary before comes first, so that a try again has its id; what was tried by itself comes last. */
function byFitness(rows: readonly ClaimedDelivery[], memberships: Memberships) {
  const rank = (row: ClaimedDelivery) => {
    if (row.tries === 0 && !row.lost) return 1;
    return memberships.get(memberKey(row))?.some(({ summaryId }) => summaryId === row.id) ? 0 : 2;
  };
  return rows.toSorted((a, b) => rank(a) - rank(b));
}

/**
 * Makes a summary of deliveries, and returns beside it those that are about what was deleted. Of one that is left alone no summary is
 * made; `left` are those that go by themselves.
 */
export async function summarise(
  tx: Db,
  tenantId: string,
  rows: readonly ClaimedDelivery[],
  memberships: Memberships,
): Promise<{ summary?: Summary; left: ClaimedDelivery[]; gone: ClaimedDelivery[] }> {
  const ordered = byFitness(rows, memberships);
  const gone = new Set<ClaimedDelivery>();
  let named: Named[] = [];
  for (let from = 0; from < ordered.length && named.length === 0; from += namedMax) {
    const looked = ordered.slice(from, from + namedMax);
    named = await readNames(tx, tenantId, looked);
    const found = new Set(named.map(({ row }) => row));
    for (const row of looked) if (!found.has(row)) gone.add(row);
  }
  const left = rows.filter((row) => !gone.has(row));
  const [first] = named;
  if (first === undefined || left.length === 1) return { left, gone: [...gone] };
  const { row, entity } = first;
  const told: SummarySnapshot = {
    id: row.id,
    count: left.length,
    names: labelsOf(named),
    severity: left.reduce((worst, { told }) => Math.max(worst, told.severity ?? 0), 0),
    eventId: row.subject.eventId === undefined ? "" : idText(row.subject.eventId),
    entity: notifiedEntity(entity),
  };
  return { summary: { row, others: left.filter((other) => other !== row), told }, left: [], gone: [...gone] };
}

/** Stores what a summary stands for, before it is sent: whatever becomes of this process, its end is known. May be repeated. */
export async function keepSummary(tx: Db, tenantId: string, { row, others, told }: Summary): Promise<void> {
  const ids = uuidArray([row.id, ...others.map(({ id }) => id)]);
  await tx`
    insert into summary_members (tenant_id, summary_id, delivery_id, created_ms, destination_name, subject, rule_id,
      of_window, over, told)
    select tenant_id, ${row.id}::uuid, id, created_ms, destination_name, subject, rule_id, entity_id is null and not told ? 'group', false,
      case when id = ${row.id} then ${JSON.stringify(told)}::jsonb end
    from due_deliveries where tenant_id = ${tenantId} and id = any(${ids}::uuid[]) order by id
    on conflict (tenant_id, summary_id, delivery_id) do update set told = excluded.told where excluded.told is not null`;
}
