import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import { toJsonString } from "@bufbuild/protobuf";
import { type Signal, useSignal } from "@preact/signals";
import { useId } from "preact/hooks";
import ui from "../ui/ui.module.css";
import { clauseOfDraft, draftOf, type Group, type Language, newGroup, type Places } from "./draft.ts";
import { type FieldsOf, knownFields } from "./fields.ts";
import { GroupEditor } from "./group.tsx";

/** What the server found wrong, by paths below the clause, as in `.and.clauses[2].filter.operation`. */
export type ClauseErrors = readonly { readonly field: string; readonly description: string }[];

/** A draft of a clause: it follows the clause where that becomes another one than what was made of the draft. */
export function useDraft<S extends DescMessage>(language: Language<S>, clause: MessageShape<S> | undefined) {
  const text = textOf(language, clause);
  const draft = useSignal<Group | undefined>(undefined);
  const last = useSignal(text);
  if (draft.peek() === undefined || last.peek() !== text) {
    last.value = text;
    draft.value = withARow(draftOf(language, clause));
  }
  return {
    draft: draft as Signal<Group>,
    /** Says that this clause was made of the draft, which stays as it is when the clause comes back. */
    made(of: MessageShape<S> | undefined) {
      last.value = textOf(language, of);
    },
  };
}

const textOf = <S extends DescMessage>({ schema }: Language<S>, clause: MessageShape<S> | undefined) =>
  clause === undefined ? "" : toJsonString(schema, clause);

/** An empty condition to begin with. */
export const withARow = (group: Group) => (group.parts.length === 0 ? newGroup(undefined, group.match) : group);

interface ConditionsProps<S extends DescMessage> {
  readonly language: Language<S>;
  readonly of: FieldsOf;
  readonly draft: Group;
  readonly errors: ClauseErrors;
  change(draft: Group): void;
}

/** The conditions of a draft, with completion of fields, the comparisons that fit, and errors at their place. */
export function Conditions<S extends DescMessage>({ language, of, draft, errors, change }: ConditionsProps<S>) {
  const id = useId();
  const { placed, elsewhere } = placesOf(language, draft, errors);
  return (
    <>
      <datalist id={id}>
        {knownFields(of).map(({ name, label }) => (
          <option key={name} value={name} label={label} />
        ))}
      </datalist>
      <GroupEditor
        language={language}
        group={draft}
        errors={placed}
        fields={id}
        placeholder={of === "series" ? "labels.key" : "field"}
        change={(group) => change(withARow(group))}
      />
      {elsewhere.map((each) => (
        <p key={each} class={ui.fieldError} role="alert">
          {each}
        </p>
      ))}
    </>
  );
}

/** What is wrong, by the parts of the draft, and what is wrong at none of them. */
function placesOf<S extends DescMessage>(language: Language<S>, draft: Group, errors: ClauseErrors) {
  const places: Places = new Map();
  clauseOfDraft(language, draft, places);
  const placed = new Map<number, string>();
  const elsewhere: string[] = [];
  for (const { field, description } of errors) {
    const at = [...places.keys()].filter((path) => field.startsWith(path)).sort((a, b) => b.length - a.length)[0];
    const place = at === undefined ? undefined : places.get(at);
    if (place === undefined) elsewhere.push(description);
    else placed.set(place, description);
  }
  return { placed, elsewhere };
}
