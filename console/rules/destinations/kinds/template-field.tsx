import type { DestinationSchema } from "#gen/belfry/notifications/v1/destination_pb.ts";
import { TextField } from "../../../form/fields.tsx";
import type { Form } from "../../../form/form.ts";

interface TemplateProps {
  readonly form: Form<typeof DestinationSchema>;
  readonly path: string;
  readonly label: string;
  /** What happens without one. */
  readonly empty?: string;
  readonly value: string;
  readonly rows?: number;
  set(value: string): void;
}

/** A text that is a template. One without `empty` has to be written. */
export function TemplateField({ form, path, label, empty, value, rows = 2, set }: TemplateProps) {
  return (
    <TextField
      form={form}
      path={path}
      label={label}
      value={value}
      rows={rows}
      set={set}
      required={empty === undefined}
      help={`A template: {{{event.name}}} puts the event's name in.${empty === undefined ? "" : ` Empty: ${empty}`}`}
    />
  );
}
