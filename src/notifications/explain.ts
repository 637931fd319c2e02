import { create } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import {
  type DeliveryService,
  type ExplainNotificationRequest,
  ExplainNotificationResponseSchema,
  ExplainNotificationResponse_Outcome as Outcome,
} from "#gen/belfry/notifications/v1/delivery_service_pb.ts";
import type { ExplanationStep } from "#gen/belfry/notifications/v1/explanation_pb.ts";
import { RepeatWhile } from "#gen/belfry/notifications/v1/rule_pb.ts";
import { textArray } from "../db/batch.ts";
import type { Db } from "../db/connect.ts";
import { notFound } from "../errors.ts";
import { paced } from "../event-loop.ts";
import { changedBehindMs } from "../events/consumers/cursors.ts";
import { asideOf } from "../events/consumers/set-aside.ts";
import { parseOccurrenceId } from "../events/identity.ts";
import { CLOSED } from "../events/lifecycle.ts";
import { findOccurrences, keyText as occurrenceText } from "../events/occurrences.ts";
import { principalOf } from "../rpc/context.ts";
import { normalizedName } from "../rpc/name-rules.ts";
import { rulesName } from "./deciding/deciding.ts";
import { membershipsOf, readGroups } from "./deciding/groups/group-store.ts";
import { keyText, nilRule, readMatches, type StoredMatch } from "./deciding/match-store.ts";
import { fieldsOf, type MatchRow, matchRow } from "./deciding/matcher/rows.ts";
import { holdsOf } from "./deciding/mute.ts";
import { labelsKey, readLabels } from "./deciding/subject-labels.ts";
import { type DeliveryRow, hasMember, readDeliveries, readGroupLabels, toDelivery } from "./delivery-rows.ts";
import {
  ownTriggers,
  type Result,
  readSeen,
  ruleStep,
  type StoredTrigger,
  step,
  triggerStep,
} from "./explanation-steps.ts";
import { occurrenceSubject } from "./matched-subject.ts";
import { activeSilences, toLoaded } from "./silences/silences.ts";
import { silencesInForce } from "./silences/silences-in-force.ts";

/** The maintenance windows that an entity is in, by the folder of windows. */
export type OpenWindows = (
  db: Db,
  tenantId: string,
  entityId: Buffer,
) => Promise<readonly { name: string; untilMs: bigint | null }[]>;

const deliveriesMax = 100;

interface RuleRow {
  id: string;
  enabled: boolean;
  repeat: boolean;
  repeatIntervalSec: number;
  /** Null in rows of 0.1.0: by reports. */
  repeatWhile: RepeatWhile | null;
  delaySec: number;
  muteDuringMaintenance: boolean;
  matchers: string[];
  destinationNames: string[];
  triggers: StoredTrigger[];
}

/** What is asked about, and what is stored of it. */
interface Case {
  readonly rule: RuleRow;
  readonly name: string;
  /** As triggers see it; undefined for what is no occurrence. */
  readonly row: MatchRow | undefined;
  readonly match: StoredMatch | undefined;
  /** The rules that led to it. */
  readonly chain: readonly string[];
  /** The groups of the rule that it is a member of. */
  readonly memberships: Awaited<ReturnType<typeof membershipsIn>>;
  /** The newest first. */
  readonly deliveries: readonly DeliveryRow[];
  /** Since when a change of it waits to be looked at. */
  readonly unseenMs: number | undefined;
  /** Why looking at a change of it has failed, and when that is tried again. */
  readonly aside: Awaited<ReturnType<typeof asideOf>>;
}

