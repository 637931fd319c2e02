import { toJsonString } from "@bufbuild/protobuf";
import { type Clause, ClauseSchema } from "#gen/belfry/clause/v1/clause_pb.ts";
import ui from "../ui/ui.module.css";
import clauseLook from "./clause.module.css";
import { type ClauseErrors, Conditions, useDraft, withARow } from "./conditions.tsx";
import { clauseOfDraft, conditionCount, draftOf } from "./draft.ts";
import { searchClauses } from "./search-clause.ts";

/** Counts the conditions of a search's clause. */
export const countConditions = (clause: Clause) => conditionCount(searchClauses, clause);

interface EditorProps {
  /** What it opens with. */
  readonly clause: Clause | undefined;
  readonly of: "entity" | "event";
  readonly errors?: ClauseErrors;
  apply(clause: Clause | undefined): void;
}

/** Edits the clause of a search: a form of its own, whose clause counts once it is applied. */
export function ClauseEditor({ clause, of, errors = [], apply }: EditorProps) {
  const { draft, made } = useDraft(searchClauses, clause);
  const now = clauseOfDraft(searchClauses, draft.value);
  const put = (next: Clause | undefined) => {
    made(next);
    apply(next);
  };
  return (
    <form
      class={clauseLook.clause}
      aria-label="Conditions"
      onSubmit={(event) => {
        event.preventDefault();
        put(now);
      }}
    >
      <Conditions
        of={of}
        errors={errors}
        language={searchClauses}
        draft={draft.value}
        change={(group) => {
          draft.value = group;
        }}
      />
      <div class={ui.buttons}>
        <button type="submit" class={ui.primary}>
          Apply
        </button>
        {clause && (
          <button
            type="button"
            onClick={() => {
              draft.value = withARow(draftOf(searchClauses, undefined));
              put(undefined);
            }}
          >
            Remove all
          </button>
        )}
        {now && (
          <details class={clauseLook.asJson}>
            <summary>For the API</summary>
            <pre>{JSON.stringify(JSON.parse(toJsonString(ClauseSchema, now)), null, 2)}</pre>
          </details>
        )}
      </div>
    </form>
  );
}
