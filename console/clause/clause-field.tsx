import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import type { ComponentChildren } from "preact";
import { useEffect, useId } from "preact/hooks";
import formLook from "../form/form.module.css";
import type { Form } from "../form/form.ts";
import clauseLook from "./clause.module.css";
import { type ClauseErrors, Conditions, useDraft } from "./conditions.tsx";
import { clauseOfDraft, type Language } from "./draft.ts";
import type { FieldsOf } from "./fields.ts";

interface ClauseFieldProps<F extends DescMessage, S extends DescMessage> {
  readonly form: Form<F>;
  /** The clause's path below the form's message. */
  readonly path: string;
  readonly label: string;
  readonly help?: ComponentChildren;
  readonly language: Language<S>;
  readonly of: FieldsOf;
  readonly clause: MessageShape<S> | undefined;
  /** What is wrong before the form is sent; absent: what was refused. */
  readonly errors?: ClauseErrors | undefined;
  /** Undefined when no condition is left. */
  set(clause: MessageShape<S> | undefined): void;
}

/** A clause as a field of a form. What the editor does not touch is sent as it was. */
export function ClauseField<F extends DescMessage, S extends DescMessage>(props: ClauseFieldProps<F, S>) {
  const { form, path, label, help, language, of, clause, set } = props;
  const id = useId();
  useEffect(() => form.claim(path, label), [path, label]);
  const { draft, made } = useDraft(language, clause);
  const refused = form
    .errorsAt(path)
    .map(({ field, description }) => ({ field: field.slice(path.length), description }));
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset would be drawn as a group of conditions
    <div
      class={`${formLook.field} ${clauseLook.clauseField}`}
      role="group"
      aria-labelledby={id}
      aria-describedby={help === undefined ? undefined : `${id}-help`}
    >
      <span class={clauseLook.label} id={id}>
        {label}
      </span>
      {help !== undefined && (
        <p class={formLook.help} id={`${id}-help`}>
          {help}
        </p>
      )}
      <Conditions
        language={language}
        of={of}
        draft={draft.value}
        errors={props.errors ?? refused}
        change={(group) => {
          draft.value = group;
          const next = clauseOfDraft(language, group);
          made(next);
          set(next);
        }}
      />
    </div>
  );
}
