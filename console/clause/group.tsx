import type { DescMessage } from "@bufbuild/protobuf";
import { useEffect, useId, useRef } from "preact/hooks";
import ui from "../ui/ui.module.css";
import clauseLook from "./clause.module.css";
import { ConditionRow } from "./condition.tsx";
import { type Draft, type Group, type Language, newCondition, newGroup, type Other, unreadable } from "./draft.ts";

interface GroupProps<S extends DescMessage> {
  readonly language: Language<S>;
  readonly group: Group;
  /** What is wrong, by the ids of parts. */
  readonly errors: ReadonlyMap<number, string>;
  /** The id of the list of known fields, and what an empty field shows. */
  readonly fields: string;
  readonly placeholder: string;
  change(group: Group): void;
  /** Absent: it is the outermost group. */
  remove?: () => void;
}

/** Conditions that hold together, or one by one, or not at all; groups within groups. */
export function GroupEditor<S extends DescMessage>(props: GroupProps<S>) {
  const { language, group, errors, fields, placeholder, change, remove } = props;
  const put = (parts: readonly Draft[]) => change({ ...group, parts });
  const replace = (id: number, part: Draft) => put(group.parts.map((each) => (each.id === id ? part : each)));
  const drop = (id: number) => put(group.parts.filter((each) => each.id !== id));
  return (
    <fieldset class={remove ? `${clauseLook.group} ${clauseLook.inner}` : clauseLook.group}>
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
          <button type="button" class={ui.plain} onClick={remove} aria-label="Remove the group">
            ×
          </button>
        )}
      </legend>
      {group.parts.map((part) => {
        const shared = { error: errors.get(part.id), remove: () => drop(part.id) };
        const changed = (next: Draft) => replace(part.id, next);
        if (part.kind === "group") {
          return <GroupEditor {...props} key={part.id} group={part} change={changed} remove={shared.remove} />;
        }
        return part.kind === "other" ? (
          <JsonRow {...shared} key={part.id} part={part} language={language} change={changed} />
        ) : (
          <ConditionRow
            {...shared}
            fields={fields}
            placeholder={placeholder}
            key={part.id}
            condition={part}
            has={language.has}
            change={changed}
          />
        );
      })}
      <div class={ui.buttons}>
        <button type="button" class={ui.plain} onClick={() => put([...group.parts, newCondition()])}>
          + Condition
        </button>
        <button type="button" class={ui.plain} onClick={() => put([...group.parts, newGroup(undefined, "any")])}>
          + Group
        </button>
      </div>
    </fieldset>
  );
}

interface JsonProps<S extends DescMessage> {
  readonly part: Other;
  readonly language: Language<S>;
  readonly error: string | undefined;
  change(part: Other): void;
  remove(): void;
}

/** A clause that the editor has no form for: its JSON. What is no clause keeps the form from being sent. */
function JsonRow<S extends DescMessage>({ part, language, error, change, remove }: JsonProps<S>) {
  const id = useId();
  const element = useRef<HTMLTextAreaElement>(null);
  const problem = unreadable(language, part.text);
  useEffect(() => element.current?.setCustomValidity(problem === undefined ? "" : `The JSON ${problem}`), [problem]);
  const shown = problem ?? error;
  return (
    <div class={shown ? `${clauseLook.condition} ${clauseLook.faulty}` : clauseLook.condition} data-condition>
      <textarea
        ref={element}
        class={clauseLook.conditionJson}
        aria-label="Condition as JSON"
        rows={Math.min(16, part.text.split("\n").length)}
        spellcheck={false}
        value={part.text}
        aria-invalid={shown ? true : undefined}
        aria-describedby={shown ? id : undefined}
        onInput={({ currentTarget }) => {
          const text = currentTarget.value;
          change({ ...part, text, json: unreadable(language, text) === undefined ? text : part.json });
        }}
      />
      <button type="button" class={ui.plain} aria-label="Remove the condition" onClick={remove}>
        ×
      </button>
      {shown && (
        <p class={ui.fieldError} id={id} role="alert">
          {shown}
        </p>
      )}
    </div>
  );
}
