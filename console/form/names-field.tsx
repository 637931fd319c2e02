import type { DescMessage } from "@bufbuild/protobuf";
import { useSignal } from "@preact/signals";
import { useId } from "preact/hooks";
import ui from "../ui/ui.module.css";
import { Field } from "./fields.tsx";
import formLook from "./form.module.css";
import type { Form } from "./form.ts";

interface NamesProps<S extends DescMessage> {
  readonly form: Form<S>;
  readonly path: string;
  readonly label: string;
  readonly help?: string;
  readonly values: readonly string[];
  readonly suggestions?: readonly string[];
  /** Only suggestions may be added, as of names of things that must exist. */
  readonly known?: boolean;
  /** Their order counts: each has a button that moves it before the one before it. */
  readonly ordered?: boolean;
  set(values: string[]): void;
}

/** A list of names, such as tags: each with a button to remove it, and an input that adds one by Enter or by leaving it. */
export function NamesField<S extends DescMessage>(props: NamesProps<S>) {
  const { values, suggestions = [], known, ordered, set, label } = props;
  const typed = useSignal("");
  const list = useId();
  const offered = suggestions.filter((each) => !values.includes(each));
  const add = () => {
    const name = typed.value.trim();
    if (name === "" || (known && !offered.includes(name))) return;
    typed.value = "";
    if (!values.includes(name)) set([...values, name]);
  };
  return (
    <Field {...props}>
      {(tied) => (
        <div class={formLook.names}>
          {values.length > 0 && (
            <ul aria-label={`${label} chosen`}>
              {values.map((name, at) => (
                <li key={name} class={formLook.name}>
                  {name}
                  {ordered && at > 0 && (
                    <button
                      type="button"
                      class={ui.plain}
                      aria-label={`Move ${name} forward`}
                      onClick={() => set(values.with(at, values[at - 1] ?? "").with(at - 1, name))}
                    >
                      ←
                    </button>
                  )}
                  <button
                    type="button"
                    class={ui.plain}
                    aria-label={`Remove ${name}`}
                    onClick={() => set(values.filter((each) => each !== name))}
                  >
                    ×
                  </button>
                </li>
              ))}
            </ul>
          )}
          <input
            {...tied}
            list={list}
            value={typed.value}
            autocomplete="off"
            spellcheck={false}
            onInput={(event) => {
              typed.value = event.currentTarget.value;
              // What is chosen from the list is whole; what is typed may go on.
              if (known && (event as InputEvent).inputType !== "insertText") add();
            }}
            onBlur={add}
            onKeyDown={(event) => {
              // Enter adds: here it never sends the form.
              if (event.key !== "Enter") return;
              event.preventDefault();
              add();
            }}
          />
          <datalist id={list}>
            {offered.map((each) => (
              <option key={each} value={each} />
            ))}
          </datalist>
        </div>
      )}
    </Field>
  );
}
