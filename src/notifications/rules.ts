import { create } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import { and, eq, exists, gt, sql } from "drizzle-orm";
import { QueryBuilder } from "drizzle-orm/pg-core";
import { type Rule, RuleSchema } from "#gen/belfry/notifications/v1/rule_pb.ts";
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
import { databaseNowMs } from "../db/columns.ts";
import type { Db } from "../db/connect.ts";
import { orm } from "../db/orm.ts";
import { type Bounds, checkRoom, heldBytes, type Kept } from "../db/room.ts";
import { transaction } from "../db/transaction.ts";
import { alreadyExists, invalidField, notFound } from "../errors.ts";
import { principalOf } from "../rpc/context.ts";
import { foundBy } from "../rpc/names.ts";
import { changedFields, withChanges } from "../rpc/update-mask.ts";
import { changed } from "./changed.ts";
import { withinComparisons } from "./comparisons.ts";
import { contains, listByName, oneContains, type Part } from "./lists.ts";
import { forgetRule } from "./matches.ts";
import { toRule } from "./messages.ts";
import { recentNotifications } from "./recent.ts";
import { setDestinations, setTriggers } from "./rule-members.ts";
import { ruleDestinations, rules, ruleTriggers } from "./tables.ts";
import { brokenTemplate } from "./template.ts";

/** Seconds between repetitions where a rule does not say. */
const repeatIntervalDefault = 3600n;

const query = new QueryBuilder();
const triggersOfRow = and(eq(ruleTriggers.tenantId, rules.tenantId), eq(ruleTriggers.ruleName, rules.name));
const destinationsOfRow = and(eq(ruleDestinations.tenantId, rules.tenantId), eq(ruleDestinations.ruleName, rules.name));
const triggerNames = query
  .select({ name: ruleTriggers.triggerName })
  .from(ruleTriggers)
  .where(triggersOfRow)
  .orderBy(ruleTriggers.place);
const destinationNames = query
  .select({ name: ruleDestinations.destinationName })
  .from(ruleDestinations)
  .where(destinationsOfRow)
  .orderBy(ruleDestinations.place);

const columns = {
  name: rules.name,
  description: rules.description,
  enabled: rules.enabled,
  message: rules.message,
  repeat: rules.repeat,
  repeatIntervalSec: rules.repeatIntervalSec,
  delaySec: rules.delaySec,
  sendUpdates: rules.sendUpdates,
  muteDuringMaintenance: rules.muteDuringMaintenance,
  tags: rules.tags,
  triggerNames: sql<string[]>`array${triggerNames}`,
  destinationNames: sql<string[]>`array${destinationNames}`,
  recentNotificationCount: recentNotifications("rule", rules),
};

const named = (tenantId: string, name: string) => and(eq(rules.tenantId, tenantId), eq(rules.name, foundBy(name)));

/** What the table of rules holds of one. */
function valuesOf({ description, enabled, message, repeat, sendUpdates, muteDuringMaintenance, tags, ...rule }: Rule) {
  const repeatIntervalSec = rule.repeatInterval ?? repeatIntervalDefault;
  const delaySec = Number(rule.delaySec);
  return {
    description,
    enabled,
    message,
    repeat,
    repeatIntervalSec,
    delaySec,
    sendUpdates,
    muteDuringMaintenance,
    tags,
  };
}

/** What may make a rule compare events with more texts. */
const growths = ["enabled", "triggerNames", "destinationNames"] as const;

/** @throws code 3 when the message is no template */
function checkMessage({ message }: Rule): void {
  const broken = brokenTemplate(message);
  if (broken !== undefined) throw invalidField("rule.message", broken);
}

/** A trigger shows the names of its rules, too: a pair counts with both names. */
const kept: Kept = {
  things: "rules",
  table: "rules",
  columns: ["name", "description", "message", "tags"],
  with: [
    { table: "rule_triggers", columns: ["rule_name", "trigger_name"] },
    { table: "rule_destinations", columns: ["rule_name", "destination_name"] },
  ],
};

