import { create, toJson } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import { and, eq, exists, gt, sql } from "drizzle-orm";
import { QueryBuilder } from "drizzle-orm/pg-core";
import { type Trigger, TriggerSchema, TriggerTypeSchema } from "#gen/belfry/notifications/v1/trigger_pb.ts";
import {
  CreateTriggerResponseSchema,
  DeleteTriggerResponseSchema,
  GetTriggerResponseSchema,
  type ListTriggersRequest,
  ListTriggersRequestSchema,
  ListTriggersResponseSchema,
  type TriggerService,
  UpdateTriggerResponseSchema,
} from "#gen/belfry/notifications/v1/trigger_service_pb.ts";
import { checkQuota, heldBytes, type Kept, type QuotaBounds } from "../../db/admission-quota.ts";
import { databaseNowMs } from "../../db/columns.ts";
import type { Db } from "../../db/connect.ts";
import { orm } from "../../db/orm.ts";
import { transaction } from "../../db/transaction.ts";
import { alreadyExists, inUse, notFound } from "../../errors.ts";
import { principalOf } from "../../rpc/context.ts";
import { checkEtag } from "../../rpc/etag.ts";
import { normalizedName } from "../../rpc/name-rules.ts";
import { changedFields, withChanges } from "../../rpc/update-mask.ts";
import { afterRuleChange } from "../deciding/after-rule-change.ts";
import { onTriggerChange, triggerTroubles } from "../deciding/sources.ts";
import { withinComparisons } from "../rules/comparisons.ts";
import { checkTriggerType, comparisonsOf } from "../rules/sources.ts";
import { ruleTriggers, triggers } from "../rules/tables.ts";
import { contains, listByName, oneContains, type Part } from "./list-columns.ts";
import { toTrigger } from "./messages.ts";
import { forgetCounts, recentNotifications } from "./recent-counts.ts";
import { inRules, usersNamed } from "./references.ts";

const ofRow = (tenantId: string) =>
  and(eq(ruleTriggers.tenantId, tenantId), eq(ruleTriggers.triggerName, triggers.name));
const query = new QueryBuilder();
const ruleNames = (tenantId: string) =>
  query
    .select({ name: ruleTriggers.ruleName })
    .from(ruleTriggers)
    .where(ofRow(tenantId))
    .orderBy(ruleTriggers.ruleName);

const columnsOf = (tenantId: string) => ({
  name: triggers.name,
  description: triggers.description,
  tags: triggers.tags,
  type: triggers.type,
  ruleNames: sql<string[]>`array${ruleNames(tenantId)}`,
  recentNotificationCount: recentNotifications(tenantId, "trigger", triggers),
});

const named = (tenantId: string, name: string) =>
  and(eq(triggers.tenantId, tenantId), eq(triggers.name, normalizedName(name)));

/** What is stored of a trigger that is checked; its type is there (REQUIRED). */
function valuesOf({ description, tags, type = create(TriggerTypeSchema) }: Trigger) {
  return {
    description,
    tags,
    source: type.source.case ?? "",
    type: toJson(TriggerTypeSchema, type),
    comparisons: comparisonsOf(type),
  };
}

const kept: Kept = {
  things: "triggers",
  table: "triggers",
  key: "name",
  columns: ["name", "description", "tags", "type"],
};

