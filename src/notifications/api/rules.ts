import { create } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import { and, eq, exists, gt, sql } from "drizzle-orm";
import { QueryBuilder } from "drizzle-orm/pg-core";
import { FieldRule } from "#gen/belfry/errors/v1/reasons_pb.ts";
import {
  RepeatWhile,
  type Rule,
  type Grouping as RuleGrouping,
  RuleSchema,
} from "#gen/belfry/notifications/v1/rule_pb.ts";
import {
  CreateRuleResponseSchema,
  DeleteRuleResponseSchema,
  GetRuleResponseSchema,
  type ListRulesRequest,
  ListRulesRequestSchema,
  ListRulesResponseSchema,
  type RuleService,
  UpdateRuleResponseSchema,
} from "#gen/belfry/notifications/v1/rule_service_pb.ts";
import { joinedTroubles, readMatchers } from "../../clause/label-matcher.ts";
import { checkQuota, heldBytes, type Kept, type QuotaBounds } from "../../db/admission-quota.ts";
import { textArray } from "../../db/batch.ts";
import { databaseNowMs } from "../../db/columns.ts";
import type { Db } from "../../db/connect.ts";
import { orm } from "../../db/orm.ts";
import { transaction } from "../../db/transaction.ts";
import { alreadyExists, invalidField, notFound } from "../../errors.ts";
import { principalOf } from "../../rpc/context.ts";
import { checkEtag } from "../../rpc/etag.ts";
import { normalizedName } from "../../rpc/name-rules.ts";
import { changedFields, withChanges } from "../../rpc/update-mask.ts";
import { afterRuleChange } from "../deciding/after-rule-change.ts";
import { releaseEnds } from "../deciding/enqueue.ts";
import { forgetGroups } from "../groups/group-store.ts";
import { withinComparisons } from "../rules/comparisons.ts";
import { allLabels, type Grouping } from "../rules/grouping.ts";
import { forgetRule } from "../rules/match-store.ts";
import { ruleDestinations, rules, ruleTriggers } from "../rules/tables.ts";
import { brokenTemplate } from "../templates/template.ts";
import { matchingAlertsAlone } from "./alert-matches.ts";
import { contains, listByName, oneContains, type Part } from "./list-columns.ts";
import { type ShownRule, toRule } from "./messages.ts";
import { forgetCounts, recentNotifications } from "./recent-counts.ts";
import { setDestinations, setTriggers } from "./rule-members.ts";
import { recordKinds, repeatIntervalDefault } from "./troubles.ts";

const query = new QueryBuilder();
const triggersOfRow = (tenantId: string) =>
  and(eq(ruleTriggers.tenantId, tenantId), eq(ruleTriggers.ruleName, rules.name));
const destinationsOfRow = (tenantId: string) =>
  and(eq(ruleDestinations.tenantId, tenantId), eq(ruleDestinations.ruleName, rules.name));
const triggerNames = (tenantId: string) =>
  query
    .select({ name: ruleTriggers.triggerName })
    .from(ruleTriggers)
    .where(triggersOfRow(tenantId))
    .orderBy(ruleTriggers.place);
const destinationNames = (tenantId: string) =>
  query
    .select({ name: ruleDestinations.destinationName })
    .from(ruleDestinations)
    .where(destinationsOfRow(tenantId))
    .orderBy(ruleDestinations.place);
// One look by the key for each destination: a join, or an exists, may be planned as a read of all that the tenant has.
const destinationKinds = (tenantId: string) =>
  query
    .select({
      kind: sql`(select d.kind from destinations d where d.tenant_id = ${tenantId} and d.name = ${ruleDestinations.destinationName})`,
    })
    .from(ruleDestinations)
    .where(destinationsOfRow(tenantId));

const columnsOf = (tenantId: string) => ({
  id: rules.id,
  name: rules.name,
  description: rules.description,
  enabled: rules.enabled,
  message: rules.message,
  repeat: rules.repeat,
  repeatIntervalSec: rules.repeatIntervalSec,
  delaySec: rules.delaySec,
  repeatWhile: rules.repeatWhile,
  sendUpdates: rules.sendUpdates,
  muteDuringMaintenance: rules.muteDuringMaintenance,
  tags: rules.tags,
  matchers: rules.matchers,
  grouping: rules.grouping,
  triggerNames: sql<string[]>`array${triggerNames(tenantId)}`,
  destinationNames: sql<string[]>`array${destinationNames(tenantId)}`,
  hasOpenRecords: sql<boolean>`array${destinationKinds(tenantId)} && ${textArray([...recordKinds])}::text[]`,
  recentNotificationCount: recentNotifications(tenantId, "rule", rules),
});

