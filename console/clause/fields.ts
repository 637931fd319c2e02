import type { DescEnum } from "@bufbuild/protobuf";
import { signal } from "@preact/signals";
import { EventFieldDictionaryService } from "#gen/belfry/dictionary/v1/event_field_service_pb.ts";
import { EntityService, FieldSelection } from "#gen/belfry/entities/v1/entity_service_pb.ts";
import { SeveritySchema, StatusSchema } from "#gen/belfry/events/v1/event_pb.ts";
import { clientOf } from "../data/calls.ts";
import type { ValueKind } from "./draft.ts";

/** A field that conditions can name, as it is offered. */
export interface KnownField {
  readonly name: string;
  readonly label: string;
}

const ownEventFields = [
  "id",
  "name",
  "type",
  "summary",
  "body",
  "severity",
  "status",
  "acknowledged",
  "entity",
  "entityName",
  "startTime",
  "lastSeen",
  "endTime",
  "instanceCount",
  "count",
  "dedupKey",
  "expiresAt",
];

/** Whose fields conditions name: a trigger's are those of events and, after `entity.`, of their entities; series have labels. */
export type FieldsOf = "entity" | "event" | "trigger" | "series";

const fields = signal<Readonly<Partial<Record<FieldsOf, readonly KnownField[]>>>>({});
let asked = false;

const labels: Readonly<Record<string, string>> = {
  property: "property",
  coreProperty: "core property",
  dimension: "dimension",
  metadata: "metadata",
  customProperty: "custom property",
};

/** The fields that can be named: what the server lists, and the dictionary. Empty until they are read. */
export function knownFields(of: FieldsOf): readonly KnownField[] {
  if (!asked) void read();
  return fields.value[of] ?? [];
}

async function read(): Promise<void> {
  asked = true;
  const [listed, dictionary] = await Promise.all([
    clientOf(EntityService)
      .listDefaultFields({ option: FieldSelection.ALL, searchableOnly: true })
      .catch(() => undefined),
    clientOf(EventFieldDictionaryService)
      .listEventFields({})
      .catch(() => undefined),
  ]);
  // A failure only leaves names out, which can be typed; the next editor tries again.
  asked = listed !== undefined && dictionary !== undefined;
  const entity = (listed?.fields ?? []).map((name) => ({
    name,
    label: labels[listed?.fieldSources[name] ?? ""] ?? "",
  }));
  const event = new Map<string, string>(ownEventFields.map((name) => [name, "event"]));
  for (const { name, label } of dictionary?.eventFields ?? []) event.set(name, label);
  for (const { name, label } of entity) {
    if (/^(?:dimensions|coreProperties)\./.test(name)) event.set(name, label);
  }
  const ofEvents = [...event].map(([name, label]) => ({ name, label }));
  const ofTheirEntities = entity.map(({ name, label }) => ({ name: `entity.${name}`, label: `entity: ${label}` }));
  fields.value = { entity, event: ofEvents, trigger: [...ofEvents, ...ofTheirEntities] };
}

const numbers = new Set([
  "startTime",
  "lastSeen",
  "endTime",
  "expiresAt",
  "instanceCount",
  "count",
  "createTime",
  "updateTime",
  "livenessTime",
  "productionState",
  "priority",
  "timestamp",
]);

/** The kind of a field's values where it is fixed. */
export function fixedKind(field: string): ValueKind | undefined {
  if (field === "acknowledged") return "boolean";
  return numbers.has(field.replace(/^entity\./, "")) ? "number" : undefined;
}

/** The values of a field that has few. */
export const fixedValues: Readonly<Record<string, readonly (readonly [value: string, word: string])[]>> = {
  severity: ["CRITICAL", "ERROR", "WARNING", "INFO", "DEBUG", "DEFAULT"].map((name) => [
    `SEVERITY_${name}`,
    name.toLowerCase(),
  ]),
  status: ["OPEN", "SUPPRESSED", "CLOSED", "DEFAULT"].map((name) => [`STATUS_${name}`, name.toLowerCase()]),
};

const enumerations: Readonly<Record<string, DescEnum>> = { severity: SeveritySchema, status: StatusSchema };

/** A value of a field that has few, by its name where it is given as a number. */
export function valueName(field: string, value: string): string {
  return enumerations[field]?.value[Number(value)]?.name ?? value;
}

/** What such a value is called. */
export const valueWord = (field: string, value: string) =>
  fixedValues[field]?.find(([name]) => name === valueName(field, value))?.[1] ?? value;
