import { listOf, listText } from "../data/address.ts";
import { type Column, textColumn } from "../ui/column.ts";
import { Time, timeText } from "../ui/time.tsx";
import ui from "../ui/ui.module.css";
import { calledOf, entityText, type SharedParts } from "./entity-names.ts";
import eventsLook from "./events.module.css";
import type { EventRow } from "./list-rows.ts";
import { narrowBy } from "./terms.ts";
import { SeverityMark, severityOf, statusWord } from "./words.tsx";

interface Shown {
  /** The parts of their entities' names that are left out. */
  readonly parts: SharedParts;
  readonly labels: ReadonlyMap<string, readonly string[]>;
  /** Occurrences of more than one status are listed. */
  readonly withStatus: boolean;
}

function own({ parts, labels, withStatus }: Shown): readonly Column<EventRow>[] {
  return [
    {
      key: "severity",
      label: "Severity",
      bare: true,
      width: "24px",
      line: 1,
      cell: ({ occurrence }) => <SeverityMark value={occurrence.severity} short />,
      title: ({ occurrence }) => severityOf(occurrence.severity).word,
    },
    {
      key: "name",
      label: "Event",
      width: "minmax(200px, 2.7fr)",
      line: 1,
      link: true,
      cell: ({ event }) => <strong>{event.name}</strong>,
      title: ({ event }) => event.name ?? "",
      beside: ({ event, occurrence }) => (
        <>
          {(occurrence.instanceCount ?? 0n) > 1n && (
            <span class={ui.quiet}>×{occurrence.instanceCount?.toLocaleString("en")}</span>
          )}
          {occurrence.acknowledged && <span class={ui.tag}>acked</span>}
          <Labels keys={labels.get(event.name ?? "") ?? []} values={occurrence.metadataFields ?? {}} />
        </>
      ),
    },
    {
      key: "entityName",
      label: "Entity",
      width: "minmax(110px, 0.9fr)",
      cell: ({ event }) => entityText(calledOf(event), parts),
      title: ({ event }) => event.entityName ?? "",
    },
    textColumn("summary", "Summary", "minmax(120px, 1.4fr)", ({ occurrence }) => occurrence.summary ?? ""),
    ...(withStatus
      ? [
          textColumn<EventRow>("status", "Status", "92px", ({ occurrence }) => statusWord(occurrence.status), {
            line: 0,
          }),
        ]
      : []),
    {
      key: "startTime",
      label: "Age",
      width: "64px",
      line: 1,
      end: true,
      cell: ({ occurrence }) => <Time at={occurrence.startTime} age />,
    },
    {
      key: "lastSeen",
      label: "Last seen",
      width: "84px",
      line: 0,
      end: true,
      cell: ({ occurrence }) => <Time at={occurrence.lastSeen} short />,
    },
  ];
}

/** The values of these labels, as many as there is room for, each of which narrows the list. */
function Labels({ keys, values }: { keys: readonly string[]; values: Readonly<Record<string, unknown>> }) {
  const shown = keys.flatMap((key) => (values[key] === undefined ? [] : [[key, String(values[key])] as const]));
  if (shown.length === 0) return null;
  return (
    <span class={eventsLook.labels}>
      {shown.map(([key, value]) => (
        <button
          key={key}
          type="button"
          // By keyboard the filters do it.
          tabIndex={-1}
          title={`${key}: ${value}\nPress to list only these, with Alt only others`}
          onClick={({ altKey }) => narrowBy(key, value, altKey)}
        >
          {value}
        </button>
      ))}
    </span>
  );
}

/** Keys of the columns that the list can be sorted by. */
export const sortable = ["severity", "name", "entityName", "status", "startTime", "lastSeen"];

/** Built-in columns in their usual order, with their labels in the choice of columns. */
export const builtIn: ReadonlyMap<string, string> = new Map([
  ["*severity", "Severity"],
  ["*name", "Event"],
  ["*entityName", "Entity"],
  ["*summary", "Summary"],
  ["*status", "Status"],
  ["*startTime", "Age"],
  ["*lastSeen", "Last seen"],
]);

/** The column that cannot be hidden: it links to the occurrence. */
export const nameKey = "*name";

/** Returns those columns that are fields of events. */
export const fieldsIn = (columns: readonly string[]) => columns.filter((column) => !builtIn.has(column));

/** Returns all built-in columns, with these fields before the status and the times. */
const withAllBuiltIn = (fields: readonly string[]) => [...builtIn.keys()].toSpliced(4, 0, ...fields);

/** Returns the columns to show, in order. An address without the name's column adds its fields to all built-in ones. Reads signals. */
export function chosenColumns(): string[] {
  const listed = [...new Set(listOf("columns"))];
  return listed.includes(nameKey) ? listed : withAllBuiltIn(fieldsIn(listed));
}

/** Returns the address's text for these columns: the fields alone if every built-in column is in its usual place. */
export function columnsText(columns: readonly string[]): string {
  const fields = fieldsIn(columns);
  return listText(listText(columns) === listText(withAllBuiltIn(fields)) ? fields : columns);
}

/** Returns the columns of these names, built-in or of fields; some of them wide. */
export function columnsOf(
  chosen: readonly string[],
  wide: readonly string[],
  shown: Shown,
): readonly Column<EventRow>[] {
  const all = new Map(own(shown).map((column) => [`*${column.key}`, column]));
  return chosen.flatMap((name) => {
    if (builtIn.has(name)) return all.get(name) ?? [];
    const label = name.replace(/^(?:dimensions|metadataFields|coreProperties)\./, "");
    const width = wide.includes(name) ? "minmax(220px, 3fr)" : "minmax(90px, 1fr)";
    return textColumn<EventRow>(name, label, width, (row) => fieldText(row, name, timeText));
  });
}

/** The fields of events and occurrences that are moments, in ms since the epoch. */
export const times = ["startTime", "lastSeen", "endTime", "expiresAt", "createTime", "updateTime"];

/** A moment as files hold it, which spreadsheets and programs read. */
export const isoText = (ms: number) => new Date(ms).toISOString();

/** The text of a field of an occurrence, by its name in clauses; a moment as `writeTime` writes it. */
export function fieldText({ event, occurrence }: EventRow, field: string, writeTime = isoText): string {
  const [, map, key = ""] = /^(dimensions|metadataFields|coreProperties)\.(.*)$/s.exec(field) ?? [];
  if (map === undefined) {
    const value = { ...event, ...occurrence, id: event.id }[field as keyof EventRow["event"]] as unknown;
    // A name of no field is a key of dimensions or else of metadata, as in clauses.
    if (value === undefined) return valueText(occurrence.dimensions?.[field] ?? occurrence.metadataFields?.[field]);
    return times.includes(field) && typeof value === "bigint" ? writeTime(Number(value)) : String(value);
  }
  return valueText(occurrence[map as "dimensions" | "metadataFields" | "coreProperties"]?.[key]);
}

/** The text of a value of a map; of a list, its values' with commas. */
function valueText(value: unknown): string {
  if (value === undefined || value === null) return "";
  if (Array.isArray(value)) return value.join(", ");
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}
