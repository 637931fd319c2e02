import type { DescMessage } from "@bufbuild/protobuf";
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useRef } from "preact/hooks";
import type { TemplateVariable } from "#gen/belfry/notifications/v1/rule_service_pb.ts";
import { Field } from "../form/fields.tsx";
import type { Form } from "../form/form.ts";
import ui from "../ui/ui.module.css";
import rulesLook from "./rules.module.css";

interface TemplateEditorProps<S extends DescMessage> {
  readonly form: Form<S>;
  readonly path: string;
  readonly label: string;
  readonly help: ComponentChildren;
  readonly value: string;
  readonly rows: number;
  readonly required?: boolean;
  /** How a variable is put in. */
  tag(name: string): string;
  /** What is wrong with it as it is typed. */
  readonly mistake: string | undefined;
  readonly variables: readonly TemplateVariable[];
  set(value: string): void;
}

/** A template, and the names that can be put into it where the cursor stands. */
export function TemplateEditor<S extends DescMessage>(props: TemplateEditorProps<S>) {
  const { label, value, rows, required, tag, mistake, variables, set } = props;
  const input = useRef<HTMLTextAreaElement>(null);
  const insert = (name: string) => {
    const element = input.current;
    if (element === null) return;
    element.setRangeText(tag(name), element.selectionStart, element.selectionEnd, "end");
    set(element.value);
    element.focus();
  };
  return (
    <div class={rulesLook.templateEditor}>
      <Field {...props}>
        {(tied) => (
          <textarea
            {...tied}
            ref={input}
            class={rulesLook.template}
            rows={rows}
            required={required}
            spellcheck
            value={value}
            onInput={({ currentTarget }) => set(currentTarget.value)}
          />
        )}
      </Field>
      {mistake !== undefined && (
        <p class={ui.fieldError} role="status">
          The {label.toLowerCase()} {mistake}
        </p>
      )}
      <Variables all={variables} insert={insert} />
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
