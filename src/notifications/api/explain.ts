import { create } from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import {
  type DeliveryService,
  ExplainNotificationResponseSchema,
  ExplainOccurrenceResponseSchema,
  ExplainNotificationResponse_Outcome as Outcome,
} from "#gen/belfry/notifications/v1/delivery_service_pb.ts";
import type { ExplanationStep } from "#gen/belfry/notifications/v1/explanation_pb.ts";
import { RepeatWhile } from "#gen/belfry/notifications/v1/rule_pb.ts";
import { textArray } from "../../db/batch.ts";
import type { Db } from "../../db/connect.ts";
import { notFound } from "../../errors.ts";
import { type Pace, paced } from "../../event-loop.ts";
import { parseOccurrenceId } from "../../events/occurrence-id.ts";
import { principalOf } from "../../rpc/context.ts";
import { normalizedName } from "../../rpc/name-rules.ts";
import { repeatMs, repeatReason } from "../deciding/decide.ts";
import type { InForce } from "../deciding/engine.ts";
import { chainReason } from "../deciding/match.ts";
import { triggerFields } from "../rules/rows.ts";
import { ruleReason } from "../rules/tenant-rules.ts";
import { inMaintenance, mutesOver, nothing } from "../silences/mutes.ts";
import type { StoredSilence } from "../silences/silences.ts";
import { type DeliveryRow, readDeliveries, readGroupLabels, toDelivery } from "./delivery-rows.ts";
import {
  type About,
  type Case,
  type ExplainedRule,
  heldDestinations,
  isTold,
  joinsGroup,
  newestOfEach,
  readAbout,
  readExplainedRules,
  readGroupMemberships,
  readOwn,
  readState,
  silencesOver,
} from "./explanation-reads.ts";
import { readSeen, reasonStep, ruleStep, step, triggerStep } from "./explanation-steps.ts";

/** The maintenance windows that an entity is in, by the folder of windows. */
export type OpenWindows = (
  db: Db,
  tenantId: string,
  entityId: Buffer,
) => Promise<readonly { name: string; untilMs: bigint | null }[]>;

const deliveriesMax = 100;

/** What a rule came to, and why. */
interface Explained {
  known: Case;
  outcome: Outcome;
  steps: ExplanationStep[];
}

interface Options {
  nowMs(): number;
  openWindows: OpenWindows;
  readonly inForce: InForce;
}

