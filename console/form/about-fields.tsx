import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import { TextField } from "./fields.tsx";
import type { Form } from "./form.ts";
import { NamesField } from "./names-field.tsx";

interface AboutProps<S extends DescMessage> {
  readonly form: Form<S>;
  readonly about: { readonly description: string; readonly tags: readonly string[] };
}

/** What a thing is for, and the words to find it by. */
export function AboutFields<S extends DescMessage>({ form, about }: AboutProps<S>) {
  const change = (fields: { description?: string; tags?: string[] }) => form.change(fields as Partial<MessageShape<S>>);
  return (
    <>
      <TextField
        form={form}
        path="description"
        label="Description"
        rows={2}
        value={about.description}
        set={(description) => change({ description })}
      />
      <NamesField
        form={form}
        path="tags"
        label="Tags"
        help="Words to find it by. Enter adds one."
        values={about.tags}
        set={(tags) => change({ tags })}
      />
    </>
  );
}