const named = (tenantId: string, name: string) =>
  and(eq(rules.tenantId, tenantId), eq(rules.name, normalizedName(name)));

/** What the table of rules holds of one. */
function valuesOf(rule: Rule) {
  const { description, enabled, message, repeat, repeatWhile, sendUpdates, muteDuringMaintenance, tags, matchers } =
    rule;
  const repeatIntervalSec = rule.repeatInterval ?? repeatIntervalDefault;
  const delaySec = Number(rule.delaySec);
  const grouping = rule.grouping === undefined ? null : groupingOf(rule.grouping);
  return {
    description,
    enabled,
    message,
    repeat,
    repeatWhile,
    repeatIntervalSec,
    delaySec,
    sendUpdates,
    muteDuringMaintenance,
    tags,
    matchers,
    grouping,
  };
}

/** Seconds before a group is sent first, and between its messages, where a rule does not say. */
const [waitDefault, intervalDefault] = [30n, 300n];

const groupingOf = ({ by, waitSec = waitDefault, intervalSec = intervalDefault }: RuleGrouping): Grouping => ({
  by,
  waitSec: Number(waitSec),
  intervalSec: Number(intervalSec),
});

/** What may change with how many texts a rule compares events. */
const comparing = ["enabled", "triggerNames", "destinationNames", "matchers"] as const;

/** What may end matches, or have them notified again. */
const ruling = [
  "enabled",
  "triggerNames",
  "destinationNames",
  "matchers",
  "repeat",
  "repeatInterval",
  "repeatWhile",
  "grouping",
  "muteDuringMaintenance",
] as const;

/** Whether, and why, what the rule matches is looked at after these members have changed. */
function lookAfter({ enabled, destinationNames }: Rule, members: ReadonlySet<keyof Rule>) {
  if (!ruling.some((member) => members.has(member))) return undefined;
  return enabled && destinationNames.length > 0 ? "changed" : "enabled";
}

type Notifying = Pick<Rule, "enabled" | "destinationNames">;

/** The destinations that a rule has notified and notifies no more. */
function leftBy(before: Notifying, after?: Notifying): string[] {
  const kept = after?.enabled ? after.destinationNames : [];
  return before.enabled ? before.destinationNames.filter((name) => !kept.includes(name)) : [];
}

/** What a rule that is sent must hold beyond the rules of its proto file. */
function checkRule(rule: Rule): void {
  checkMessage(rule);
  readMatchers(rule.matchers, "rule.matchers");
  checkRepetition(rule);
  checkGrouping(rule);
}

/** @throws code 3 for labels that make no groups, and for repetitions that have no meaning for a group */
function checkGrouping({ grouping, repeat, repeatWhile }: Rule): void {
  if (grouping === undefined) return;
  const { by } = grouping;
  for (const [i, name] of by.entries()) {
    const path = `rule.grouping.by[${i}]`;
    if (name === allLabels && by.length > 1)
      throw invalidField(path, "must be alone: it stands for all labels", FieldRule.EXCLUDED);
    if (by.indexOf(name) < i) throw invalidField(path, "is given twice", FieldRule.EXCLUDED);
  }
  if (repeat && repeatWhile === RepeatWhile.UNSPECIFIED)
    throw invalidField(
      "rule.repeatWhile",
      "must be given beside grouping and repeat: a group repeats by the clock",
      FieldRule.REQUIRED,
    );
}

/** @throws code 3 when the message is no template */
function checkMessage({ message }: Rule, stored?: string): void {
  const broken = brokenTemplate(message, stored);
  if (broken !== undefined) throw invalidField("rule.message", broken, FieldRule.TEMPLATE);
}