/** Says why rules did or did not notify. */
export function explanations(
  db: Db,
  options: Options,
): Pick<ServiceImpl<typeof DeliveryService>, "explainNotification" | "explainOccurrence"> {
  return {
    async explainNotification({ name, about: named }, context) {
      const { tenantId } = principalOf(context);
      const [rule] = await readExplainedRules(db, tenantId, db`r.name = ${normalizedName(name)}`);
      if (rule === undefined) throw notFound("rule", normalizedName(name));
      const text = named.value ?? "";
      const occurrence = parseOccurrenceId(text);
      const unknown = () => notFound(named.case === "occurrenceId" ? "occurrence" : "subject", text);
      if (occurrence === undefined && named.case === "occurrenceId") throw unknown();
      const about = await readAbout(db, tenantId, text);
      if (about === undefined) throw unknown();
      const told = isTold(db, tenantId, about, [rule]);
      // Before deliveries: what no longer waits in its group by then is in one of them.
      const memberships = await readGroupMemberships(db, tenantId, about, [rule]);
      const deliveries = await readDeliveries(db, {
        waiting: db`tenant_id = ${tenantId} and destination_name = any(${textArray(rule.destinationNames)}::text[])
          and ${told} and created_ms >= 0 and rule_id = ${rule.id}`,
        done: db`tenant_id = ${tenantId} and ${told} and rule_id = ${rule.id}`,
        limit: deliveriesMax,
      });
      if (about.row === undefined && about.noted.size === 0 && deliveries.length === 0) throw unknown();
      if (about.row !== undefined) await readSeen(db, tenantId, about.row, rule.triggers);
      const asked = { about, rules: [rule], memberships, deliveries };
      const [explained] = await explain(db, asked, context, options);
      const { outcome = Outcome.OUTCOME_UNSPECIFIED, steps = [] } = explained ?? {};
      const labels = await readGroupLabels(db, tenantId, deliveries);
      return create(ExplainNotificationResponseSchema, {
        outcome,
        steps,
        deliveries: deliveries.map((row) => toDelivery(row, labels)),
      });
    },

    async explainOccurrence({ id, limit }, context) {
      const { tenantId } = principalOf(context);
      const about = parseOccurrenceId(id) && (await readAbout(db, tenantId, id));
      if (about?.row === undefined) throw notFound("occurrence", id);
      const noted = textArray([...about.noted.keys()]);
      const [rules, [all]] = await Promise.all([
        readExplainedRules(
          db,
          tenantId,
          db`(r.id = any(${noted}::text[]::uuid[]) or r.name in (
            select name from rules where tenant_id = ${tenantId} order by name limit ${rulesMax}))`,
        ),
        db<[{ count: number }]>`select count(*)::float8 as count from rules where tenant_id = ${tenantId}`,
        readSeen(db, tenantId, about.row),
      ]);
      const own = rules.filter((rule) => about.noted.has(rule.id));
      const memberships = await readGroupMemberships(db, tenantId, about, rules);
      const deliveries = await readOwn(db, tenantId, about, own);
      const labels = await readGroupLabels(db, tenantId, deliveries);
      const explained = await explain(db, { about, rules, memberships, deliveries }, context, options);
      const counts = Map.groupBy(explained, ({ outcome }) => outcome);
      return create(ExplainOccurrenceResponseSchema, {
        rules: explained
          .sort((a, b) => relevance(a) - relevance(b))
          .slice(0, Math.min(limit || rulesShown, rulesMax))
          .map(({ known: { rule, deliveries }, outcome, steps }) => ({
            rule: rule.name,
            outcome,
            steps,
            deliveries: newestOfEach(deliveries).map((row) => toDelivery(row, labels)),
          })),
        outcomes: [...counts].map(([outcome, those]) => ({ outcome, count: BigInt(those.length) })),
        totalCount: BigInt(all.count),
        unexaminedCount: BigInt(Math.max(0, all.count - rules.length)),
      });
    },
  };
}

/** What is asked about, and what was read of it. */
interface Asked {
  readonly about: About;
  readonly rules: readonly ExplainedRule[];
  readonly memberships: Awaited<ReturnType<typeof readGroupMemberships>>;
  readonly deliveries: readonly DeliveryRow[];
}

/** Explains all of these rules; what they have in common is read once. */
async function explain(db: Db, asked: Asked, context: HandlerContext, options: Options): Promise<Explained[]> {
  const { about, rules, memberships, deliveries } = asked;
  const { tenantId, tenantName } = principalOf(context);
  const pace = paced(() => context.signal.throwIfAborted(), tenantId, { holdsNothing: true });
  const { events: values } = triggerFields(tenantId, tenantName);
  const triggerSteps = new Map<string, ExplanationStep>();
  const byRule = Map.groupBy(deliveries, ({ ruleName }) => ruleName);
  const common = await readCommon(db, tenantId, asked, options, pace);
  const explained: Explained[] = [];
  for (const rule of rules) {
    const known: Case = {
      ...about,
      rule,
      match: about.noted.get(rule.id),
      memberships: memberships.get(rule.id) ?? [],
      deliveries: byRule.get(rule.name) ?? [],
    };
    const triggers: ExplanationStep[] = [];
    for (const trigger of rule.triggers) {
      await pace();
      // An occurrence looks the same to all rules; what else is asked about is held against the rule's own match.
      const seen = about.row && trigger.name !== "" ? triggerSteps.get(trigger.name) : undefined;
      const made = seen ?? (await triggerStep(trigger, known, values, pace));
      triggerSteps.set(trigger.name, made);
      triggers.push(made);
    }
    explained.push(explainRule(known, triggers, common));
  }
  return explained;
}

