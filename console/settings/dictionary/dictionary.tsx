import { create } from "@bufbuild/protobuf";
import { MetricDictionaryService } from "#gen/belfry/dictionary/v1/metric_entry_service_pb.ts";
import { address, goTo, linkTo } from "../../data/address.ts";
import { useAnswer } from "../../data/answer.ts";
import { may } from "../../data/session.ts";
import { Empty } from "../../ui/problem.tsx";
import { type Column, Table } from "../../ui/table.tsx";
import { Listing, One, passesFilter } from "../listing.tsx";
import { EntryForm, RemoveEntry } from "./entry.tsx";
import { type Entry, type Kind, kinds } from "./kinds.ts";

const unitsOf = (entry: Entry) => ("units" in entry ? entry.units : "");
export const isShipped = ({ layer }: Entry) => layer === "DEFAULT";
const originOf = (entry: Entry) => {
  if (isShipped(entry)) return "comes with Belfry";
  return entry.defaultEntry ? "yours, over the one that comes with Belfry" : "yours";
};

const columns: readonly Column<Entry>[] = [
  {
    key: "name",
    label: "Name",
    width: "minmax(180px, 1.5fr)",
    line: 1,
    cell: ({ name }) => <code>{name}</code>,
    title: ({ name }) => name,
  },
  {
    key: "label",
    label: "Called",
    width: "minmax(140px, 1.2fr)",
    line: 2,
    cell: ({ label }) => label,
    title: ({ label }) => label,
  },
  { key: "units", label: "Unit", width: "90px", line: 1, cell: unitsOf, title: unitsOf },
  { key: "tags", label: "Tags", width: "minmax(100px, 1fr)", line: 0, cell: ({ tags }) => tags.join(", ") },
  { key: "origin", label: "Whose", width: "minmax(120px, 1fr)", line: 2, cell: originOf, title: originOf },
];

/** What metrics and fields are called, and in which units they are: `#/settings/dictionary/<kind>/<name>`. */
export function Dictionary() {
  const [, , kindName = "metrics", name = ""] = address.value.path;
  const kind = kinds[kindName];
  if (kind === undefined) return <Empty title="There is no such dictionary." />;
  return <OfKind key={kindName} kindName={kindName} kind={kind} name={name} />;
}

interface OfKindProps {
  kindName: string;
  kind: Kind;
  name: string;
}

function OfKind({ kindName, kind, name }: OfKindProps) {
  const answer = useAnswer((signal) => kind.list(signal));
  const { value, failure, again } = answer.value;
  const { parameters } = address.value;
  const opened = value?.find((entry) => entry.name === name);
  if (parameters.has("new")) {
    const title = `New entry for a ${kind.one}`;
    return (
      <One title={title} of="entries">
        <EntryForm key="new" kindName={kindName} kind={kind} stored={create(kind.schema)} isNew again={again} />
      </One>
    );
  }
  if (name !== "") {
    return (
      <One
        title={name}
        of="entries"
        failure={failure}
        again={again}
        tools={
          opened && !isShipped(opened) && <RemoveEntry kindName={kindName} kind={kind} entry={opened} again={again} />
        }
      >
        {opened && (
          <EntryForm
            key={`${name} ${isShipped(opened)}`}
            kindName={kindName}
            kind={kind}
            stored={opened}
            isNew={isShipped(opened)}
            again={again}
          />
        )}
        {value && opened === undefined && <Empty title="There is no entry of this name." />}
      </One>
    );
  }
  const rows = value?.filter((entry) => passesFilter(entry.name, entry.label, entry.tags.join(" "))) ?? [];
  return (
    <Listing
      title="Dictionary"
      total={value?.length}
      failure={failure}
      again={again}
      filter="Words of name, label or tags"
      make={may(MetricDictionaryService.method.createMetricEntry) && "New entry"}
      tools={
        <select
          aria-label="Entries of"
          value={kindName}
          onChange={({ currentTarget }) => goTo(linkTo(["settings", "dictionary", currentTarget.value]))}
        >
          {Object.entries(kinds).map(([each, { label }]) => (
            <option key={each} value={each}>
              {label}
            </option>
          ))}
        </select>
      }
    >
      {value && rows.length === 0 ? (
        <Empty title="No entry matches." />
      ) : (
        <Table
          label="Dictionary"
          rows={rows}
          columns={columns}
          rowKey={(entry) => entry.name}
          open={(entry) => goTo(linkTo(["settings", "dictionary", kindName, entry.name]))}
        />
      )}
    </Listing>
  );
}
