import type { MessageShape } from "@bufbuild/protobuf";
import { EntityFieldSchema } from "#gen/belfry/dictionary/v1/entity_field_pb.ts";
import { EntityFieldDictionaryService } from "#gen/belfry/dictionary/v1/entity_field_service_pb.ts";
import { EventFieldSchema } from "#gen/belfry/dictionary/v1/event_field_pb.ts";
import { EventFieldDictionaryService } from "#gen/belfry/dictionary/v1/event_field_service_pb.ts";
import { MetricEntrySchema } from "#gen/belfry/dictionary/v1/metric_entry_pb.ts";
import { MetricDictionaryService } from "#gen/belfry/dictionary/v1/metric_entry_service_pb.ts";
import { clientOf } from "../../data/calls.ts";

const metrics = clientOf(MetricDictionaryService);
const entityFields = clientOf(EntityFieldDictionaryService);
const eventFields = clientOf(EventFieldDictionaryService);

export type EntrySchema = typeof MetricEntrySchema | typeof EntityFieldSchema | typeof EventFieldSchema;

/** An entry of any kind. */
export type Entry = MessageShape<typeof EntityFieldSchema> | MessageShape<EntrySchema>;

/** A kind of entries: what it is called, and how its entries are read and changed. */
export interface Kind<S extends EntrySchema = EntrySchema> {
  readonly label: string;
  /** Word for the subject of one entry, as in `metric`. */
  readonly one: string;
  readonly schema: S;
  /** The field of requests that holds an entry. */
  readonly prefix: string;
  list(options: { signal?: AbortSignal }): Promise<readonly MessageShape<S>[]>;
  create(entry: MessageShape<S>): Promise<MessageShape<S> | undefined>;
  update(entry: MessageShape<S>, paths: string[]): Promise<MessageShape<S> | undefined>;
  remove(name: string): Promise<unknown>;
}

const metricKind: Kind<typeof MetricEntrySchema> = {
  label: "Metrics",
  one: "metric",
  schema: MetricEntrySchema,
  prefix: "metric",
  list: async (options) => (await metrics.listMetricEntries({}, options)).metrics,
  create: async (metric) => (await metrics.createMetricEntry({ metric })).metric,
  update: async (metric, paths) => (await metrics.updateMetricEntry({ metric, updateMask: { paths } })).metric,
  remove: (name) => metrics.deleteMetricEntry({ name }),
};

const entityKind: Kind<typeof EntityFieldSchema> = {
  label: "Fields of entities",
  one: "field of entities",
  schema: EntityFieldSchema,
  prefix: "entityField",
  list: async (options) => (await entityFields.listEntityFields({}, options)).entityFields,
  create: async (entityField) => (await entityFields.createEntityField({ entityField })).entityField,
  update: async (entityField, paths) =>
    (await entityFields.updateEntityField({ entityField, updateMask: { paths } })).entityField,
  remove: (name) => entityFields.deleteEntityField({ name }),
};

const eventKind: Kind<typeof EventFieldSchema> = {
  label: "Fields of events",
  one: "field of events",
  schema: EventFieldSchema,
  prefix: "eventField",
  list: async (options) => (await eventFields.listEventFields({}, options)).eventFields,
  create: async (eventField) => (await eventFields.createEventField({ eventField })).eventField,
  update: async (eventField, paths) =>
    (await eventFields.updateEventField({ eventField, updateMask: { paths } })).eventField,
  remove: (name) => eventFields.deleteEventField({ name }),
};

/** The kinds, by their names in addresses. */
export const kinds: Readonly<Record<string, Kind>> = {
  metrics: metricKind as unknown as Kind,
  entities: entityKind as unknown as Kind,
  events: eventKind as unknown as Kind,
};