/** Reads what rules have in common. */
async function readCommon(
  db: Db,
  tenantId: string,
  { about, rules, deliveries }: Asked,
  { nowMs, openWindows, inForce }: Options,
  pace: Pace,
) {
  const entityId = about.row?.entity_id ?? [...about.noted.values()][0]?.subject.entityId;
  const [{ silences }, state, destinations] = await Promise.all([
    inForce(tenantId),
    readState(db, tenantId, about, rules),
    heldDestinations(db, tenantId, deliveries, nowMs()),
  ]);
  const asking = { silences, nowMs: nowMs(), pace };
  const mutedBy = state === undefined ? nothing : await mutesOver(state, asking);
  const silenceOver = await silencesOver(db, tenantId, mutedBy, { rules, deliveries }, asking);
  const muting = inMaintenance(state?.entity) && rules.some(({ muteDuringMaintenance }) => muteDuringMaintenance);
  const windows = entityId !== undefined && muting ? await openWindows(db, tenantId, entityId) : [];
  return { labels: state?.labels, destinations, silenceOver, windows, nowMs: nowMs() };
}

function explainRule(
  known: Case,
  triggers: readonly ExplanationStep[],
  { labels, destinations, silenceOver, windows, nowMs }: Awaited<ReturnType<typeof readCommon>>,
): Explained {
  const { rule, match } = known;
  const matches = triggers.some(({ result }) => result === "passed");
  const silence = matches || match?.standing ? silenceOver(known) : undefined;
  const joins = joinsGroup(known, labels);
  const steps = [
    ruleStep(rule),
    ...chainSteps(known),
    ...triggers,
    ...matchSteps(known, matches),
    ...windowSteps(known, rule.muteDuringMaintenance ? windows : []),
    ...silenceSteps(silence, known),
    ...(match?.grouped
      ? groupSteps(known, joins, silence !== undefined, nowMs)
      : [...delaySteps(known, nowMs), ...repeatSteps(known, nowMs)]),
    ...destinationSteps(known, destinations),
    ...deliverySteps(known),
  ];
  return { known, outcome: outcomeOf(known, matches, joins, silence !== undefined), steps };
}

/** How many rules are looked at that were not noted with an occurrence, and answered at most. */
const rulesMax = 1000;
const rulesShown = 100;
/** The most relevant outcome first. */
const byRelevance: readonly Outcome[] = [
  Outcome.NOTIFIED,
  Outcome.WAITING,
  Outcome.CANCELLED,
  Outcome.SILENCED,
  Outcome.MUTED,
  Outcome.SUPPRESSED,
  Outcome.NOT_MATCHED,
  Outcome.RULE_DISABLED,
];

/** Returns the smaller number for the more relevant rule; of rules that do not match, for one that did. */
function relevance({ outcome, known: { match } }: Explained): number {
  return byRelevance.indexOf(outcome) * 2 + (match === undefined ? 1 : 0);
}

/** Why what waits is not tried, one step a destination. */
function destinationSteps(
  { deliveries }: Case,
  held: ReadonlyMap<string, { disabledReason: string; openUntilMs: number }>,
): ExplanationStep[] {
  const waiting = newestOfEach(deliveries).filter(({ status }) => status === "PENDING");
  return waiting.flatMap(({ destinationName }) => {
    const found = held.get(destinationName);
    if (found === undefined) return [];
    const place = `destination ${JSON.stringify(destinationName)}`;
    if (found.disabledReason !== "")
      return [step("destination", "stopped", `${place} is disabled: ${found.disabledReason}`)];
    return [
      step("destination", "waiting", `${place} is paused: it failed again and again`, { untilMs: found.openUntilMs }),
    ];
  });
}

function chainSteps({ chain, rule }: Case): ExplanationStep[] {
  const reason = chainReason(chain, rule.name);
  return reason === undefined ? [] : [reasonStep("chain", "stopped", reason)];
}

