import { useId } from "preact/hooks";
import ui from "../ui/ui.module.css";
import clauseLook from "./clause.module.css";
import { type Comparison, type Condition, comparisons, type ValueKind, withoutValue } from "./draft.ts";
import { fixedKind, fixedValues, valueName } from "./fields.ts";

interface ConditionProps {
  condition: Condition;
  error: string | undefined;
  /** The comparisons of the language. */
  has: readonly Comparison[];
  /** The id of the list of known fields. */
  fields: string;
  placeholder: string;
  change(condition: Condition): void;
  remove(): void;
}

/** One comparison: a field, how it compares, and the value, in the form that its kind has. */
export function ConditionRow({ condition, error, has, fields, placeholder, change, remove }: ConditionProps) {
  const id = useId();
  const { field, operation, valueKind } = condition;
  const kind = fixedKind(field) ?? valueKind;
  const values = fixedValues[field];
  const fitting = comparisons.filter(
    ({ name, kinds }) => has.includes(name) && (kinds as readonly string[]).includes(kind),
  );
  const rename = (name: string) => {
    const nextKind = fixedKind(name) ?? (fixedKind(field) ? "text" : valueKind);
    const fits = comparisons.some(
      (each) => each.name === operation && (each.kinds as readonly string[]).includes(nextKind),
    );
    const value = fixedValues[name]?.[0]?.[0] ?? (nextKind === "boolean" ? "true" : condition.value);
    change({ ...condition, field: name, valueKind: nextKind, operation: fits ? operation : "equals", value });
  };
  return (
    <div class={error ? `${clauseLook.condition} ${clauseLook.faulty}` : clauseLook.condition} data-condition>
      <input
        class={clauseLook.conditionField}
        aria-label="Field"
        list={fields}
        value={field}
        placeholder={placeholder}
        autocomplete="off"
        spellcheck={false}
        onInput={({ currentTarget }) => rename(currentTarget.value)}
        aria-invalid={error ? true : undefined}
        aria-describedby={error ? id : undefined}
      />
      <select
        aria-label="Comparison"
        value={operation}
        onChange={({ currentTarget }) => change({ ...condition, operation: currentTarget.value as Comparison })}
      >
        {fitting.map(({ name, word }) => (
          <option key={name} value={name}>
            {word}
          </option>
        ))}
      </select>
      {!withoutValue(operation) && (
        <ConditionValue
          condition={{ ...condition, valueKind: kind }}
          values={operation === "among" ? undefined : values}
          change={change}
        />
      )}
      {!withoutValue(operation) && values === undefined && fixedKind(field) === undefined && (
        <select
          aria-label="Kind of the value"
          value={kind}
          onChange={({ currentTarget }) => {
            const next = currentTarget.value as ValueKind;
            const fits = comparisons.some(
              (each) => each.name === operation && (each.kinds as readonly string[]).includes(next),
            );
            const value = next === "boolean" ? "true" : condition.value;
            change({ ...condition, valueKind: next, operation: fits ? operation : "equals", value });
          }}
        >
          <option value="text">text</option>
          <option value="number">number</option>
          <option value="boolean">yes or no</option>
        </select>
      )}
      <button type="button" class={ui.plain} onClick={remove} aria-label="Remove the condition">
        ×
      </button>
      {error && (
        <p class={ui.fieldError} id={id} role="alert">
          {error}
        </p>
      )}
    </div>
  );
}

interface ValueProps {
  condition: Condition;
  values: readonly (readonly [value: string, word: string])[] | undefined;
  change(condition: Condition): void;
}

function ConditionValue({ condition, values, change }: ValueProps) {
  const { field, value, valueKind } = condition;
  const set = (text: string) => change({ ...condition, value: text });
  if (values) {
    const name = valueName(field, value);
    const known = values.some(([each]) => each === name);
    return (
      <select
        aria-label="Value"
        value={name}
        onChange={({ currentTarget }) => change({ ...condition, value: currentTarget.value, valueKind: "text" })}
      >
        {!known && <option value={name}>{name}</option>}
        {values.map(([each, word]) => (
          <option key={each} value={each}>
            {word}
          </option>
        ))}
      </select>
    );
  }
  if (valueKind === "boolean") {
    return (
      <select aria-label="Value" value={value} onChange={({ currentTarget }) => set(currentTarget.value)}>
        <option value="true">yes</option>
        <option value="false">no</option>
      </select>
    );
  }
  return (
    <input
      aria-label="Value"
      value={value}
      placeholder={condition.operation === "among" ? "one, two, three" : "value"}
      inputMode={valueKind === "number" ? "decimal" : undefined}
      autocomplete="off"
      spellcheck={false}
      onInput={({ currentTarget }) => set(currentTarget.value)}
    />
  );
}
