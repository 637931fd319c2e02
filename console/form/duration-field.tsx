import type { DescMessage } from "@bufbuild/protobuf";
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import ui from "../ui/ui.module.css";
import { Field } from "./fields.tsx";
import formLook from "./form.module.css";
import type { Form } from "./form.ts";

const units = [
  ["seconds", 1],
  ["minutes", 60],
  ["hours", 3600],
  ["days", 86_400],
] as const;

interface DurationProps<S extends DescMessage> {
  readonly form: Form<S>;
  readonly path: string;
  readonly label: string;
  readonly help?: ComponentChildren;
  readonly required?: boolean;
  /** In seconds; undefined: the field is empty. */
  readonly value: number | undefined;
  set(seconds: number | undefined): void;
}

/** A length of time: a number and its unit. What is no number yet stands as it was typed and sets nothing. */
export function DurationField<S extends DescMessage>(props: DurationProps<S>) {
  const { label, required, value, set } = props;
  const unit = useSignal(largestUnit(value));
  const typed = useSignal<string | undefined>(undefined);
  const secondsOf = (text: string, size: number) => {
    const number = Number(text);
    return text.trim() === "" || !Number.isFinite(number) ? undefined : Math.round(number * size);
  };
  // Another value than what was typed came from elsewhere.
  if (typed.peek() !== undefined && secondsOf(typed.peek() ?? "", unit.peek()) !== value) {
    typed.value = undefined;
    unit.value = largestUnit(value);
  }
  const shown = typed.value ?? (value === undefined ? "" : String(value / unit.value));
  const put = (text: string, size: number) => {
    typed.value = text;
    unit.value = size;
    set(secondsOf(text, size));
  };
  return (
    <Field {...props}>
      {(tied) => (
        <span class={formLook.withUnit}>
          <input
            {...tied}
            class={ui.short}
            required={required}
            inputMode="decimal"
            autocomplete="off"
            pattern="\s*(\d+\.?\d*|\.\d+)\s*"
            title="a number"
            value={shown}
            onInput={({ currentTarget }) => put(currentTarget.value, unit.value)}
          />
          <select
            aria-label={`Unit of: ${label}`}
            value={String(unit.value)}
            onChange={({ currentTarget }) => put(shown, Number(currentTarget.value))}
          >
            {units.map(([word, size]) => (
              <option key={word} value={String(size)}>
                {word}
              </option>
            ))}
          </select>
        </span>
      )}
    </Field>
  );
}

/** The largest unit of which it is a whole number. */
function largestUnit(seconds = 0): number {
  return units.findLast(([, size]) => seconds !== 0 && seconds % size === 0)?.[1] ?? 60;
}
