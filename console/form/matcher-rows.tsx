import type { DescMessage } from "@bufbuild/protobuf";
import { type ReadonlySignal, useSignal } from "@preact/signals";
import { useEffect, useId, useRef } from "preact/hooks";
import { type LabelValues, SilenceService } from "#gen/belfry/notifications/v1/silence_service_pb.ts";
import { useAnswer } from "../data/answer.ts";
import { clientOf } from "../data/calls.ts";
import ui from "../ui/ui.module.css";
import formLook from "./form.module.css";
import type { Form } from "./form.ts";
import { type MatcherParts, type Operator, operators, partsOf } from "./matcher-parts.ts";
import { matcherText } from "./matcher-text.ts";
import { MatchersField } from "./matchers-field.tsx";

const silences = clientOf(SilenceService);

/** A matcher as it is typed. Its text stays as it was read until a part of it is changed. */
interface Row extends MatcherParts {
  readonly text: string;
}

const blankRow: Row = { name: "", operator: "=", value: "", text: "" };

const isBlank = ({ name, value }: Row) => name === "" && value === "";

/** The matchers that rows make: blank rows make none. */
const textsOf = (rows: readonly Row[]) => rows.filter((row) => !isBlank(row)).map(({ text }) => text);

/** The rows of matchers; undefined where one of them cannot be taken apart. */
function rowsOf(texts: readonly string[]): Row[] | undefined {
  const rows = texts.map((text) => ({ text, parts: partsOf(text) }));
  if (rows.some(({ parts }) => parts === undefined)) return undefined;
  return rows.map(({ text, parts }) => ({ ...blankRow, ...parts, text }));
}

const words: Readonly<Record<Operator, string>> = {
  "=": "= is",
  "!=": "!= is not",
  "=~": "=~ matches",
  "!~": "!~ does not match",
};

interface MatcherRowsProps<S extends DescMessage> {
  readonly form: Form<S>;
  readonly path: string;
  readonly label: string;
  readonly value: readonly string[];
  /** Mistakes of matchers as they are typed, by their place, before they are sent. */
  readonly mistakes?: ReadonlyMap<number, string>;
  set(matchers: string[]): void;
}

/** Matchers of labels, a row each: label, comparison, value. They can also be written as text, a line each. */
export function MatcherRows<S extends DescMessage>(props: MatcherRowsProps<S>) {
  const { label, value, set } = props;
  const asText = useSignal(false);
  const read = rowsOf(value);
  if (read !== undefined && !asText.value)
    return (
      <Rows
        {...props}
        read={read}
        write={() => {
          asText.value = true;
        }}
      />
    );
  return (
    <>
      <MatchersField form={props.form} path={props.path} label={label} value={value} set={set} />
      <div class={ui.buttons}>
        <button
          type="button"
          disabled={read === undefined}
          onClick={() => {
            asText.value = false;
          }}
        >
          Show as rows
        </button>
      </div>
    </>
  );
}

function Rows<S extends DescMessage>(props: MatcherRowsProps<S> & { read: readonly Row[]; write(): void }) {
  const { form, path, label, value, set, read, write, mistakes } = props;
  const place = useRef<HTMLFieldSetElement>(null);
  const used = useSignal(false);
  const typed = useSignal<readonly Row[]>(read);
  useEffect(() => form.claim(path, label), [path, label]);
  // What is typed stays as it is, blank rows included, unless the value is another one by now.
  const isTyped = textsOf(typed.value).join("\n") === value.join("\n");
  const own = isTyped ? typed.value : read;
  const rows = own.length === 0 ? [blankRow] : own;
  const known = useLabels(used);
  const change = (next: readonly Row[]) => {
    typed.value = next;
    set(textsOf(next));
  };
  const put = (at: number, part: Partial<MatcherParts>) => {
    const { name, operator, value: compared } = { ...(rows[at] ?? blankRow), ...part };
    change(
      rows.map((row, i) =>
        i === at ? { name, operator, value: compared, text: matcherText(name, operator, compared) } : row,
      ),
    );
  };
  const focusLast = () =>
    queueMicrotask(() =>
      [...(place.current?.querySelectorAll<HTMLInputElement>("[data-label]") ?? [])].at(-1)?.focus(),
    );
  const remove = (at: number) => {
    change(rows.filter((_, i) => i !== at));
    focusLast();
  };
  return (
    <fieldset
      ref={place}
      class={formLook.plainSet}
      aria-label={label}
      onFocusCapture={() => {
        used.value = true;
      }}
    >
      {rows.map((row, at) => {
        const sent = rows.slice(0, at).filter((each) => !isBlank(each)).length;
        const errors = form.errorsAt(`${path}[${sent}]`).map(({ description }) => description);
        const mistake = isBlank(row) ? undefined : mistakes?.get(sent);
        return (
          <MatcherRow
            // Rows have no other name than their place.
            key={at}
            number={at + 1}
            row={row}
            known={known}
            errors={errors.length === 0 && mistake !== undefined ? [mistake] : errors}
            put={(part) => put(at, part)}
            {...((rows.length > 1 || !isBlank(row)) && { remove: () => remove(at) })}
          />
        );
      })}
      <ListErrors form={form} path={path} />
      <div class={ui.buttons}>
        <button
          type="button"
          onClick={() => {
            typed.value = [...rows, blankRow];
            focusLast();
          }}
        >
          Add a matcher
        </button>
        <button type="button" class={ui.plain} onClick={write}>
          Write as text
        </button>
      </div>
    </fieldset>
  );
}

