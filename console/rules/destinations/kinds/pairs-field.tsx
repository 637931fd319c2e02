import { useId } from "preact/hooks";
import type { DestinationSchema } from "#gen/belfry/notifications/v1/destination_pb.ts";
import { FieldErrors } from "../../../form/fields.tsx";
import formLook from "../../../form/form.module.css";
import type { Form } from "../../../form/form.ts";
import { storedSecret } from "../../../form/secrets.ts";
import ui from "../../../ui/ui.module.css";

export type Pair = readonly [name: string, value: string];

interface PairsProps {
  readonly form: Form<typeof DestinationSchema>;
  readonly path: string;
  readonly label: string;
  readonly help: string;
  /** What one row is, as in `header`. */
  readonly item: string;
  readonly pairs: readonly Pair[];
  set(pairs: Pair[]): void;
  /** The values are secrets, and names are given once. */
  readonly secret?: boolean;
  readonly itemsMax: number;
}

/** Rows of a name and a value. */
export function PairsField({ form, path, label, help, item, pairs, set, secret = false, itemsMax }: PairsProps) {
  const id = useId();
  const put = (at: number, pair: Pair) => set(pairs.map((each, other) => (other === at ? pair : each)));
  return (
    <fieldset aria-describedby={id}>
      <legend>{label}</legend>
      <p class={formLook.help} id={id}>
        {help}
      </p>
      {pairs.map(([name, value], at) => (
        // A row is its place: its name changes as it is typed.
        <div key={at} class={formLook.pair}>
          <input
            aria-label={`Name of ${item} ${at + 1}`}
            placeholder="name"
            autocomplete="off"
            required
            value={name}
            ref={(input) => {
              const twice = secret && pairs.some(([other], place) => place < at && other === name);
              input?.setCustomValidity(twice ? `There is a ${item} of this name already.` : "");
            }}
            // A secret is stored under its name: under another one it is not known.
            onInput={({ currentTarget }) =>
              put(at, [currentTarget.value, secret && value === storedSecret ? "" : value])
            }
          />
          <PairValue item={item} at={at} value={value} secret={secret} set={(text) => put(at, [name, text])} />
          <button
            type="button"
            aria-label={`Remove ${item} ${at + 1}${name && `, ${name}`}`}
            onClick={() => set(pairs.toSpliced(at, 1))}
          >
            ×
          </button>
        </div>
      ))}
      <FieldErrors form={form} path={path} label={label} />
      <div class={ui.buttons}>
        <button type="button" disabled={pairs.length >= itemsMax} onClick={() => set([...pairs, ["", ""]])}>
          Add a {item}
        </button>
      </div>
    </fieldset>
  );
}

interface ValueProps {
  readonly item: string;
  readonly at: number;
  readonly value: string;
  readonly secret: boolean;
  set(value: string): void;
}

function PairValue({ item, at, value, secret, set }: ValueProps) {
  const stored = secret && value === storedSecret;
  const shared = {
    "aria-label": `Value of ${item} ${at + 1}`,
    onInput: ({ currentTarget }: { currentTarget: HTMLInputElement }) => set(currentTarget.value),
  };
  if (!secret) return <input {...shared} placeholder="value" autocomplete="off" value={value} />;
  return (
    <input
      {...shared}
      type="password"
      placeholder={stored ? "stored; type to replace it" : "value"}
      autocomplete="new-password"
      required={!stored}
      value={stored ? "" : value}
    />
  );
}