/** The conditions that rules wait for. */
export function triggerService(db: Db, bounds: QuotaBounds): Partial<ServiceImpl<typeof TriggerService>> {
  /** @throws code 5 when there is none; code 9 when it grows too large */
  async function updateRow(tx: Db, tenantId: string, sent: Trigger, members: ReadonlySet<keyof Trigger>) {
    const own = named(tenantId, sent.name);
    const [row] = await orm(tx).select(columnsOf(tenantId)).from(triggers).where(own).for("no key update");
    if (row === undefined) throw notFound("trigger", sent.name);
    const before = checkEtag("trigger", sent.name, sent, TriggerSchema, toTrigger(row));
    const trigger = withChanges(before, sent, members);
    const name = normalizedName(sent.name);
    const heldBefore = await heldBytes(tx, tenantId, kept, name);
    await orm(tx).update(triggers).set(valuesOf(trigger)).where(own);
    await checkQuota(tx, tenantId, kept, name, bounds, heldBefore);
    if (before.type !== undefined && trigger.type !== undefined)
      await onTriggerChange(tx, tenantId, name, { before: before.type, after: trigger.type });
    return toTrigger({ ...row, ...(await storedState(tx, tenantId, sent.name)) });
  }

  return {
    async createTrigger({ trigger = create(TriggerSchema) }, context) {
      const { tenantId } = principalOf(context);
      const { name } = trigger;
      checkTriggerType(trigger.type, "trigger.type");
      return await transaction(db, async (tx) => {
        const made = await orm(tx)
          .insert(triggers)
          .values({ tenantId, name, ...valuesOf(trigger), createdMs: databaseNowMs })
          .onConflictDoNothing({ target: [triggers.tenantId, triggers.name] })
          .returning({ name: triggers.name });
        if (made.length === 0) throw alreadyExists("trigger", name);
        await checkQuota(tx, tenantId, kept, name, bounds);
        await afterRuleChange(tx, context, "trigger", name);
        const row = { name, ...(await storedState(tx, tenantId, name)), ruleNames: [], recentNotificationCount: 0n };
        return create(CreateTriggerResponseSchema, { trigger: toTrigger(row) });
      });
    },

    async getTrigger({ name }, context) {
      const { tenantId } = principalOf(context);
      const [row] = await orm(db).select(columnsOf(tenantId)).from(triggers).where(named(tenantId, name));
      if (row === undefined) throw notFound("trigger", name);
      const troubles = await triggerTroubles(db, tenantId);
      return create(GetTriggerResponseSchema, { trigger: toTrigger(row, troubles) });
    },

    async listTriggers(request, context) {
      const { tenantId } = principalOf(context);
      const [{ items, ...page }, troubles] = await Promise.all([
        listTriggers(db, tenantId, request),
        triggerTroubles(db, tenantId),
      ]);
      return create(ListTriggersResponseSchema, {
        ...page,
        triggers: items.map((row) => toTrigger(row, troubles)),
      });
    },

    async updateTrigger({ trigger: sent = create(TriggerSchema), updateMask }, context) {
      const { tenantId } = principalOf(context);
      const { name } = sent;
      const members = changedFields(TriggerSchema, sent, updateMask);
      if (members.has("type")) checkTriggerType(sent.type, "trigger.type");
      return await transaction(db, async (tx) => {
        const update = () => updateRow(tx, tenantId, sent, members);
        const trigger = members.has("type")
          ? await withinComparisons(tx, tenantId, { trigger: normalizedName(name) }, update)
          : await update();
        await afterRuleChange(tx, context, "trigger", name, members.has("type") ? "changed" : undefined);
        return create(UpdateTriggerResponseSchema, { trigger });
      });
    },

    async deleteTrigger({ name }, context) {
      await transaction(db, async (tx) => {
        await deleteTrigger(tx, principalOf(context).tenantId, name);
        await afterRuleChange(tx, context, "trigger", name);
      });
      return create(DeleteTriggerResponseSchema);
    },
  };
}

async function listTriggers(db: Db, tenantId: string, request: ListTriggersRequest) {
  const ofRule = contains(ruleTriggers.ruleName, request.ruleNames);
  const matching = and(
    eq(triggers.tenantId, tenantId),
    contains(triggers.name, request.name),
    contains(triggers.description, request.description),
    contains(triggers.source, request.type),
    oneContains(triggers.tags, request.tags),
    ofRule &&
      exists(
        query
          .select({ one: sql`1` })
          .from(ruleTriggers)
          .where(and(ofRow(tenantId), ofRule)),
      ),
  );
  const read = ({ after, limit }: Part) =>
    orm(db)
      .select(columnsOf(tenantId))
      .from(triggers)
      .where(and(matching, gt(triggers.name, after)))
      .orderBy(triggers.name)
      .limit(limit);
  const total = () => orm(db).$count(triggers, matching);
  return await listByName(ListTriggersRequestSchema, tenantId, request, read, total);
}

/** Deletes a trigger that no rule uses. @throws code 5; code 9 when one does */
async function deleteTrigger(tx: Db, tenantId: string, name: string): Promise<void> {
  const own = named(tenantId, name);
  // Locked first: a rule that begins to use it meanwhile waits, and then finds it gone.
  const locked = await orm(tx).select({ name: triggers.name }).from(triggers).where(own).for("update");
  if (locked.length === 0) throw notFound("trigger", name);
  const users = await orm(tx)
    .select({ name: ruleTriggers.ruleName })
    .from(ruleTriggers)
    .where(and(eq(ruleTriggers.tenantId, tenantId), eq(ruleTriggers.triggerName, normalizedName(name))))
    .orderBy(ruleTriggers.ruleName)
    .limit(usersNamed + 1);
  if (users.length > 0) throw inUse("trigger", name, inRules(users));
  await orm(tx).delete(triggers).where(own);
  await forgetCounts(tx, tenantId, "trigger", normalizedName(name));
}

/** What the database has made of what was just stored: its JSON is in another order than what was sent. */
async function storedState(tx: Db, tenantId: string, name: string) {
  const { description, tags, type } = triggers;
  const [row] = await orm(tx).select({ description, tags, type }).from(triggers).where(named(tenantId, name));
  if (row === undefined) throw notFound("trigger", name);
  return row;
}
