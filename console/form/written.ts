import { clone, type DescField, type DescMessage, equals, getOption, type MessageShape } from "@bufbuild/protobuf";
import { reflect } from "@bufbuild/protobuf/reflect";
import { FieldBehavior, field_behavior } from "#gen/google/api/field_behavior_pb.ts";

const written = (field: DescField) =>
  field.name !== "etag" && !getOption(field, field_behavior).includes(FieldBehavior.OUTPUT_ONLY);

/** The fields of a message that a person writes: what the service itself adds is not among them. */
export const writtenFields = (schema: DescMessage): readonly DescField[] => schema.fields.filter(written);

/** Whatever a person may change in a message: without a mask a flag could not be taken away. */
export const maskOfAll = (schema: DescMessage) => ({
  paths: writtenFields(schema)
    .filter((field) => !getOption(field, field_behavior).includes(FieldBehavior.IMMUTABLE))
    .map(({ name }) => name),
});

/** Whether two states of a message are the same but for what the service itself adds. */
export function sameWritten<S extends DescMessage>(schema: S, one: MessageShape<S>, other: MessageShape<S>): boolean {
  const [a, b] = [one, other].map((each) => {
    const copy = clone(schema, each);
    const message = reflect(schema, copy);
    for (const field of schema.fields) if (!written(field)) message.clear(field);
    return copy;
  });
  return a !== undefined && b !== undefined && equals(schema, a, b);
}
