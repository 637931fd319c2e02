import { create } from "@bufbuild/protobuf";
import { MetricDictionaryService } from "#gen/belfry/dictionary/v1/metric_entry_service_pb.ts";
import { address, goTo, linkTo } from "../../data/address.ts";
import { useList } from "../../data/list.ts";
import { may } from "../../data/session.ts";
import { type Column, textColumn } from "../../ui/column.ts";
import { ListScreen } from "../../ui/list-screen.tsx";
import { One } from "../../ui/one.tsx";
import { Empty } from "../../ui/problem.tsx";
import { passesFilter } from "../../ui/text-filters.tsx";
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
  textColumn("label", "Called", "minmax(140px, 1.2fr)", ({ label }) => label),
  textColumn("units", "Unit", "90px", unitsOf, { line: 1 }),
  { key: "tags", label: "Tags", width: "minmax(100px, 1fr)", line: 0, cell: ({ tags }) => tags.join(", ") },
  textColumn("origin", "Whose", "minmax(120px, 1fr)", originOf),
];

/** Shows the names and units of metrics and fields: `#/settings/dictionary/<kind>/<name>`. */
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
  const list = useList(
    () => ({}),
    async (_asked, _token, options) => {
      const rows: readonly Entry[] = await kind.list(options);
      return { rows, next: "", total: rows.length };
    },
  );
  const { rows, total, failure, again } = list;
  const { parameters } = address.value;
  const opened = rows.find((entry) => entry.name === name);
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
        {total !== undefined && opened === undefined && <Empty title="There is no entry of this name." />}
      </One>
    );
  }
  return (
    <ListScreen
      title="Dictionary"
      list={list}
      filter="Words of name, label or tags"
      passes={(entry) => passesFilter(entry.name, entry.label, entry.tags.join(" "))}
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
      make={
        may(MetricDictionaryService.method.createMetricEntry) && [
          "New entry",
          linkTo(address.value.path.slice(0, 2), { new: "1" }),
        ]
      }
      none="There are no entries yet."
      noMatch="No entry matches."
      columns={columns}
      rowKey={(entry) => entry.name}
      hrefOf={(entry) => linkTo(["settings", "dictionary", kindName, entry.name])}
    />
  );
}