/** Says why rules did or did not notify. */
export function explanations(
  db: Db,
  { nowMs, openWindows }: { nowMs(): number; openWindows: OpenWindows },
): Pick<ServiceImpl<typeof DeliveryService>, "explainNotification"> {
  return {
    async explainNotification(request, context) {
      const { tenantId, tenantName } = principalOf(context);
      const known = await readCase(db, tenantId, request);
      const pace = paced(() => context.signal.throwIfAborted(), tenantId);
      const steps = [ruleStep(known.rule), ...chainSteps(known)];
      const triggers: ExplanationStep[] = [];
      for (const trigger of known.rule.triggers) {
        await pace();
        triggers.push(triggerStep(trigger, known, fieldsOf(tenantId, tenantName).events));
      }
      const matches = triggers.some(({ result }) => result === "passed");
      const entityId = known.row?.entity_id ?? known.match?.subject.entityId;
      const muting = known.rule.muteDuringMaintenance && entityId !== undefined;
      const windows = muting ? await openWindows(db, tenantId, entityId) : [];
      const silence = await silenceOf(db, tenantId, known, matches, nowMs());
      steps.push(...triggers, ...matchSteps(known, matches), ...windowSteps(known, windows), ...silenceSteps(silence));
      if (known.match?.grouped) steps.push(...groupSteps(known, nowMs()));
      else steps.push(...delaySteps(known, nowMs()), ...repeatSteps(known, nowMs()));
      steps.push(...deliverySteps(known));
      const labels = await readGroupLabels(db, tenantId, known.deliveries);
      return create(ExplainNotificationResponseSchema, {
        outcome: outcomeOf(known, matches, silence !== undefined),
        steps,
        deliveries: known.deliveries.map((row) => toDelivery(row, labels)),
      });
    },
  };
}

/** @throws code 5 for a rule or a subject that there is none of */
async function readCase(db: Db, tenantId: string, { name, about }: ExplainNotificationRequest): Promise<Case> {
  const rule = await readRule(db, tenantId, normalizedName(name));
  const text = about.value ?? "";
  const occurrence = parseOccurrenceId(text);
  const unknown = () => notFound(about.case === "occurrenceId" ? "occurrence" : "subject", text);
  if (occurrence === undefined && about.case === "occurrenceId") throw unknown();
  const found = occurrence && (await findOccurrences(db, tenantId, [occurrence])).get(occurrenceText(occurrence));
  if (occurrence !== undefined && found === undefined) throw unknown();
  const key = found ? occurrenceSubject(found.event, found.occurrence.number).key : Buffer.from(text, "base64url");
  const matches = await readMatches(db, tenantId, [key]);
  const noted = matches.get(keyText(key));
  const match = noted?.get(rule.id);
  const told = match?.grouped
    ? db`(subject = ${key} or ${hasMember(db, tenantId, db`subject = ${key}`)})`
    : db`subject = ${key}`;
  const [memberships, unseenMs, aside, deliveries] = await Promise.all([
    match?.grouped ? membershipsIn(db, tenantId, match) : [],
    found && changedBehindMs(db, tenantId, rulesName, key),
    occurrence && asideOf(db, tenantId, rulesName, occurrence),
    readDeliveries(db, {
      waiting: db`tenant_id = ${tenantId} and destination_name = any(${textArray(rule.destinationNames)}::text[])
        and ${told} and created_ms >= 0 and rule_id = ${rule.id}`,
      done: db`tenant_id = ${tenantId} and ${told} and rule_id = ${rule.id}`,
      limit: deliveriesMax,
    }),
  ]);
  if (found === undefined && noted === undefined && deliveries.length === 0) throw unknown();
  const row = found && matchRow(found.event, found.occurrence);
  if (row !== undefined) await readSeen(db, tenantId, row, rule.triggers);
  const chain = noted?.get(nilRule)?.chain ?? [];
  return { rule, name, row, match, chain, memberships, deliveries, unseenMs, aside };
}

/** Reads the groups of its rule that a match is a member of, with when each is flushed. */
async function membershipsIn(db: Db, tenantId: string, { ruleId, subject }: StoredMatch) {
  const own = await membershipsOf(db, tenantId, ruleId, [subject.eventId ?? subject.key]);
  const groups = await readGroups(
    db,
    tenantId,
    ruleId,
    own.map(({ groupKey }) => groupKey),
  );
  const dueMs = new Map(groups.map((group) => [keyText(group.key), group.dueMs]));
  return own.map(({ groupKey, sentTo, joinsMs }) => ({ sentTo, joinsMs, dueMs: dueMs.get(keyText(groupKey)) }));
}

async function readRule(db: Db, tenantId: string, name: string): Promise<RuleRow> {
  const [row] = await db<Omit<RuleRow, "triggers">[]>`
    select id, enabled, repeat, repeat_interval_sec::float8 as "repeatIntervalSec",
      repeat_while as "repeatWhile", delay_sec as "delaySec",
      mute_during_maintenance as "muteDuringMaintenance", matchers,
      array(select d.destination_name from rule_destinations d
        where d.tenant_id = ${tenantId} and d.rule_name = ${name} order by d.place) as "destinationNames"
    from rules where tenant_id = ${tenantId} and name = ${name}`;
  if (row === undefined) throw notFound("rule", name);
  const triggers = await db<RuleRow["triggers"]>`
    select t.name, t.type from rule_triggers u
      join triggers t on t.tenant_id = ${tenantId} and t.name = u.trigger_name
    where u.tenant_id = ${tenantId} and u.rule_name = ${name} order by u.place`;
  return { ...row, triggers: [...triggers, ...ownTriggers(row.matchers)] };
}

