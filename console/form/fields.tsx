import type { DescMessage } from "@bufbuild/protobuf";
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";
import ui from "../ui/ui.module.css";
import formLook from "./form.module.css";
import type { Form } from "./form.ts";
import { storedSecret } from "./secrets.ts";

/** What all fields of a form have: their place in the message, what they are called, and a word of help. */
interface FieldProps<S extends DescMessage> {
  readonly form: Form<S>;
  /** Its path below the form's message, as errors of the API name it. */
  readonly path: string;
  readonly label: string;
  readonly help?: ComponentChildren;
}

/** How an input is tied to its help and its error. */
interface Tied {
  readonly id: string;
  readonly "aria-describedby": string | undefined;
  readonly "aria-invalid": true | undefined;
}

interface FrameProps<S extends DescMessage> extends FieldProps<S> {
  children(tied: Tied): ComponentChildren;
}

/** A label, an input, its help, and what the server found wrong with it. */
export function Field<S extends DescMessage>({ form, path, label, help, children }: FrameProps<S>) {
  const id = useId();
  useEffect(() => form.claim(path, label), [path, label]);
  const errors = form.errorsAt(path);
  const described = [help !== undefined && `${id}-help`, errors.length > 0 && `${id}-error`].filter(Boolean).join(" ");
  return (
    <div class={errors.length > 0 ? `${formLook.field} ${formLook.wrong}` : formLook.field}>
      <label for={id}>{label}</label>
      {children({
        id,
        "aria-describedby": described === "" ? undefined : described,
        "aria-invalid": errors.length > 0 ? true : undefined,
      })}
      {help !== undefined && (
        <p class={formLook.help} id={`${id}-help`}>
          {help}
        </p>
      )}
      <ErrorText id={`${id}-error`} texts={errors.map(({ field, description }) => within(field, path, description))} />
    </div>
  );
}

/** Of what is within the field, its error says where. */
const within = (field: string, path: string, description: string) =>
  field === path ? description : `${field.slice(path.length).replace(/^\./, "")} ${description}`;

function ErrorText({ id, texts }: { id?: string; texts: readonly string[] }) {
  if (texts.length === 0) return null;
  return (
    <p class={ui.fieldError} id={id} role="alert">
      {texts.join("; ")}
    </p>
  );
}

type FieldErrorsProps<S extends DescMessage> = Omit<FieldProps<S>, "help">;

/** What the server found wrong at a path, where a set of inputs stands that is no single field. */
export function FieldErrors<S extends DescMessage>({ form, path, label }: FieldErrorsProps<S>) {
  useEffect(() => form.claim(path, label), [path, label]);
  return <ErrorText texts={form.errorsAt(path).map(({ field, description }) => within(field, path, description))} />;
}

interface TextProps<S extends DescMessage> extends FieldProps<S> {
  readonly value: string;
  set(value: string): void;
  readonly required?: boolean;
  readonly readOnly?: boolean;
  readonly placeholder?: string;
  /** Lines of a larger text. */
  readonly rows?: number;
  /** What completes what is typed. */
  readonly suggestions?: readonly string[];
}

export function TextField<S extends DescMessage>(props: TextProps<S>) {
  const { value, set, required, readOnly, placeholder, rows, suggestions } = props;
  const list = useId();
  const shared = { value, required, readOnly, placeholder, autocomplete: "off", spellcheck: rows !== undefined };
  return (
    <Field {...props}>
      {(tied) =>
        rows === undefined ? (
          <>
            <input
              {...tied}
              {...shared}
              list={suggestions && list}
              onInput={({ currentTarget }) => set(currentTarget.value)}
            />
            {suggestions && (
              <datalist id={list}>
                {suggestions.map((each) => (
                  <option key={each} value={each} />
                ))}
              </datalist>
            )}
          </>
        ) : (
          <textarea {...tied} {...shared} rows={rows} onInput={({ currentTarget }) => set(currentTarget.value)} />
        )
      }
    </Field>
  );
}

