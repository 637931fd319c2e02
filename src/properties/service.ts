import { create } from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type { Clause } from "#gen/belfry/clause/v1/clause_pb.ts";
import { FieldRule } from "#gen/belfry/errors/v1/reasons_pb.ts";
import {
  type CustomPropertyService,
  DeleteCustomPropertiesResponseSchema,
  type EntitySelection,
  SetCustomPropertiesResponseSchema,
} from "#gen/belfry/properties/v1/custom_property_service_pb.ts";
import {
  CreateCustomPropertyUpdatersResponseSchema,
  type CustomPropertyUpdaterService,
  DeleteCustomPropertyUpdatersResponseSchema,
  ReplaceCustomPropertyUpdatersResponseSchema,
  SwitchCustomPropertyUpdatersResponseSchema,
  UpdaterAction,
} from "#gen/belfry/properties/v1/custom_property_updater_service_pb.ts";
import type { Principal } from "../auth/principal.ts";
import { toMatching } from "../clause/to-sql.ts";
import type { QuotaBounds } from "../db/admission-quota.ts";
import type { Db } from "../db/connect.ts";
import { transaction } from "../db/transaction.ts";
import { type BatchedWrite, portionMax } from "../entities/batched-writes.ts";
import { deleteCustomProperties, setCustomProperties } from "../entities/custom-properties.ts";
import { entityResolver } from "../entities/fields.ts";
import { invalidField, invalidFields } from "../errors.ts";
import { principalOf } from "../rpc/context.ts";
import { audited } from "../tenants/audit.ts";
import { listUpdaters } from "./list.ts";
import { expectEnabled } from "./updater-set.ts";
import { createUpdaters, deleteUpdaters, type ItemResult, replaceUpdaters, switchUpdaters } from "./updaters.ts";
import { brokenProperties } from "./values.ts";

/** SQL that holds for the entities that a request selects. */
function selected(db: Db, { tenantId, tenantName }: Principal, { selection }: EntitySelection) {
  const resolver = entityResolver(tenantId, { tenantName });
  if (selection.case === "withIds") return { sql: resolver.withIds(db, selection.value.ids), sources: [] };
  return toMatching(db, selection.value?.clause as Clause, "input.query.clause", resolver);
}

const counted = (count: number, names: readonly string[]) =>
  `${count} ${count === 1 ? "entity" : "entities"}: ${names.length === 0 ? "all" : names.join(",")}`;

/** @param fieldsMax how many names of fields of a tenant are known */
export function customPropertyService(
  db: Db,
  nowMs: () => number,
  fieldsMax: number,
): Partial<ServiceImpl<typeof CustomPropertyService>> {
  const writingOf = (
    context: HandlerContext,
    { selection }: EntitySelection,
    names: readonly string[],
  ): BatchedWrite => ({
    nowMs: nowMs(),
    signal: context.signal,
    fieldsMax,
    few: selection.case === "withIds" && selection.value.ids.length <= portionMax,
    audit: (tx, count) => audited(tx, context, counted(count, names)),
  });
  return {
    async setCustomProperties({ input, properties = {} }, context) {
      const broken = brokenProperties(properties, "properties");
      if (broken.length > 0) throw invalidFields(broken);
      const { tenantId } = principalOf(context);
      const matching = selected(db, principalOf(context), input as EntitySelection);
      const names = Object.keys(properties);
      const writing = writingOf(context, input as EntitySelection, names);
      const entityIds = await setCustomProperties(db, tenantId, matching, properties, writing);
      return create(SetCustomPropertiesResponseSchema, { entityIds });
    },

    async deleteCustomProperties({ input, propertyKeys }, context) {
      const { tenantId } = principalOf(context);
      const matching = selected(db, principalOf(context), input as EntitySelection);
      const keys = propertyKeys.length === 0 ? undefined : propertyKeys;
      const writing = writingOf(context, input as EntitySelection, propertyKeys);
      await deleteCustomProperties(db, tenantId, matching, keys, writing);
      return create(DeleteCustomPropertiesResponseSchema);
    },
  };
}

const itemsMax = 1000;

/** `wake` is called after the commit of a change that enqueues jobs. */
export function customPropertyUpdaterService(
  db: Db,
  bounds: QuotaBounds,
  nowMs: () => number,
  wake: () => void,
): Partial<ServiceImpl<typeof CustomPropertyUpdaterService>> {
  async function write(
    context: HandlerContext,
    enables: boolean,
    work: (tx: Db, tenantId: string) => Promise<ItemResult[]>,
  ): Promise<ItemResult[]> {
    const { tenantId } = principalOf(context);
    if (enables) await expectEnabled(db, tenantId);
    const results = await transaction(db, async (tx) => {
      const found = await work(tx, tenantId);
      const good = found.filter(({ error }) => error === "").map(({ id }) => id);
      await audited(tx, context, `${good.length} of ${found.length}: ${good.join(",")}`);
      return found;
    });
    if (enables) wake();
    return results;
  }

  const checkCount = (items: readonly unknown[]) => {
    if (items.length > itemsMax)
      throw invalidField("updaters", `must contain no more than ${itemsMax} items`, FieldRule.SIZE);
  };

  return {
    async createCustomPropertyUpdaters({ updaters }, context) {
      checkCount(updaters);
      const enables = updaters.some(({ enabled }) => enabled);
      const results = await write(context, enables, (tx, tenantId) =>
        createUpdaters(tx, tenantId, updaters, nowMs(), bounds),
      );
      return create(CreateCustomPropertyUpdatersResponseSchema, { results });
    },

    async replaceCustomPropertyUpdaters({ updaters }, context) {
      checkCount(updaters);
      const enables = updaters.some(({ enabled }) => enabled);
      const results = await write(context, enables, (tx, tenantId) =>
        replaceUpdaters(tx, tenantId, updaters, nowMs(), bounds),
      );
      return create(ReplaceCustomPropertyUpdatersResponseSchema, { results });
    },

    async deleteCustomPropertyUpdaters({ ids }, context) {
      const results = await write(context, false, (tx, tenantId) => deleteUpdaters(tx, tenantId, ids));
      return create(DeleteCustomPropertyUpdatersResponseSchema, { results });
    },

    listCustomPropertyUpdaters: (request, context) => listUpdaters(db, principalOf(context).tenantId, request),

    async switchCustomPropertyUpdaters({ ids, action }, context) {
      const enabled = action === UpdaterAction.ENABLE;
      const results = await write(context, enabled, (tx, tenantId) =>
        switchUpdaters(tx, tenantId, ids, enabled, nowMs()),
      );
      return create(SwitchCustomPropertyUpdatersResponseSchema, { results });
    },
  };
}
