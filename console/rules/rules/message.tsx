import type { RuleSchema } from "#gen/belfry/notifications/v1/rule_pb.ts";
import type { Form } from "../../form/form.ts";
import { TemplateEditor } from "../template-editor.tsx";
import type { Preview } from "./rendering.ts";

/** The message of a rule. */
export function MessageField({ form, preview }: { form: Form<typeof RuleSchema>; preview: Preview }) {
  return (
    <TemplateEditor
      form={form}
      path="message"
      label="Message"
      help={
        <>
          A template: <code>{"{{{event.name}}}"}</code> shows a value, <code>{"{{#clear}}…{{/clear}}"}</code> what
          stands between when there is one. Empty: severity, headline and entity.
        </>
      }
      value={form.value.message}
      rows={5}
      // Three braces put a value in as it is.
      tag={(name) => `{{{${name}}}}`}
      mistake={preview.mistake}
      variables={preview.value?.variables ?? []}
      set={(message) => form.change({ message })}
    />
  );
}
