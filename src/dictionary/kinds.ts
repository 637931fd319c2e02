import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import { EntityFieldSchema } from "#gen/belfry/dictionary/v1/entity_field_pb.ts";
import { EventFieldSchema } from "#gen/belfry/dictionary/v1/event_field_pb.ts";
import { MetricEntrySchema } from "#gen/belfry/dictionary/v1/metric_entry_pb.ts";
import type { Principal } from "../auth/principal.ts";
import entityFieldDefaults from "./defaults/entity-fields.json" with { type: "json" };
import eventFieldDefaults from "./defaults/event-fields.json" with { type: "json" };
import metricDefaults from "./defaults/metrics.json" with { type: "json" };
import { defaultLayer, type Shipped } from "./layers.ts";
import { toEntityField, toEventField, toMetricEntry } from "./messages.ts";

/** What entries describe: all that the three dictionaries differ in. `E` is the message of an entry. */
export interface EntryKind<E> {
  /** In the table. */
  readonly key: string;
  /** In errors. */
  readonly title: string;
  /** The member of requests that holds an entry, for errors. */
  readonly member: string;
  readonly schema: DescMessage;
  readonly shipped: Shipped<E>;
  /** The layer of a tenant's own entries. */
  layerOf(principal: Principal): string;
  /** An entry as the API shows it, from what is stored of it. */
  toEntry(name: string, said: object, layer: string, overridden?: E): E;
}

function kind<S extends DescMessage>(
  of: Omit<EntryKind<MessageShape<S>>, "shipped"> & { schema: S },
  defaults: readonly { name: string }[],
): EntryKind<MessageShape<S>> {
  return { ...of, shipped: defaultLayer(defaults, of.toEntry) };
}

const tenantLayer = () => "TENANT";

export const entityFields = kind(
  {
    key: "entityField",
    title: "dictionary entity field",
    member: "entityField",
    schema: EntityFieldSchema,
    layerOf: tenantLayer,
    toEntry: toEntityField,
  },
  entityFieldDefaults,
);

export const metrics = kind(
  {
    key: "metric",
    title: "dictionary metric",
    member: "metric",
    schema: MetricEntrySchema,
    layerOf: ({ tenantName }) => tenantName,
    toEntry: toMetricEntry,
  },
  metricDefaults,
);

export const eventFields = kind(
  {
    key: "eventField",
    title: "dictionary event field",
    member: "eventField",
    schema: EventFieldSchema,
    layerOf: tenantLayer,
    toEntry: toEventField,
  },
  eventFieldDefaults,
);
