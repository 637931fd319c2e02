import { create } from "@bufbuild/protobuf";
import { type EntityField, EntityFieldSchema } from "#gen/belfry/dictionary/v1/entity_field_pb.ts";
import { type EventField, EventFieldSchema } from "#gen/belfry/dictionary/v1/event_field_pb.ts";
import { type MetricEntry, MetricEntrySchema } from "#gen/belfry/dictionary/v1/metric_entry_pb.ts";

/** What any entry may say; members that are absent are empty. */
export interface FieldValues {
  label?: string;
  description?: string;
  tags?: string[];
}

/** What an entry of a metric may say. */
export interface MetricValues extends FieldValues {
  units?: string;
  minimum?: string;
  maximum?: string;
  scaleFactor?: string;
  scaleFactorUnits?: string;
  isRate?: boolean;
}

// Copies with every member named, instead of a create() each, which is slow for a list of a thousand.
const emptyEntityField = create(EntityFieldSchema);
const emptyEventField = create(EventFieldSchema);
const emptyMetricEntry = create(MetricEntrySchema);

/** An entry of an entity field as the API shows it; `overridden` is the default entry that it overrides. */
export function toEntityField(name: string, said: FieldValues, layer: string, overridden?: EntityField): EntityField {
  return { ...emptyEntityField, ...toField(name, said, layer), defaultEntry: overridden };
}

/** An entry of an event field as the API shows it; `overridden` is the default entry that it overrides. */
export function toEventField(name: string, said: FieldValues, layer: string, overridden?: EventField): EventField {
  return { ...emptyEventField, ...toField(name, said, layer), defaultEntry: overridden };
}

/** An entry of a metric as the API shows it; `overridden` is the default entry that it overrides. */
export function toMetricEntry(name: string, said: MetricValues, layer: string, overridden?: MetricEntry): MetricEntry {
  return {
    ...emptyMetricEntry,
    name,
    layer,
    label: said.label ?? "",
    description: said.description ?? "",
    tags: said.tags ?? [],
    units: said.units ?? "",
    minimum: said.minimum ?? "",
    maximum: said.maximum ?? "",
    scaleFactor: said.scaleFactor ?? "",
    scaleFactorUnits: said.scaleFactorUnits ?? "",
    isRate: said.isRate ?? false,
    defaultEntry: overridden,
  };
}

function toField(name: string, { label = "", description = "", tags = [] }: FieldValues, layer: string) {
  return { name, label, description, tags, layer };
}
