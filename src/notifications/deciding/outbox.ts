import { randomUUID } from "node:crypto";
import { byteaArray, textArray } from "../../db/batch.ts";
import type { Db } from "../../db/connect.ts";
import { home } from "../../db/home-row.ts";
import { afterCommit } from "../../db/transaction.ts";
import { failpoint } from "../../failpoint.ts";
import { announce } from "../../jobs/queue.ts";
import type { DeliverySnapshot } from "../delivery-snapshot.ts";
import type { Subject } from "../matched-subject.ts";
import type { Due } from "./decide.ts";

/** The work that due deliveries are, in the table of all that is due. */
const lane = "deliveries";

/** Informs the process that deliveries of a tenant are stored, and when the first is due. */
export type Wake = (tenantId: string, dueMs: number) => void;

/** A notification that is to go to destinations. */
export interface Notice extends Due {
  readonly rule: { readonly id: string; readonly name: string };
  readonly destinationNames: readonly string[];
  readonly triggerNames: readonly string[];
  readonly subject: Pick<Subject, "key"> & Partial<Subject>;
  readonly told: DeliverySnapshot;
}

/** What of a rule and subject waits, and goes to these destinations, although it is not needed any more. */
export interface Unneeded {
  readonly ruleId: string;
  readonly key: Buffer;
  readonly destinationNames: readonly string[];
}

/** A UUID version 7 of this time: such ids are found by the day that is in them. */
export function deliveryId(ms: number): string {
  const time = ms.toString(16).padStart(12, "0");
  return `${time.slice(0, 8)}-${time.slice(8)}-7${randomUUID().slice(15)}`;
}

const bytes = (value: Buffer | undefined) => (value === undefined ? null : `\\x${value.toString("hex")}`);

/** A row for each destination. */
function toRows({ rule, destinationNames, triggerNames, subject, told, occasion, createdMs, dueMs }: Notice) {
  return destinationNames.map((destinationName) => ({
    id: deliveryId(createdMs),
    created_ms: createdMs,
    rule_id: rule.id,
    rule_name: rule.name,
    trigger_names: triggerNames,
    destination_name: destinationName,
    subject: bytes(subject.key),
    event_id: bytes(subject.eventId),
    number: subject.number ?? null,
    entity_id: bytes(subject.entityId),
    metric_name: subject.metricName ?? null,
    occasion,
    told: subject.metricLabels === undefined ? told : { ...told, labels: subject.metricLabels },
    due_ms: dueMs,
  }));
}

/**
 * Stores deliveries in the caller's transaction, and makes due now what is not needed any more, so that it is cancelled
 * soon. Near the end of the transaction: of all rows that are due, the tenant's is locked last.
 */
export async function storeNotices(
  tx: Db,
  tenantId: string,
  { notices, unneeded = [], nowMs }: { notices: readonly Notice[]; unneeded?: readonly Unneeded[]; nowMs: number },
  wake: Wake,
): Promise<void> {
  const rows = notices.flatMap(toRows);
  const hastened = unneeded.length > 0 ? await hasten(tx, tenantId, unneeded, nowMs) : 0;
  if (rows.length === 0 && hastened === 0) return;
  if (rows.length > 0) {
    await tx`
      insert into due_deliveries (tenant_id, id, created_ms, rule_id, rule_name, trigger_names, destination_name, subject,
        event_id, number, entity_id, metric_name, occasion, told, due_ms, lease_until_ms, fence, tries, slow_tries,
        attempts, error)
      select home.tenant_id, id, created_ms, rule_id, rule_name, trigger_names, destination_name, subject,
        event_id, number, entity_id, metric_name, occasion, told, due_ms, 0, 0, 0, 0, '[]', ''
      from ${home(tx, tenantId)}, jsonb_populate_recordset(null::due_deliveries, ${JSON.stringify(rows)}::jsonb)`;
  }
  failpoint("outbox:written");
  const dueMs = rows.reduce((least, { due_ms }) => Math.min(least, due_ms), hastened > 0 ? nowMs : Infinity);
  await announce(tx, { tenantId, kind: lane }, BigInt(dueMs));
  afterCommit(tx, () => wake(tenantId, dueMs));
}

/** Ends of other rules may have waited for this one's. By due_deliveries_by_age, then by the key. Returns how many there were. */
async function hasten(tx: Db, tenantId: string, unneeded: readonly Unneeded[], nowMs: number): Promise<number> {
  const each = unneeded.flatMap(({ ruleId, key, destinationNames }) =>
    destinationNames.map((destinationName) => ({ ruleId, key, destinationName })),
  );
  const moved = await tx`
    update due_deliveries set due_ms = ${BigInt(nowMs)}
    where tenant_id = ${tenantId} and due_ms > ${BigInt(nowMs)} and id = any(array(
      select d.id from unnest(
        ${textArray(each.map(({ destinationName }) => destinationName))}::text[],
        ${byteaArray(each.map(({ key }) => key))}::bytea[],
        ${textArray(each.map(({ ruleId }) => ruleId))}::uuid[]
      ) as over (destination_name, subject, rule_id)
      cross join lateral (
        select id from due_deliveries
        where tenant_id = ${tenantId} and destination_name = over.destination_name and subject = over.subject
          and created_ms >= 0 and (rule_id = over.rule_id or occasion = 'clear') order by created_ms, id offset 0
      ) as d
    ))`;
  return moved.count;
}

/**
 * Makes due now the ends that wait at these destinations of a rule that notifies them no more: they may have waited for its matches. In
 * the transaction that changes the rule. By due_deliveries_by_due, then by the key.
 */
export async function releaseEnds(tx: Db, tenantId: string, destinationNames: readonly string[]): Promise<void> {
  if (destinationNames.length === 0) return;
  const [now] = await tx<[{ ms: bigint }]>`
    select floor(extract(epoch from statement_timestamp()) * 1000)::int8 as ms`;
  const moved = await tx`
    update due_deliveries set due_ms = ${now.ms}
    where tenant_id = ${tenantId} and due_ms > ${now.ms} and id = any(array(
      select d.id from unnest(${textArray(destinationNames)}::text[]) as left_by (destination_name)
      cross join lateral (
        select id, occasion, tries from due_deliveries
        where tenant_id = ${tenantId} and destination_name = left_by.destination_name and due_ms > ${now.ms} and tries >= 0
        order by due_ms, id offset 0
      ) as d
      where d.occasion = 'clear' and d.tries = 0
    ))`;
  if (moved.count > 0) await announce(tx, { tenantId, kind: lane }, now.ms);
}