/** @throws code 3 when the rule repeats by the clock without an interval */
function checkRepetition({ repeat, repeatInterval, repeatWhile }: Rule): void {
  if (repeatWhile === RepeatWhile.UNSPECIFIED) return;
  if (!repeat) throw invalidField("rule.repeatWhile", "needs repeat", FieldRule.REQUIRED);
  if (repeatInterval === 0n)
    throw invalidField("rule.repeatInterval", "must be at least 1 beside repeatWhile", FieldRule.RANGE);
}

/** A trigger shows the names of its rules, too: a pair counts with both names. */
const kept: Kept = {
  things: "rules",
  table: "rules",
  key: "name",
  columns: ["name", "description", "message", "tags", "matchers"],
  with: [
    { table: "rule_triggers", key: "rule_name", columns: ["rule_name", "trigger_name"] },
    { table: "rule_destinations", key: "rule_name", columns: ["rule_name", "destination_name"] },
  ],
};

/** What ties triggers to destinations. */
export function ruleService(db: Db, bounds: QuotaBounds): Partial<ServiceImpl<typeof RuleService>> {
  return {
    async createRule({ rule = create(RuleSchema) }, context) {
      const { tenantId } = principalOf(context);
      const { name } = rule;
      checkRule(rule);
      return await transaction(db, async (tx) => {
        const values = valuesOf(rule);
        const made = await orm(tx)
          .insert(rules)
          .values({ tenantId, name, ...values, createdMs: databaseNowMs })
          .onConflictDoNothing({ target: [rules.tenantId, rules.name] })
          .returning({ name: rules.name });
        if (made.length === 0) throw alreadyExists("rule", name);
        const set = () => setMembers(tx, tenantId, { ...rule, name });
        await (rule.enabled ? withinComparisons(tx, tenantId, { rule: name }, set) : set());
        await checkQuota(tx, tenantId, kept, name, bounds);
        await afterRuleChange(tx, context, "rule", name);
        return create(CreateRuleResponseSchema, { rule: saidOff(await readRule(tx, tenantId, name)) });
      });
    },

    async getRule({ name }, context) {
      return create(GetRuleResponseSchema, { rule: await readRule(db, principalOf(context).tenantId, name) });
    },

    async listRules(request, context) {
      const { tenantId } = principalOf(context);
      const { items, ...page } = await listRules(db, tenantId, request);
      return create(ListRulesResponseSchema, { ...page, rules: await shownRules(db, tenantId, items) });
    },

    async updateRule({ rule: sent = create(RuleSchema), updateMask }, context) {
      const { tenantId } = principalOf(context);
      const name = normalizedName(sent.name);
      const own = named(tenantId, name);
      const members = changedFields(RuleSchema, sent, updateMask);
      if (members.has("matchers")) readMatchers(sent.matchers, "rule.matchers");
      return await transaction(db, async (tx) => {
        const [row] = await orm(tx).select(columnsOf(tenantId)).from(rules).where(own).for("no key update");
        if (row === undefined) throw notFound("rule", name);
        if (members.has("message")) checkMessage(sent, row.message);
        const rule = withChanges(checkEtag("rule", name, sent, RuleSchema, toRule(row)), sent, members);
        checkRepetition(rule);
        checkGrouping(rule);
        const values = valuesOf(rule);
        const heldBefore = await heldBytes(tx, tenantId, kept, name);
        const write = async () => {
          await orm(tx).update(rules).set(values).where(own);
          return await setMembers(tx, tenantId, rule, members);
        };
        const compares = (row.enabled || rule.enabled) && comparing.some((member) => members.has(member));
        const used = compares ? await withinComparisons(tx, tenantId, { rule: name }, write) : await write();
        await checkQuota(tx, tenantId, kept, name, bounds, heldBefore);
        await releaseEnds(tx, tenantId, leftBy(row, { ...rule, ...used }));
        await afterRuleChange(tx, context, "rule", name, lookAfter(toRule(row), members));
        const changed = await readRule(tx, tenantId, name);
        return create(UpdateRuleResponseSchema, { rule: members.has("enabled") ? changed : saidOff(changed) });
      });
    },

    async deleteRule({ name }, context) {
      const { tenantId } = principalOf(context);
      return await transaction(db, async (tx) => {
        // Its triggers and destinations are free with it, by their foreign keys.
        const own = named(tenantId, name);
        const [row] = await orm(tx).select(columnsOf(tenantId)).from(rules).where(own).for("update");
        if (row === undefined) throw notFound("rule", name);
        const remove = async () => void (await orm(tx).delete(rules).where(own));
        await (row.enabled ? withinComparisons(tx, tenantId, { rule: row.name }, remove) : remove());
        await forgetRule(tx, tenantId, row.id);
        await forgetGroups(tx, tenantId, row.id);
        await releaseEnds(tx, tenantId, leftBy(row));
        await forgetCounts(tx, tenantId, "rule", row.name);
        await afterRuleChange(tx, context, "rule", name);
        return create(DeleteRuleResponseSchema, { rule: toRule(row) });
      });
    },
  };
}