/** Shows the errors of the list as a whole. */
function ListErrors<S extends DescMessage>({ form, path }: { form: Form<S>; path: string }) {
  const texts = form.errorsAt(path).flatMap(({ field, description }) => (field === path ? [description] : []));
  if (texts.length === 0) return null;
  return (
    <p class={ui.fieldError} role="alert">
      {texts.join("; ")}
    </p>
  );
}

interface MatcherRowProps {
  readonly number: number;
  readonly row: Row;
  readonly known: readonly Pick<LabelValues, "name" | "values">[];
  readonly errors: readonly string[];
  put(part: Partial<MatcherParts>): void;
  readonly remove?: () => void;
}

function MatcherRow({ number, row, known, errors, put, remove }: MatcherRowProps) {
  const id = useId();
  const { name, operator, value } = row;
  const values = operator === "=" || operator === "!=" ? (known.find((each) => each.name === name)?.values ?? []) : [];
  const absent = name !== "" && value === "" && (operator === "=" || operator === "!=");
  const wrong = errors.length > 0;
  const described = wrong ? `${id}-error` : absent ? `${id}-help` : undefined;
  return (
    <div class={wrong ? `${formLook.row} ${formLook.wrong}` : formLook.row}>
      <input
        data-label
        aria-label={`Label ${number}`}
        placeholder="label, such as alertname"
        list={`${id}-names`}
        autocomplete="off"
        autocapitalize="off"
        spellcheck={false}
        aria-invalid={wrong || undefined}
        aria-describedby={described}
        value={name}
        onInput={({ currentTarget }) => put({ name: currentTarget.value })}
      />
      <select
        aria-label={`Comparison ${number}`}
        value={operator}
        onChange={({ currentTarget }) => put({ operator: currentTarget.value as Operator })}
      >
        {operators.map((each) => (
          <option key={each} value={each}>
            {words[each]}
          </option>
        ))}
      </select>
      <input
        aria-label={`Value ${number}`}
        placeholder={operator === "=~" || operator === "!~" ? "such as web-.+" : "value"}
        list={`${id}-values`}
        autocomplete="off"
        autocapitalize="off"
        spellcheck={false}
        aria-describedby={described}
        value={value}
        onInput={({ currentTarget }) => put({ value: currentTarget.value })}
      />
      {remove && (
        <button type="button" class={ui.plain} aria-label={`Remove matcher ${number}`} onClick={remove}>
          ×
        </button>
      )}
      {wrong ? (
        <p class={ui.fieldError} id={`${id}-error`} role="alert">
          {errors.join("; ")}
        </p>
      ) : (
        absent && (
          <p class={formLook.help} id={`${id}-help`}>
            Without a value it means alerts that {operator === "=" ? "do not have" : "have"} this label.
          </p>
        )
      )}
      <datalist id={`${id}-names`}>
        {known.map((each) => (
          <option key={each.name} value={each.name} />
        ))}
      </datalist>
      <datalist id={`${id}-values`}>
        {values.map((each) => (
          <option key={each} value={each} />
        ))}
      </datalist>
    </div>
  );
}

/** Every occurrence has this label, but for alerts that came without a name. */
const any = 'alertname!=""';
/** Labels that are offered also where nothing is open. */
const always = ["alertname", "severity"];

/** The labels of what is open now, with their values; asked once a row is used. */
function useLabels(used: ReadonlySignal<boolean>): readonly Pick<LabelValues, "name" | "values">[] {
  const answer = useAnswer(async (signal) => {
    if (!used.value) return [];
    return (await silences.previewSilence({ silence: { matchers: [any] } }, { signal })).labels;
  });
  const found = answer.value.value ?? [];
  const more = always.filter((name) => !found.some((each) => each.name === name));
  return [...more.map((name) => ({ name, values: [] })), ...found];
}
