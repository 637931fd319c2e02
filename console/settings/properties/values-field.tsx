import type { DescMessage, JsonObject } from "@bufbuild/protobuf";
import { useSignal } from "@preact/signals";
import { typeableText, typedValue } from "../../data/typed-value.ts";
import { FieldErrors } from "../../form/fields.tsx";
import formLook from "../../form/form.module.css";
import type { Form } from "../../form/form.ts";
import ui from "../../ui/ui.module.css";

interface Row {
  readonly id: number;
  readonly name: string;
  readonly value: string;
}

interface ValuesProps<S extends DescMessage> {
  readonly form: Form<S>;
  readonly path: string;
  readonly values: JsonObject;
  set(values: JsonObject): void;
}

const rowsOf = (values: JsonObject): Row[] =>
  Object.entries(values).map(([name, value], id) => ({ id, name, value: typeableText(value) }));

const valuesOf = (rows: readonly Row[]): JsonObject =>
  Object.fromEntries(rows.filter(({ name }) => name !== "").map(({ name, value }) => [name, typedValue(value)]));

/** Properties with their values, a row each. */
export function ValuesField<S extends DescMessage>({ form, path, values, set }: ValuesProps<S>) {
  const rows = useSignal<readonly Row[] | undefined>(undefined);
  // Rows follow values that came from elsewhere than from them.
  if (rows.value === undefined || JSON.stringify(valuesOf(rows.value)) !== JSON.stringify(values)) {
    const next = rowsOf(values);
    rows.value = next.length > 0 ? next : [{ id: 0, name: "", value: "" }];
  }
  const put = (next: readonly Row[]) => {
    rows.value = next;
    set(valuesOf(next));
  };
  const change = (id: number, part: Partial<Row>) =>
    put((rows.value ?? []).map((row) => (row.id === id ? { ...row, ...part } : row)));
  return (
    <fieldset>
      <legend>Properties that are set</legend>
      {rows.value.map((row) => (
        <div key={row.id} class={ui.inline}>
          <input
            class={ui.short}
            aria-label="Name of the property"
            placeholder="name"
            value={row.name}
            onInput={({ currentTarget }) => change(row.id, { name: currentTarget.value })}
          />
          <input
            aria-label="Value"
            placeholder="value"
            value={row.value}
            onInput={({ currentTarget }) => change(row.id, { value: currentTarget.value })}
          />
          <button
            type="button"
            class={ui.plain}
            aria-label={`Remove the property ${row.name}`}
            onClick={() => put((rows.value ?? []).filter(({ id }) => id !== row.id))}
          >
            ×
          </button>
        </div>
      ))}
      <div class={ui.buttons}>
        <button
          type="button"
          class={ui.plain}
          onClick={() => {
            const at = Math.max(-1, ...(rows.value ?? []).map(({ id }) => id)) + 1;
            rows.value = [...(rows.value ?? []), { id: at, name: "", value: "" }];
          }}
        >
          + Property
        </button>
      </div>
      <p class={formLook.help}>A number, true, false or [a list] is what it looks like; in quotes it is text.</p>
      <FieldErrors form={form} path={path} label="Properties" />
    </fieldset>
  );
}