function chainSteps({ chain, name }: Case): ExplanationStep[] {
  if (!chain.includes(name)) return [];
  return [step("chain", "stopped", "the rule led to this event itself, so it does not start by it")];
}

function matchSteps({ match, unseenMs, aside }: Case, matches: boolean): ExplanationStep[] {
  if (aside !== undefined) {
    const why = aside.cause === "" ? "" : `: ${aside.cause}`;
    const steps = { untilMs: aside.dueMs };
    return [step("match", "waiting", `looking at a change of it has failed, and is tried again${why}`, steps)];
  }
  if (unseenMs !== undefined)
    return [
      step("match", "waiting", "a change of it that was stored then is about to be looked at", { timeMs: unseenMs }),
    ];
  if (match?.standing) return [step("match", "passed", "the match stands since then", { timeMs: match.matchedMs })];
  if (matches) return [step("match", "waiting", "the rule has not seen it match yet: its next report decides")];
  if (match === undefined || match.matchedMs === 0) return [];
  return [step("match", "stopped", "the match that began then is over", { timeMs: match.matchedMs })];
}

/** The window that lasts longest holds it back. */
function windowSteps({ match }: Case, windows: Awaited<ReturnType<OpenWindows>>): ExplanationStep[] {
  const end = ({ untilMs }: { untilMs: bigint | null }) => (untilMs === null ? Infinity : Number(untilMs));
  const [last] = windows.toSorted((a, b) => end(b) - end(a));
  if (last === undefined)
    return match?.muted
      ? [step("maintenance", "waiting", "the window has ended; the rule is about to look again")]
      : [];
  const untilMs = last.untilMs === null ? undefined : Number(last.untilMs);
  return [step("maintenance", "stopped", "the entity is in maintenance", { window: last.name, untilMs })];
}

/** The silence that holds the rule's notifications about it now, to all of its destinations or some: the one that ends last. */
async function silenceOf(
  db: Db,
  tenantId: string,
  { match, row, rule, name, deliveries }: Case,
  matches: boolean,
  nowMs: number,
) {
  const subject =
    match?.subject ?? (row && occurrenceSubject({ id: row.event_id, entityId: row.entity_id }, row.number));
  const held = deliveries.flatMap(({ silenceId }) => silenceId ?? []);
  if (subject === undefined || !(matches || match?.standing)) return undefined;
  const active = await activeSilences(db, tenantId, nowMs);
  if (active.length === 0) return undefined;
  const labelled = { subject, triggerName: match?.triggerNames[0] ?? "", isSeries: match?.value !== undefined };
  const view = (await readLabels(db, tenantId, [labelled])).get(labelsKey(labelled));
  if (view === undefined) return undefined;
  const loaded = new Map(active.map((each) => [each.id, toLoaded(each)]));
  const found = await silencesInForce(loaded).matching(view, nowMs, paced(undefined, tenantId));
  const holds = [...holdsOf(found, { name, destinationNames: rule.destinationNames }).values()];
  const last = holds.reduce<(typeof holds)[number] | undefined>(
    (a, b) => (a && a.untilMs >= b.untilMs ? a : b),
    undefined,
  );
  const id = last?.silenceId ?? held[0];
  return active.find((each) => each.id === id);
}

function silenceSteps(silence: Awaited<ReturnType<typeof silenceOf>>): ExplanationStep[] {
  if (silence === undefined) return [];
  const { id: silenceId, createdBy, clientName, comment, endsMs } = silence;
  const author = createdBy === "" ? clientName : createdBy;
  const untilMs = endsMs === null ? undefined : Number(endsMs);
  return [step("silence", "stopped", "a silence holds it", { silenceId, author, comment, untilMs })];
}

