import { textArray, uuidArray } from "../../db/batch.ts";
import type { Db, Sql } from "../../db/connect.ts";
import { failpoint } from "../../failpoint.ts";
import type { Signature } from "../rules/match-store.ts";
import type { TenantRules } from "../rules/tenant-rules.ts";
import { askMutes, holdsOf, mayHold } from "../silences/mutes.ts";
import type { WaitingDelivery } from "../subject/delivery.ts";
import type { LabelledSubject } from "../subject/labels.ts";
import type { Occasion } from "../subject/notification.ts";
import { readSubjects } from "../subject/read-subjects.ts";
import type { DeliverySnapshot } from "../subject/snapshot.ts";
import { keyText } from "../subject/subject.ts";
import { snapshotOf } from "./match.ts";
import { unneeded, type Verdict } from "./verdict.ts";

/**
 * Asks what holds deliveries that are about to be tried, and says what those report that were held until now.
 * What it does not name is to be sent as it is. None of them is an end.
 */
export async function judgeSilenced(
  sql: Sql,
  tenantId: string,
  deliveries: readonly WaitingDelivery[],
  { silences, byId }: Pick<TenantRules, "silences" | "byId">,
  nowMs: number,
): Promise<Map<string, Verdict>> {
  const verdicts = new Map<string, Verdict>();
  const inForce = { silences, nowMs };
  const silent = mayHold(inForce) ? deliveries : [];
  const mutedBy = await askMutes(sql, tenantId, silent.map(labelled), inForce);
  const kept = silent.length === 0 ? new Set<string>() : await heldBeside(sql, tenantId, silent);
  for (const each of inOrder(silent)) {
    const found = mutedBy(labelled(each));
    if (found === undefined) {
      verdicts.set(each.id, { send: "next" });
      continue;
    }
    const rule = byId.get(each.ruleId);
    const hold = rule && holdsOf(found, rule).get(each.destinationName);
    if (hold === undefined) continue;
    if (each.occasion === "repeat") verdicts.set(each.id, unneeded("a silence holds it"));
    else if (each.occasion !== "first" && kept.has(threadOf(each)))
      verdicts.set(each.id, unneeded("what a silence holds reports it when the silence ends"));
    else {
      verdicts.set(each.id, { send: "silenced", ...hold });
      kept.add(threadOf(each));
    }
  }
  const released = deliveries.filter((each) => each.silenceId !== null && !verdicts.has(each.id));
  for (const [id, verdict] of await releaseHeld(sql, tenantId, released)) verdicts.set(id, verdict);
  return verdicts;
}

const labelled = (delivery: WaitingDelivery): LabelledSubject => ({ ...delivery, value: delivery.told.value });

const threadOf = ({ destinationName, ruleId, subject }: WaitingDelivery) =>
  JSON.stringify([destinationName, ruleId, keyText(subject.key)]);

const inOrder = (deliveries: readonly WaitingDelivery[]) =>
  deliveries.toSorted((a, b) => a.createdMs - b.createdMs || (a.id < b.id ? -1 : 1));

/** Returns of which destinations, rules and subjects an earlier delivery of the same match is held. By due_deliveries_by_age. */
async function heldBeside(db: Db, tenantId: string, deliveries: readonly WaitingDelivery[]): Promise<Set<string>> {
  const updates = deliveries.filter(({ occasion }) => occasion !== "first" && occasion !== "repeat");
  if (updates.length === 0) return new Set();
  const rows = await db<{ destinationName: string; ruleId: string; key: Buffer }[]>`
    select d.destination_name as "destinationName", d.rule_id as "ruleId", d.subject as key
    from unnest(
        ${textArray(updates.map(({ destinationName }) => destinationName))}::text[],
        ${uuidArray(updates.map(({ ruleId }) => ruleId))}::uuid[],
        ${uuidArray(updates.map(({ id }) => id))}::uuid[],
        ${textArray(updates.map(({ subject }) => subject.key.toString("hex")))}::text[]
      ) as asked (destination_name, rule_id, id, subject)
      cross join lateral (
        select destination_name, rule_id, subject from due_deliveries d
        where d.tenant_id = ${tenantId} and d.destination_name = asked.destination_name
          and d.subject = decode(asked.subject, 'hex') and d.created_ms >= 0 and d.rule_id = asked.rule_id
          and d.silence_id is not null and d.id < asked.id
        order by created_ms, d.id limit 1
      ) as d`;
  return new Set(
    rows.map(({ destinationName, ruleId, key }) => JSON.stringify([destinationName, ruleId, keyText(key)])),
  );
}

/** What was held is sent as it is now; an update is not when nothing differs from what was reported before it. */
async function releaseHeld(
  sql: Sql,
  tenantId: string,
  released: readonly WaitingDelivery[],
): Promise<Map<string, Verdict>> {
  const verdicts = new Map<string, Verdict>();
  if (released.length === 0) return verdicts;
  const states = await readSubjects(
    sql,
    tenantId,
    released.map(({ subject }) => subject),
  );
  const sent: { id: string; told: DeliverySnapshot; occasion: Occasion }[] = [];
  for (const { id, subject, told: held, occasion } of released) {
    const now = states.get(keyText(subject.key))?.occurrence;
    const told = now === undefined ? held : { ...held, ...snapshotOf(now.occurrence, held.chain ?? []) };
    const changed = occasion === "first" ? occasion : changeOf(held.since, told);
    if (changed === undefined) verdicts.set(id, unneeded("nothing differs from what was sent before the silence"));
    else {
      verdicts.set(id, { send: true, told, occasion: changed });
      sent.push({ id, told, occasion: changed });
    }
  }
  if (sent.length > 0) {
    const byId = Object.fromEntries(sent.map(({ id, ...now }) => [id, now]));
    // By the key.
    await sql`
      update due_deliveries set silence_id = null, told = by_id -> id::text -> 'told',
        occasion = by_id -> id::text ->> 'occasion'
      from (select ${JSON.stringify(byId)}::jsonb as by_id) as released
      where tenant_id = ${tenantId} and id = any(${uuidArray(sent.map(({ id }) => id))}::uuid[])`;
    failpoint("silences:released");
  }
  return verdicts;
}

/** What one update says of all that has changed since; undefined: nothing has. */
function changeOf(since: Signature | undefined, { severity, acknowledged }: DeliverySnapshot): Occasion | undefined {
  if (since === undefined) return "severity";
  if (severity !== since.severity) return "severity";
  if (acknowledged === since.acknowledged) return undefined;
  return acknowledged ? "acknowledged" : "unacknowledged";
}
