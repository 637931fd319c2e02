import { create } from "@bufbuild/protobuf";
import type { FieldMask } from "@bufbuild/protobuf/wkt";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import * as entityField from "#gen/belfry/dictionary/v1/entity_field_service_pb.ts";
import * as eventField from "#gen/belfry/dictionary/v1/event_field_service_pb.ts";
import * as metric from "#gen/belfry/dictionary/v1/metric_entry_service_pb.ts";
import { checkQuota, heldBytes, type Kept, type QuotaBounds } from "../db/admission-quota.ts";
import type { Db } from "../db/connect.ts";
import { transaction } from "../db/transaction.ts";
import { principalOf } from "../rpc/context.ts";
import { audited } from "../tenants/audit.ts";
import { createEntry, deleteEntry, type Entry, getEntries, getEntry, listEntries, updateEntry } from "./entries.ts";
import { type EntryKind, entityFields, eventFields, metrics } from "./kinds.ts";

/** The operations of a dictionary, whatever its kind; an entry is there in every request that has one (REQUIRED). */
function dictionary<E extends Entry>(db: Db, bounds: QuotaBounds, kind: EntryKind<E>) {
  const kept: Kept = {
    things: `${kind.title} entries`,
    table: "dictionary_entries",
    key: "name",
    columns: ["name", "entry"],
    only: { column: "kind", value: kind.key },
  };
  const within = (context: HandlerContext) => {
    const principal = principalOf(context);
    return [principal.tenantId, kind, kind.layerOf(principal)] as const;
  };

  /** Runs a write with its audit row. */
  async function written<T>(context: HandlerContext, name: string, write: (tx: Db) => Promise<T>): Promise<T> {
    return await transaction(db, async (tx) => {
      const answer = await write(tx);
      await audited(tx, context, name);
      return answer;
    });
  }

  return {
    get: (name: string, context: HandlerContext) => getEntry(db, ...within(context), name),
    getSeveral: (names: readonly string[], context: HandlerContext) => getEntries(db, ...within(context), names),
    list: (request: { pageSize: number; pageToken: string }, context: HandlerContext) =>
      listEntries(db, ...within(context), request),
    create: (entry: E | undefined, context: HandlerContext) =>
      written(context, (entry as E).name, async (tx) => {
        const made = await createEntry(tx, ...within(context), entry as E);
        await checkQuota(tx, principalOf(context).tenantId, kept, (entry as E).name, bounds);
        return made;
      }),
    update: (entry: E | undefined, mask: FieldMask | undefined, context: HandlerContext) =>
      written(context, (entry as E).name, async (tx) => {
        const { tenantId } = principalOf(context);
        const { name } = entry as E;
        const before = await heldBytes(tx, tenantId, kept, name);
        const changed = await updateEntry(tx, ...within(context), entry as E, mask);
        await checkQuota(tx, tenantId, kept, name, bounds, before);
        return changed;
      }),
    delete: (name: string, context: HandlerContext) =>
      written(context, name, (tx) => deleteEntry(tx, principalOf(context).tenantId, kind, name)),
  };
}

export function entityFieldDictionaryService(
  db: Db,
  bounds: QuotaBounds,
): Partial<ServiceImpl<typeof entityField.EntityFieldDictionaryService>> {
  const fields = dictionary(db, bounds, entityFields);
  return {
    async createEntityField(request, context) {
      const made = await fields.create(request.entityField, context);
      return create(entityField.CreateEntityFieldResponseSchema, { entityField: made });
    },
    async getEntityField({ name }, context) {
      return create(entityField.GetEntityFieldResponseSchema, { entityField: await fields.get(name, context) });
    },
    async listEntityFields(request, context) {
      const { entries, ...page } = await fields.list(request, context);
      return create(entityField.ListEntityFieldsResponseSchema, { ...page, entityFields: entries });
    },
    async updateEntityField(request, context) {
      const changed = await fields.update(request.entityField, request.updateMask, context);
      return create(entityField.UpdateEntityFieldResponseSchema, { entityField: changed });
    },
    async deleteEntityField({ name }, context) {
      await fields.delete(name, context);
      return create(entityField.DeleteEntityFieldResponseSchema);
    },
  };
}

export function metricDictionaryService(
  db: Db,
  bounds: QuotaBounds,
): Partial<ServiceImpl<typeof metric.MetricDictionaryService>> {
  const entries = dictionary(db, bounds, metrics);
  return {
    async createMetricEntry(request, context) {
      const made = await entries.create(request.metric, context);
      return create(metric.CreateMetricEntryResponseSchema, { metric: made });
    },
    async getMetricEntry({ name }, context) {
      return create(metric.GetMetricEntryResponseSchema, { metric: await entries.get(name, context) });
    },
    async batchGetMetricEntries({ names }, context) {
      return create(metric.BatchGetMetricEntriesResponseSchema, { metrics: await entries.getSeveral(names, context) });
    },
    async listMetricEntries(request, context) {
      const { entries: metrics, ...page } = await entries.list(request, context);
      return create(metric.ListMetricEntriesResponseSchema, { ...page, metrics });
    },
    async updateMetricEntry(request, context) {
      const changed = await entries.update(request.metric, request.updateMask, context);
      return create(metric.UpdateMetricEntryResponseSchema, { metric: changed });
    },
    async deleteMetricEntry({ name }, context) {
      await entries.delete(name, context);
      return create(metric.DeleteMetricEntryResponseSchema);
    },
  };
}

export function eventFieldDictionaryService(
  db: Db,
  bounds: QuotaBounds,
): Partial<ServiceImpl<typeof eventField.EventFieldDictionaryService>> {
  const fields = dictionary(db, bounds, eventFields);
  return {
    async createEventField(request, context) {
      const made = await fields.create(request.eventField, context);
      return create(eventField.CreateEventFieldResponseSchema, { eventField: made });
    },
    async getEventField({ name }, context) {
      return create(eventField.GetEventFieldResponseSchema, { eventField: await fields.get(name, context) });
    },
    async listEventFields(request, context) {
      const { entries, ...page } = await fields.list(request, context);
      return create(eventField.ListEventFieldsResponseSchema, { ...page, eventFields: entries });
    },
    async updateEventField(request, context) {
      const changed = await fields.update(request.eventField, request.updateMask, context);
      return create(eventField.UpdateEventFieldResponseSchema, { eventField: changed });
    },
    async deleteEventField({ name }, context) {
      await fields.delete(name, context);
      return create(eventField.DeleteEventFieldResponseSchema);
    },
  };
}
