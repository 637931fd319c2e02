import { useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import type { RuleSchema } from "#gen/belfry/notifications/v1/rule_pb.ts";
import type { TemplateVariable } from "#gen/belfry/notifications/v1/rule_service_pb.ts";
import { Field } from "../../form/fields.tsx";
import type { Form } from "../../form/form.ts";
import ui from "../../ui/ui.module.css";
import rulesLook from "../rules.module.css";
import type { Preview } from "./rendering.ts";

/** The message, and the names that can be put into it where the cursor stands. */
export function MessageField({ form, preview }: { form: Form<typeof RuleSchema>; preview: Preview }) {
  const input = useRef<HTMLTextAreaElement>(null);
  const { message } = form.value;
  const insert = (name: string) => {
    const element = input.current;
    if (element === null) return;
    // Three braces put a value in as it is.
    element.setRangeText(`{{{${name}}}}`, element.selectionStart, element.selectionEnd, "end");
    form.change({ message: element.value });
    element.focus();
  };
  return (
    <div class={rulesLook.messageField}>
      <Field
        form={form}
        path="message"
        label="Message"
        help={
          <>
            A template: <code>{"{{{event.name}}}"}</code> shows a value, <code>{"{{#clear}}…{{/clear}}"}</code> what
            stands between when there is one. Empty: severity, headline and entity.
          </>
        }
      >
        {(tied) => (
          <textarea
            {...tied}
            ref={input}
            class={rulesLook.template}
            rows={5}
            spellcheck
            value={message}
            onInput={({ currentTarget }) => form.change({ message: currentTarget.value })}
          />
        )}
      </Field>
      {preview.mistake !== undefined && (
        <p class={ui.fieldError} role="status">
          The message {preview.mistake}
        </p>
      )}
      <Variables all={preview.value?.variables ?? []} insert={insert} />
    </div>
  );
}

/** The names that the server knows, each with its value for the event that is shown. */
function Variables({ all, insert }: { all: readonly TemplateVariable[]; insert(name: string): void }) {
  const words = useSignal("");
  const sought = words.value.trim().toLowerCase();
  const found = all.filter(({ name }) => name.toLowerCase().includes(sought));
  return (
    <details class={rulesLook.variables}>
      <summary>Insert a variable</summary>
      <input
        type="search"
        aria-label="Variables with"
        placeholder="part of a name"
        value={words.value}
        onInput={({ currentTarget }) => {
          words.value = currentTarget.value;
        }}
        onKeyDown={(event) => {
          if (event.key !== "Enter") return;
          event.preventDefault();
          const [first] = found;
          if (first) insert(first.name);
        }}
      />
      <ul aria-label="Variables">
        {found.map(({ name, value }) => (
          <li key={name}>
            <button type="button" class={ui.plain} aria-label={`Insert ${name}`} onClick={() => insert(name)}>
              {name}
            </button>
            <span class={ui.quiet}>{value || "empty here"}</span>
          </li>
        ))}
      </ul>
      {found.length === 0 && <p class={ui.hint}>No variable has this in its name.</p>}
    </details>
  );
}