function matchSteps({ match, unseenMs, aside, chain, rule }: Case, matches: boolean): ExplanationStep[] {
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
  if (matches && chainReason(chain, rule.name) === undefined)
    return [step("match", "waiting", "the rule has not seen it match yet: its next report decides")];
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

function silenceSteps(silence: StoredSilence | undefined, { match, deliveries }: Case): ExplanationStep[] {
  if (silence === undefined) return [];
  const { id: silenceId, createdBy, clientName: author, comment, endsMs } = silence;
  const untilMs = endsMs === null ? undefined : Number(endsMs);
  const waits = deliveries.some(({ status, occasion }) => status === "PENDING" && occasion !== "clear");
  const more = { silenceId, author, createdBy, comment, untilMs };
  if (!waits) return [step("silence", "stopped", "a silence holds it", more)];
  if (match?.grouped)
    return [
      step("silence", "stopped", "a silence holds it, and a message that waits if all that it reports is held", more),
    ];
  return [step("silence", "stopped", "a silence holds it: what waits becomes HELD when it would be tried next", more)];
}

function delaySteps({ match, rule }: Case, nowMs: number): ExplanationStep[] {
  const untilMs = match?.standing ? match.firstDueMs : undefined;
  if (match === undefined || untilMs === undefined) return [];
  if (untilMs <= nowMs) return [step("delay", "passed", "the delay has ended", { timeMs: untilMs })];
  if (untilMs <= match.matchedMs + rule.delayMs)
    return [step("delay", "waiting", "the first notification waits for the end of the delay", { untilMs })];
  return [
    step("repeat", "waiting", "it began again before repeatInterval had elapsed, and waits until then", { untilMs }),
  ];
}

/** Says in which message it was, and which flush it waits for; what is silenced waits for none. */
function groupSteps(
  { match, memberships, deliveries }: Case,
  joins: boolean,
  silenced: boolean,
  nowMs: number,
): ExplanationStep[] {
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
  if (joins) steps.push(step("group", "waiting", "it is about to join the group of its labels"));
  for (const { sentTo, joinsMs, dueMs } of match?.standing ? memberships : []) {
    if (sentTo.length > 0) continue;
    if (joinsMs > nowMs)
      steps.push(step("delay", "waiting", "it joins its group at the end of the delay", { untilMs: joinsMs }));
    else if (dueMs !== null && !silenced)
      steps.push(step("group", "waiting", "it waits for the next message of its group", { untilMs: dueMs }));
  }
  return steps;
}

function repeatSteps({ match, rule, row }: Case, nowMs: number): ExplanationStep[] {
  if (!match?.standing || match.notifiedMs === undefined || match.notifiedMs > nowMs) return [];
  const timeMs = match.notifiedMs;
  const untilMs = repeatMs(rule, match);
  const reason = repeatReason(rule, match, { again: false, now: row }, nowMs);
  const byClock = rule.repeatWhile !== RepeatWhile.UNSPECIFIED;
  if (reason === undefined || (byClock && reason === "tooEarly"))
    return [step("repeat", "waiting", "it was decided then, and is repeated by the clock", { timeMs, untilMs })];
  const more = reason === "tooEarly" ? { timeMs, untilMs } : { timeMs };
  return [reasonStep("repeat", reason === "unreported" ? "passed" : "stopped", reason, more)];
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

function outcomeOf(known: Case, matches: boolean, joins: boolean, silenced: boolean): Outcome {
  const { rule, match, chain, memberships, deliveries, unseenMs, aside } = known;
  if (ruleReason(rule) !== undefined) return Outcome.RULE_DISABLED;
  if (unseenMs !== undefined || aside !== undefined) return Outcome.WAITING;
  const own = deliveries.filter(({ createdMs }) => createdMs >= (match?.matchedMs ?? 0));
  const some = (...statuses: DeliveryRow["status"][]) => own.some(({ status }) => statuses.includes(status));
  if (match?.standing && match.muted) return Outcome.MUTED;
  // Whatever was sent of an earlier group: the one that it is in by its labels has not reported it.
  const waits = match?.standing && match.grouped && (joins || memberships.some(({ sentTo }) => sentTo.length === 0));
  if (waits) return silenced ? Outcome.SILENCED : Outcome.WAITING;
  if (some("HELD") || (silenced && match?.standing && !some("SENT", "SUMMARISED"))) return Outcome.SILENCED;
  if (some("PENDING")) return Outcome.WAITING;
  if (some("SENT", "SUMMARISED")) return Outcome.NOTIFIED;
  if (some("CANCELLED", "FAILED")) return Outcome.CANCELLED;
  if (!matches && !match?.standing) return Outcome.NOT_MATCHED;
  return match?.standing || chainReason(chain, rule.name) !== undefined ? Outcome.SUPPRESSED : Outcome.WAITING;
}