interface NumberProps<S extends DescMessage> extends FieldProps<S> {
  readonly value: number | undefined;
  /** Undefined when the field is empty. */
  set(value: number | undefined): void;
  readonly required?: boolean;
  readonly unit?: string;
  /** Only whole numbers, from 0 on. */
  readonly whole?: boolean;
}

/** A number. What is no number yet stands as it was typed and sets nothing. */
export function NumberField<S extends DescMessage>(props: NumberProps<S>) {
  const { value, set, required, unit, whole } = props;
  const typed = useSignal<string | undefined>(undefined);
  const shown = typed.value !== undefined && numberOf(typed.value) === value ? typed.value : String(value ?? "");
  return (
    <Field {...props}>
      {(tied) => (
        <span class={formLook.withUnit}>
          <input
            {...tied}
            required={required}
            inputMode="decimal"
            autocomplete="off"
            pattern={whole ? "\\s*\\d{1,9}\\s*" : "\\s*[\\-+]?(\\d+\\.?\\d*|\\.\\d+)(e[\\-+]?\\d+)?\\s*"}
            title={whole ? "a whole number of at most 9 digits" : "a number"}
            value={shown}
            onInput={({ currentTarget }) => {
              typed.value = currentTarget.value;
              set(numberOf(currentTarget.value));
            }}
          />
          {unit && <span class={ui.quiet}>{unit}</span>}
        </span>
      )}
    </Field>
  );
}

function numberOf(text: string): number | undefined {
  const value = Number(text);
  return text.trim() === "" || !Number.isFinite(value) ? undefined : value;
}

interface SecretProps<S extends DescMessage> extends FieldProps<S> {
  readonly value: string;
  set(value: string): void;
  readonly required?: boolean;
}

/** A secret: written, never read. One that is stored says so, and stays unless another one is typed or it is removed. */
export function SecretField<S extends DescMessage>(props: SecretProps<S>) {
  const { label, value, set, required } = props;
  const stored = value === storedSecret;
  const wasStored = useRef(false);
  if (stored) wasStored.current = true;
  return (
    <Field {...props}>
      {(tied) => (
        <span class={formLook.secret}>
          <input
            {...tied}
            type="password"
            autocomplete="new-password"
            required={required && !stored}
            placeholder={stored ? "stored; type to replace it" : undefined}
            value={stored ? "" : value}
            onInput={({ currentTarget }) => {
              set(currentTarget.value === "" && wasStored.current ? storedSecret : currentTarget.value);
            }}
          />
          {stored && !required && (
            <button
              type="button"
              aria-label={`Remove: ${label}`}
              onClick={() => {
                wasStored.current = false;
                set("");
              }}
            >
              Remove
            </button>
          )}
        </span>
      )}
    </Field>
  );
}

interface CheckProps<S extends DescMessage> extends FieldProps<S> {
  readonly value: boolean;
  set(value: boolean): void;
}

export function CheckField<S extends DescMessage>({ form, path, label, help, value, set }: CheckProps<S>) {
  const id = useId();
  useEffect(() => form.claim(path, label), [path, label]);
  return (
    <div class={`${formLook.field} ${formLook.check}`}>
      <label>
        <input
          type="checkbox"
          checked={value}
          aria-describedby={help === undefined ? undefined : `${id}-help`}
          onChange={({ currentTarget }) => set(currentTarget.checked)}
        />
        {label}
      </label>
      {help !== undefined && (
        <p class={formLook.help} id={`${id}-help`}>
          {help}
        </p>
      )}
      <ErrorText id={`${id}-error`} texts={form.errorsAt(path).map(({ description }) => description)} />
    </div>
  );
}

interface ChoiceProps<S extends DescMessage, T extends string> extends FieldProps<S> {
  readonly value: T;
  readonly choices: readonly (readonly [value: T, word: string])[];
  set(value: T): void;
}

export function ChoiceField<S extends DescMessage, T extends string>(props: ChoiceProps<S, T>) {
  const { value, choices, set } = props;
  return (
    <Field {...props}>
      {(tied) => (
        <select {...tied} value={value} onChange={({ currentTarget }) => set(currentTarget.value as T)}>
          {choices.map(([each, word]) => (
            <option key={each} value={each}>
              {word}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}