function delaySteps({ match, rule }: Case, nowMs: number): ExplanationStep[] {
  const untilMs = match?.standing ? match.firstDueMs : undefined;
  if (match === undefined || untilMs === undefined) return [];
  if (untilMs <= nowMs) return [step("delay", "passed", "the delay has ended", { timeMs: untilMs })];
  if (untilMs <= match.matchedMs + rule.delaySec * 1000)
    return [step("delay", "waiting", "the first notification waits for the end of the delay", { untilMs })];
  return [
    step("repeat", "waiting", "it began again before repeatInterval had elapsed, and waits until then", { untilMs }),
  ];
}

/** Says in which message it was, and which flush it waits for. */
function groupSteps({ match, memberships, deliveries }: Case, nowMs: number): ExplanationStep[] {
  const steps: ExplanationStep[] = [];
  const newest = deliveries.find(({ group }) => group !== null);
  if (newest?.group) {
    const others = newest.group.firing + newest.group.resolved - 1;
    steps.push(
      step("group", "passed", `it was in the message ${newest.id} of its group, with ${others} others`, {
        timeMs: Number(newest.createdMs),
      }),
    );
  }
  for (const { sentTo, joinsMs, dueMs } of match?.standing ? memberships : []) {
    if (sentTo.length > 0) continue;
    if (joinsMs > nowMs)
      steps.push(step("delay", "waiting", "it joins its group at the end of the delay", { untilMs: joinsMs }));
    else if (dueMs !== undefined)
      steps.push(step("group", "waiting", "it waits for the next message of its group", { untilMs: dueMs }));
  }
  return steps;
}

function repeatSteps({ match, rule, row }: Case, nowMs: number): ExplanationStep[] {
  if (!match?.standing || match.notifiedMs === undefined || match.notifiedMs > nowMs) return [];
  const timeMs = match.notifiedMs;
  const says = (result: Result, reason: string, untilMs?: number) => [
    step("repeat", result, reason, { timeMs, untilMs }),
  ];
  if (!rule.repeat) return says("stopped", "it was decided then, and the rule does not repeat");
  const untilMs = timeMs + rule.repeatIntervalSec * 1000;
  if (rule.repeatWhile) {
    const acknowledged = rule.repeatWhile === RepeatWhile.UNACKNOWLEDGED && row?.acknowledged;
    if (row?.status === CLOSED)
      return says("stopped", "it was decided then, and is not repeated: the occurrence is closed");
    if (acknowledged) return says("stopped", "it was decided then, and is not repeated while it is acknowledged");
    return says("waiting", "it was decided then, and is repeated by the clock", untilMs);
  }
  if (untilMs <= nowMs) return says("passed", "the next report repeats it");
  return says("stopped", "it was decided then, and is not repeated before repeatInterval has elapsed", untilMs);
}

function deliverySteps({ deliveries }: Case): ExplanationStep[] {
  return deliveries.slice(0, 1).map(({ status, occasion, destinationName, error, createdMs, dueMs }) => {
    const place = JSON.stringify(destinationName);
    const why = error === "" ? "" : `: ${error}`;
    return step("delivery", status, `the newest delivery, ${occasion} to ${place}${why}`, {
      timeMs: Number(createdMs),
      untilMs: dueMs ?? undefined,
    });
  });
}

function outcomeOf(known: Case, matches: boolean, silenced: boolean): Outcome {
  const { rule, name, match, chain, deliveries, unseenMs, aside } = known;
  if (!rule.enabled || rule.destinationNames.length === 0) return Outcome.RULE_DISABLED;
  if (unseenMs !== undefined || aside !== undefined) return Outcome.WAITING;
  const own = deliveries.filter(({ createdMs }) => createdMs >= (match?.matchedMs ?? 0));
  const some = (...statuses: DeliveryRow["status"][]) => own.some(({ status }) => statuses.includes(status));
  if (match?.standing && match.muted) return Outcome.MUTED;
  if (some("HELD") || (silenced && match?.standing && !some("SENT", "SUMMARISED"))) return Outcome.SILENCED;
  if (some("PENDING")) return Outcome.WAITING;
  if (some("SENT", "SUMMARISED")) return Outcome.NOTIFIED;
  if (some("CANCELLED", "FAILED")) return Outcome.CANCELLED;
  if (match?.standing && known.memberships.some(({ sentTo }) => sentTo.length === 0)) return Outcome.WAITING;
  if (!matches && !match?.standing) return Outcome.NOT_MATCHED;
  return match?.standing || chain.includes(name) ? Outcome.SUPPRESSED : Outcome.WAITING;
}