/** A rule that was just stored, and may be off because its request left that out: of a stored row nobody knows. */
function saidOff(rule: Rule): Rule {
  const off = rule.enabled ? "" : "it is off: enabled was left out, or false";
  return { ...rule, trouble: joinedTroubles([off, rule.trouble]) };
}

/** @throws code 5 */
async function readRule(db: Db, tenantId: string, name: string): Promise<Rule> {
  const [row] = await orm(db).select(columnsOf(tenantId)).from(rules).where(named(tenantId, name));
  const [rule] = await shownRules(db, tenantId, row === undefined ? [] : [row]);
  if (rule === undefined) throw notFound("rule", name);
  return rule;
}

async function shownRules(db: Db, tenantId: string, rows: readonly ShownRule[]): Promise<Rule[]> {
  const repeating = rows.filter(({ repeat, repeatWhile }) => repeat && !repeatWhile);
  const ids = repeating.map(({ id }) => id);
  const alertsAlone = await matchingAlertsAlone(db, tenantId, ids);
  return rows.map((row) => toRule(row, alertsAlone));
}

/**
 * Sets the triggers and destinations of a rule whose row is new or locked, those of both that changed, and answers both.
 * @throws code 3 for names that there are none of
 */
async function setMembers(
  tx: Db,
  tenantId: string,
  rule: Rule,
  members: ReadonlySet<keyof Rule> = new Set(["triggerNames", "destinationNames"]),
) {
  let { triggerNames, destinationNames } = rule;
  if (members.has("triggerNames")) triggerNames = await setTriggers(tx, tenantId, rule);
  if (members.has("destinationNames")) destinationNames = await setDestinations(tx, tenantId, rule);
  return { triggerNames, destinationNames };
}

async function listRules(db: Db, tenantId: string, request: ListRulesRequest) {
  const { enabled, repeat, repeatInterval, delaySec, sendUpdates } = request;
  const one = { one: sql`1` };
  const usesTrigger = (text: string) =>
    exists(
      query
        .select(one)
        .from(ruleTriggers)
        .where(and(triggersOfRow(tenantId), contains(ruleTriggers.triggerName, text))),
    );
  const usesDestination = (text: string) => {
    const found = and(destinationsOfRow(tenantId), contains(ruleDestinations.destinationName, text));
    return exists(query.select(one).from(ruleDestinations).where(found));
  };
  const matching = and(
    eq(rules.tenantId, tenantId),
    contains(rules.name, request.name),
    contains(rules.description, request.description),
    contains(rules.message, request.message),
    enabled === undefined ? undefined : eq(rules.enabled, enabled),
    repeat === undefined ? undefined : eq(rules.repeat, repeat),
    repeatInterval === undefined ? undefined : eq(rules.repeatIntervalSec, repeatInterval),
    delaySec === undefined ? undefined : sql`${rules.delaySec} = ${delaySec}::bigint`,
    sendUpdates === undefined ? undefined : eq(rules.sendUpdates, sendUpdates),
    ...request.triggerNames.map(usesTrigger),
    ...request.destinationNames.map(usesDestination),
    ...request.tags.map((tag) => oneContains(rules.tags, tag)),
  );
  const read = ({ after, limit }: Part) =>
    orm(db)
      .select(columnsOf(tenantId))
      .from(rules)
      .where(and(matching, gt(rules.name, after)))
      .orderBy(rules.name)
      .limit(limit);
  const total = () => orm(db).$count(rules, matching);
  return await listByName(ListRulesRequestSchema, tenantId, request, read, total);
}
