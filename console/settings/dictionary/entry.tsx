import type { MessageShape } from "@bufbuild/protobuf";
import type { MetricEntry } from "#gen/belfry/dictionary/v1/metric_entry_pb.ts";
import { MetricDictionaryService } from "#gen/belfry/dictionary/v1/metric_entry_service_pb.ts";
import { goTo, linkTo } from "../../data/address.ts";
import { say } from "../../data/notice.ts";
import { may } from "../../data/session.ts";
import { CheckField, TextField } from "../../form/fields.tsx";
import formLook from "../../form/form.module.css";
import { type Form, useForm } from "../../form/form.ts";
import { NamesField } from "../../form/names-field.tsx";
import { FormEnd } from "../../form/outcome.tsx";
import { AskFirst } from "../../ui/ask-first.tsx";
import ui from "../../ui/ui.module.css";
import type { Entry, EntrySchema, Kind } from "./kinds.ts";

type Message = MessageShape<EntrySchema>;

interface EntryProps {
  readonly kindName: string;
  readonly kind: Kind;
  readonly stored: Message;
  /** The tenant has no entry of its own yet: saving makes one. */
  readonly isNew: boolean;
  /** Reads all again. */
  again(): void;
}

const textFields = ["label", "description", "tags"];
const metricFields = ["units", "minimum", "maximum", "scale_factor", "scale_factor_units", "is_rate"];

/** The form of an entry. Over an entry that comes with Belfry it makes the tenant's own. */
export function EntryForm({ kindName, kind, stored, isNew, again }: EntryProps) {
  const isMetric = kindName === "metrics";
  const paths = isMetric ? [...textFields, ...metricFields] : textFields;
  const form = useForm(kind.schema, {
    key: `dictionary/${kindName}/${isNew ? "new" : ""}/${stored.name}`,
    stored,
    prefix: kind.prefix,
    send: (entry) => (isNew ? kind.create(entry) : kind.update(entry, paths)),
    done(entry) {
      say(isNew ? `"${entry.name}" has an entry of yours.` : `The entry of "${entry.name}" is changed.`, async () => {
        await (isNew ? kind.remove(entry.name) : kind.update(stored, paths));
        again();
      });
      again();
      goTo(linkTo(["settings", "dictionary", kindName, entry.name]));
    },
  });
  const { name, label, description, tags } = form.value;
  return (
    <form class={formLook.form} onSubmit={form.submit} aria-label="Entry">
      {stored.name === "" ? (
        <TextField
          form={form}
          path="name"
          label="Name"
          required
          value={name}
          set={(next) => form.change({ name: next })}
          help="The name in data and conditions. It cannot be changed later."
        />
      ) : (
        isNew && <p class={ui.quiet}>This entry comes with Belfry. Saving makes one of your own that replaces it.</p>
      )}
      <TextField form={form} path="label" label="Called" value={label} set={(next) => form.change({ label: next })} />
      <TextField
        form={form}
        path="description"
        label="What it means"
        rows={3}
        value={description}
        set={(next) => form.change({ description: next })}
      />
      {isMetric && <MetricFields form={form as unknown as Form<EntrySchema>} />}
      <NamesField form={form} path="tags" label="Tags" values={tags} set={(next) => form.change({ tags: next })} />
      {may(MetricDictionaryService.method.createMetricEntry) && (
        <FormEnd form={form} schema={kind.schema} send={isNew ? "Make the entry" : "Save"} />
      )}
    </form>
  );
}

const metricTexts = [
  ["units", "Unit", "As graphs show it beside the axis."],
  ["minimum", "Lowest value that graphs show", ""],
  ["maximum", "Highest value that graphs show", ""],
  ["scaleFactor", "Values are multiplied by", "To be shown, as in 0.000001."],
  ["scaleFactorUnits", "From unit to unit", "As in B->MB."],
] as const;

function MetricFields({ form }: { form: Form<EntrySchema> }) {
  const entry = form.value as MetricEntry;
  const change = (fields: Partial<MetricEntry>) => form.change(fields as Partial<Message>);
  return (
    <>
      {metricTexts.map(([name, label, help]) => (
        <TextField
          key={name}
          form={form}
          path={name}
          label={label}
          value={entry[name]}
          set={(next) => change({ [name]: next })}
          {...(help !== "" && { help })}
        />
      ))}
      <CheckField
        form={form}
        path="isRate"
        label="Shown as its change over time"
        help="As of a counter: a decrease means that it started again."
        value={entry.isRate}
        set={(next) => change({ isRate: next })}
      />
    </>
  );
}

interface RemoveProps {
  readonly kindName: string;
  readonly kind: Kind;
  readonly entry: Entry;
  again(): void;
}

export function RemoveEntry({ kindName, kind, entry, again }: RemoveProps) {
  if (!may(MetricDictionaryService.method.deleteMetricEntry)) return null;
  return (
    <AskFirst
      action="Delete"
      question={`Delete your entry of "${entry.name}"?`}
      act={async () => {
        await kind.remove(entry.name);
        say(`Your entry of "${entry.name}" is deleted.`, async () => {
          await kind.create(entry as Message);
          again();
        });
        again();
        if (entry.defaultEntry === undefined) goTo(linkTo(["settings", "dictionary", kindName]));
      }}
    >
      <p>
        {entry.defaultEntry ? "The one that comes with Belfry is in effect again." : "Its name is shown as it is then."}
      </p>
    </AskFirst>
  );
}
