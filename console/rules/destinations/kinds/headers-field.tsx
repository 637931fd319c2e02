import { useSignal } from "@preact/signals";
import type { DestinationSchema } from "#gen/belfry/notifications/v1/destination_pb.ts";
import type { Form } from "../../../form/form.ts";
import { type Pair, PairsField } from "./pairs-field.tsx";

type Headers = Readonly<Record<string, string>>;

interface HeadersProps {
  readonly form: Form<typeof DestinationSchema>;
  readonly path: string;
  readonly headers: Headers;
  /** As they are stored. */
  readonly stored: Headers;
  set(headers: Record<string, string>): void;
}

const headersMax = 100;

/** More headers of a request, in rows: a name that is half typed, or stands twice, is no key of the message yet. */
export function HeadersField({ form, path, headers, stored, set }: HeadersProps) {
  const typed = useSignal<readonly Pair[]>([]);
  // What came from elsewhere, as by a discard, replaces the rows.
  const rows = same(Object.fromEntries(typed.value), headers) ? typed.value : Object.entries(headers);
  return (
    <PairsField
      form={form}
      path={path}
      label="Headers"
      help="More headers of the request, such as authorization. Their values are secrets."
      item="header"
      pairs={rows}
      secret
      itemsMax={headersMax}
      set={(pairs) => {
        // What was typed and removed again leaves what is stored.
        const whole = pairs.map(([name, value]): Pair => [name, value === "" ? (stored[name] ?? "") : value]);
        typed.value = whole;
        set(Object.fromEntries(whole));
      }}
    />
  );
}

const same = (one: Headers, other: Headers) =>
  Object.keys(one).length === Object.keys(other).length &&
  Object.entries(one).every(([name, value]) => Object.hasOwn(other, name) && other[name] === value);
