import { signal } from "@preact/signals";
import { EventFieldDictionaryService } from "#gen/belfry/dictionary/v1/event_field_service_pb.ts";
import { EntityService, FieldSelection } from "#gen/belfry/entities/v1/entity_service_pb.ts";
import { clientOf } from "../../frame/calls.ts";
import type { ValueKind } from "./draft.ts";

/** A field that conditions can name, as it is offered. */
export interface KnownField {
  readonly name: string;
  readonly label: string;
}

const ownEventFields = [
  ...["id", "name", "type", "summary", "body", "severity", "status", "acknowledged", "entity", "entityName"],
  ...["startTime", "lastSeen", "endTime", "instanceCount", "count", "dedupKey", "expiresAt"],
];

const fields = signal<{ entity: readonly KnownField[]; event: readonly KnownField[] } | undefined>(undefined);
let asked = false;

const labels: Readonly<Record<string, string>> = {
  property: "property",
  coreProperty: "core property",
  dimension: "dimension",
  metadata: "metadata",
  customProperty: "custom property",
};

/** The fields of entities or of events: what the server lists, and the dictionary. Empty until they are read. */
export function knownFields(of: "entity" | "event"): readonly KnownField[] {
  if (!asked) void read();
  return fields.value?.[of] ?? [];
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
  fields.value = { entity, event: [...event].map(([name, label]) => ({ name, label })) };
}

const numbers = new Set([
  ...["startTime", "lastSeen", "endTime", "expiresAt", "instanceCount", "count"],
  ...["createTime", "updateTime", "livenessTime", "productionState", "priority", "timestamp"],
]);

/** The kind of a field's values where it is fixed. */
export function fixedKind(field: string): ValueKind | undefined {
  if (field === "acknowledged") return "boolean";
  return numbers.has(field) ? "number" : undefined;
}

/** The values of a field that has few. */
export const fixedValues: Readonly<Record<string, readonly (readonly [value: string, word: string])[]>> = {
  severity: ["CRITICAL", "ERROR", "WARNING", "INFO", "DEBUG", "DEFAULT"].map((name) => [
    `SEVERITY_${name}`,
    name.toLowerCase(),
  ]),
  status: ["OPEN", "SUPPRESSED", "CLOSED", "DEFAULT"].map((name) => [`STATUS_${name}`, name.toLowerCase()]),
};
