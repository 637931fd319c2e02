import type { Column } from "../ui/column.ts";
import { Time } from "../ui/time.tsx";
import ui from "../ui/ui.module.css";
import type { EventRow } from "./list.ts";
import { SeverityMark, statusWord } from "./words.tsx";

const own: readonly Column<EventRow>[] = [
  {
    key: "severity",
    label: "Severity",
    width: "92px",
    line: 1,
    cell: ({ occurrence }) => <SeverityMark value={occurrence.severity} />,
  },
  {
    key: "name",
    label: "Event",
    width: "minmax(120px, 1.2fr)",
    line: 1,
    cell: ({ event }) => <strong>{event.name}</strong>,
    title: ({ event }) => event.name ?? "",
  },
  {
    key: "entityName",
    label: "Entity",
    width: "minmax(110px, 1.1fr)",
    cell: ({ event }) => event.entityName,
    title: ({ event }) => event.entityName ?? "",
  },
  {
    key: "summary",
    label: "Summary",
    width: "minmax(140px, 2fr)",
    cell: ({ occurrence }) => occurrence.summary,
    title: ({ occurrence }) => occurrence.summary ?? "",
  },
  {
    key: "status",
    label: "Status",
    width: "112px",
    cell: ({ occurrence }) => (
      <>
        {statusWord(occurrence.status)}
        {occurrence.acknowledged && <span class={ui.tag}>acked</span>}
      </>
    ),
  },
  {
    key: "instanceCount",
    label: "Times",
    width: "52px",
    end: true,
    cell: ({ occurrence }) => (occurrence.instanceCount ?? 0n).toLocaleString("en"),
  },
  {
    key: "lastSeen",
    label: "Last seen",
    width: "92px",
    line: 1,
    end: true,
    cell: ({ occurrence }) => <Time at={occurrence.lastSeen} short />,
  },
];

/** What the list can be sorted by. */
export const sortable = ["severity", "name", "entityName", "status", "instanceCount", "lastSeen"];

/** The columns: ours, and before the last ones those that a person added, by the names of fields. */
export function columnsOf(more: readonly string[]): readonly Column<EventRow>[] {
  const added = more.map((field): Column<EventRow> => {
    const text = (row: EventRow) => fieldText(row, field);
    return {
      key: field,
      label: field.replace(/^(?:dimensions|metadataFields|coreProperties)\./, ""),
      width: "minmax(90px, 1fr)",
      cell: text,
      title: text,
    };
  });
  return [...own.slice(0, 4), ...added, ...own.slice(4)];
}

/** The text of a field of an occurrence, by its name in clauses. */
export function fieldText({ event, occurrence }: EventRow, field: string): string {
  const [, map, key = ""] = /^(dimensions|metadataFields|coreProperties)\.(.*)$/s.exec(field) ?? [];
  if (map === undefined) {
    const value = { ...event, ...occurrence, id: event.id }[field as keyof EventRow["event"]] as unknown;
    return value === undefined ? "" : String(value);
  }
  const value: unknown = occurrence[map as "dimensions" | "metadataFields" | "coreProperties"]?.[key];
  if (value === undefined || value === null) return "";
  if (Array.isArray(value)) return value.join(", ");
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}
