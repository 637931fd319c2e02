import { toJsonString } from "@bufbuild/protobuf";
import { useSignal, useSignalEffect } from "@preact/signals";
import { useId, useMemo } from "preact/hooks";
import { type Clause, ClauseSchema } from "#gen/belfry/clause/v1/clause_pb.ts";
import { ConditionRow } from "./condition.tsx";
import { clauseOfDraft, type Draft, draftOf, type Group, newCondition, newGroup, type Places } from "./draft.ts";
import { knownFields } from "./fields.ts";

interface EditorProps {
  /** What it opens with. */
  readonly clause: Clause | undefined;
  readonly of: "entity" | "event";
  /** What the server found wrong, by paths below the clause, as in `.and.clauses[2].filter.operation`. */
  readonly errors?: readonly { readonly field: string; readonly description: string }[];
  apply(clause: Clause | undefined): void;
}

/** Edits a clause by hand: conditions in groups, with completion of fields, the operations that fit, and errors at their place. */
export function ClauseEditor({ clause, of, errors = [], apply }: EditorProps) {
  const text = clause === undefined ? "" : toJsonString(ClauseSchema, clause);
  // What is applied comes back as the clause of the address: only another one replaces the draft.
  const draft = useSignal<Group>(useMemo(() => draftOf(clause), []));
  const last = useSignal(text);
  const id = useId();
  if (last.peek() !== text) {
    last.value = text;
    draft.value = draftOf(clause);
  }
  useSignalEffect(() => {
    if (draft.value.parts.length === 0) draft.value = newGroup([newCondition()]);
  });
  const places: Places = new Map();
  const made = clauseOfDraft(draft.value, places);
  const submit = (event: Event) => {
    event.preventDefault();
    last.value = made === undefined ? "" : toJsonString(ClauseSchema, made);
    apply(made);
  };
  const placed = new Map<number, string>();
  const elsewhere: string[] = [];
  for (const { field, description } of errors) {
    const at = [...places.keys()].filter((path) => field.startsWith(path)).sort((a, b) => b.length - a.length)[0];
    const place = at === undefined ? undefined : places.get(at);
    if (place === undefined) elsewhere.push(description);
    else placed.set(place, description);
  }
  return (
    <form class="clause" onSubmit={submit} aria-label="Conditions">
      <datalist id={id}>
        {knownFields(of).map(({ name, label }) => (
          <option key={name} value={name} label={label} />
        ))}
      </datalist>
      <GroupEditor
        group={draft.value}
        errors={placed}
        fields={id}
        outermost
        change={(group) => {
          draft.value = group;
        }}
      />
      {elsewhere.map((each) => (
        <p key={each} class="field-error" role="alert">
          {each}
        </p>
      ))}
      <div class="buttons">
        <button type="submit" class="primary">
          Apply
        </button>
        {text !== "" && (
          <button
            type="button"
            onClick={() => {
              draft.value = newGroup();
              last.value = "";
              apply(undefined);
            }}
          >
            Remove all
          </button>
        )}
        {made && (
          <details class="as-json">
            <summary>For the API</summary>
            <pre>{JSON.stringify(JSON.parse(toJsonString(ClauseSchema, made)), null, 2)}</pre>
          </details>
        )}
      </div>
    </form>
  );
}

interface GroupProps {
  group: Group;
  errors: ReadonlyMap<number, string>;
  fields: string;
  outermost?: boolean;
  change(group: Group): void;
  remove?: () => void;
}

function GroupEditor({ group, errors, fields, outermost, change, remove }: GroupProps) {
  const put = (parts: readonly Draft[]) => change({ ...group, parts });
  const replace = (id: number, part: Draft) => put(group.parts.map((each) => (each.id === id ? part : each)));
  const drop = (id: number) => put(group.parts.filter((each) => each.id !== id));
  return (
    <fieldset class={outermost ? "group" : "group inner"}>
      <legend>
        <select
          aria-label="How the conditions combine"
          value={group.match}
          onChange={({ currentTarget }) => change({ ...group, match: currentTarget.value as Group["match"] })}
        >
          <option value="all">All of these hold</option>
          <option value="any">One of these holds</option>
          <option value="none">None of these holds</option>
        </select>
        {remove && (
          <button type="button" class="plain" onClick={remove} aria-label="Remove the group">
            ×
          </button>
        )}
      </legend>
      {group.parts.map((part) => {
        if (part.kind === "group") {
          return (
            <GroupEditor
              key={part.id}
              group={part}
              errors={errors}
              fields={fields}
              change={(next) => replace(part.id, next)}
              remove={() => drop(part.id)}
            />
          );
        }
        if (part.kind === "other") {
          return (
            <p key={part.id} class="condition">
              <code>{toJsonString(ClauseSchema, part.clause)}</code>
              <button type="button" class="plain" aria-label="Remove the condition" onClick={() => drop(part.id)}>
                ×
              </button>
            </p>
          );
        }
        return (
          <ConditionRow
            key={part.id}
            condition={part}
            error={errors.get(part.id)}
            fields={fields}
            change={(next) => replace(part.id, next)}
            remove={() => drop(part.id)}
          />
        );
      })}
      <div class="buttons">
        <button type="button" class="plain" onClick={() => put([...group.parts, newCondition()])}>
          + Condition
        </button>
        <button type="button" class="plain" onClick={() => put([...group.parts, newGroup(undefined, "any")])}>
          + Group
        </button>
      </div>
    </fieldset>
  );
}