/** What ties triggers to destinations. */
export function ruleService(db: Db, bounds: Bounds): Partial<ServiceImpl<typeof RuleService>> {
  return {
    async createRule({ rule = create(RuleSchema) }, context) {
      const { tenantId } = principalOf(context);
      const { name } = rule;
      checkMessage(rule);
      return await transaction(db, async (tx) => {
        const values = valuesOf(rule);
        const made = await orm(tx)
          .insert(rules)
          .values({ tenantId, name, ...values, createdMs: databaseNowMs })
          .onConflictDoNothing({ target: [rules.tenantId, rules.name] })
          .returning({ name: rules.name });
        if (made.length === 0) throw alreadyExists("rule", name);
        const set = () => setMembers(tx, tenantId, { ...rule, name });
        const members = rule.enabled ? await withinComparisons(tx, tenantId, set) : await set();
        await checkRoom(tx, tenantId, kept, bounds);
        await changed(tx, context, "rule", name);
        return create(CreateRuleResponseSchema, {
          rule: toRule({ name, ...values, ...members, recentNotificationCount: 0n }),
        });
      });
    },

    async getRule({ name }, context) {
      const [row] = await orm(db)
        .select(columns)
        .from(rules)
        .where(named(principalOf(context).tenantId, name));
      if (row === undefined) throw notFound("rule", name);
      return create(GetRuleResponseSchema, { rule: toRule(row) });
    },

    async listRules(request, context) {
      const { items, ...page } = await listRules(db, principalOf(context).tenantId, request);
      return create(ListRulesResponseSchema, { ...page, rules: items.map(toRule) });
    },

    async updateRule({ rule: sent = create(RuleSchema), updateMask }, context) {
      const { tenantId } = principalOf(context);
      const name = foundBy(sent.name);
      const own = named(tenantId, name);
      const members = changedFields(RuleSchema, sent, updateMask);
      if (members.has("message")) checkMessage(sent);
      return await transaction(db, async (tx) => {
        const [row] = await orm(tx).select(columns).from(rules).where(own).for("no key update");
        if (row === undefined) throw notFound("rule", name);
        const rule = withChanges(toRule(row), sent, members);
        const values = valuesOf(rule);
        const heldBefore = await heldBytes(tx, tenantId, kept);
        const write = async () => {
          await orm(tx).update(rules).set(values).where(own);
          return await setMembers(tx, tenantId, rule, members);
        };
        const growing = rule.enabled && growths.some((member) => members.has(member));
        const used = growing ? await withinComparisons(tx, tenantId, write) : await write();
        await checkRoom(tx, tenantId, kept, bounds, heldBefore);
        await changed(tx, context, "rule", name);
        return create(UpdateRuleResponseSchema, { rule: toRule({ ...row, ...values, ...used }) });
      });
    },

    async deleteRule({ name }, context) {
      const { tenantId } = principalOf(context);
      return await transaction(db, async (tx) => {
        // Its triggers and destinations are free with it, by their foreign keys.
        const [row] = await orm(tx)
          .delete(rules)
          .where(named(tenantId, name))
          .returning({ ...columns, id: rules.id });
        if (row === undefined) throw notFound("rule", name);
        await forgetRule(tx, tenantId, row.id);
        await changed(tx, context, "rule", name);
        return create(DeleteRuleResponseSchema, { rule: toRule(row) });
      });
    },
  };
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
        .where(and(triggersOfRow, contains(ruleTriggers.triggerName, text))),
    );
  const usesDestination = (text: string) => {
    const found = and(destinationsOfRow, contains(ruleDestinations.destinationName, text));
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
      .select(columns)
      .from(rules)
      .where(and(matching, gt(rules.name, after)))
      .orderBy(rules.name)
      .limit(limit);
  const total = () => orm(db).$count(rules, matching);
  return await listByName(ListRulesRequestSchema, tenantId, request, read, total);
}
