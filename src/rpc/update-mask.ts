import { type DescField, type DescMessage, isFieldSet, type MessageShape } from "@bufbuild/protobuf";
import type { FieldMask } from "@bufbuild/protobuf/wkt";
import { FieldRule } from "#gen/belfry/errors/v1/reasons_pb.ts";
import { FieldBehavior, field_behavior } from "#gen/google/api/field_behavior_pb.ts";
import { invalidField } from "../errors.ts";
import { optionOf } from "../proto-option.ts";

/**
 * The members of a resource that an update changes, by their names in TypeScript: those that the mask names; without a
 * mask, or with an empty one, those that are set. Members that only the service sets are passed over.
 * @throws code 3 at updateMask for a path that is no top-level field, or one that never changes
 */
export function changedFields<S extends DescMessage>(
  schema: S,
  resource: MessageShape<S>,
  mask: FieldMask | undefined,
): Set<keyof MessageShape<S>> {
  const paths = mask?.paths ?? [];
  const named = paths.length === 0 ? schema.fields.filter((field) => isChange(field, resource)) : paths.map(fieldOf);
  // The etag says what was read, and is no change.
  const changed = named.filter((field) => field.name !== "etag" && !marked(field, FieldBehavior.OUTPUT_ONLY));
  return new Set(changed.map(({ localName }) => localName as keyof MessageShape<S>));

  function fieldOf(path: string): DescField {
    const field = schema.fields.find(({ name, jsonName }) => name === path || jsonName === path);
    if (field === undefined)
      throw invalidField(
        "updateMask",
        `names ${JSON.stringify(path)}, which is no field here`,
        FieldRule.UNKNOWN_VALUE,
      );
    if (marked(field, FieldBehavior.IMMUTABLE)) {
      throw invalidField("updateMask", `names ${field.jsonName}, which cannot be changed`, FieldRule.IMMUTABLE);
    }
    return field;
  }
}

/** A stored resource with what an update changes in it. */
export function withChanges<T extends object>(stored: T, sent: T, changed: ReadonlySet<keyof T>): T {
  const next = { ...stored };
  for (const member of changed) next[member] = sent[member];
  return next;
}

function isChange<S extends DescMessage>(field: DescField, resource: MessageShape<S>): boolean {
  return isFieldSet(resource, field) && !marked(field, FieldBehavior.IMMUTABLE);
}

function marked(field: DescField, behaviour: FieldBehavior): boolean {
  return optionOf(field, field_behavior).includes(behaviour);
}
