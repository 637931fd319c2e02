import { toJson } from "@bufbuild/protobuf";
import { type Signal, useSignal } from "@preact/signals";
import { type Event, EventSchema } from "#gen/belfry/events/v1/event_pb.ts";
import { EventQueryService } from "#gen/belfry/events/v1/query_service_pb.ts";
import { clientOf, failureOfOneRead } from "../data/calls.ts";
import { byteOrderMark, csvLine, download } from "../data/download.ts";
import { sayFailure } from "../data/notice.ts";
import { fieldText, isoText, times } from "./columns.tsx";
import eventsLook from "./events.module.css";
import type { Sort } from "./list-rows.ts";
import { type QueryInit, sortBy } from "./query.ts";
import { severityOf, statusWord } from "./words.tsx";

const events = clientOf(EventQueryService);

const csvFields = [
  "name",
  "entityName",
  "entity",
  "summary",
  "acknowledged",
  "instanceCount",
  "startTime",
  "lastSeen",
  "endTime",
];

/** An event as the API writes it, but with moments that people can read. */
function jsonText(event: Event): string {
  const written = toJson(EventSchema, event) as Record<string, unknown> & { occurrences?: Record<string, unknown>[] };
  for (const part of [written, ...(written.occurrences ?? [])])
    for (const name of times) if (typeof part[name] === "string") part[name] = isoText(Number(part[name]));
  return JSON.stringify(written);
}

/** Progress of an export that is running. */
type ExportState = Signal<{ done: number; of: number; end: AbortController } | undefined>;

/** Returns the state of the export that a screen starts and whose progress it shows. */
export const useExport = (): ExportState => useSignal(undefined);

interface ExportProps {
  readonly state: ExportState;
  query(): QueryInit;
  sort(): Sort;
  readonly columns: readonly string[];
}

/** Writes all that the list finds, not only what is loaded, to a file: page by page, until it is cancelled. */
export function Export({ state, query, sort, columns }: ExportProps) {
  const run = async (form: "csv" | "json") => {
    if (state.peek() !== undefined) return;
    const end = new AbortController();
    state.value = { done: 0, of: 0, end };
    const texts: string[] = [];
    const fields = [...csvFields, ...columns];
    if (form === "csv") texts.push(byteOrderMark + csvLine(["id", "severity", "status", ...fields]));
    try {
      for (let cursor: string | undefined = "", done = 0; cursor !== undefined; ) {
        const asked = { ...query(), sortBy: sortBy(sort()), pageInput: { limit: 500, cursor } };
        const { results, pageInfo } = await events.searchEvents({ query: asked }, { signal: end.signal });
        for (const event of results) {
          if (form === "json") texts.push(`${texts.length === 0 ? "[" : ","}\n${jsonText(event)}`);
          else {
            for (const occurrence of event.occurrences) {
              const words = [occurrence.id, severityOf(occurrence.severity).word, statusWord(occurrence.status)];
              texts.push(csvLine([...words, ...fields.map((field) => fieldText({ event, occurrence }, field))]));
            }
          }
        }
        done += results.length;
        state.value = { done, of: Number(pageInfo?.totalCount ?? 0n), end };
        cursor = pageInfo?.hasNext ? pageInfo.endCursor : undefined;
      }
      if (form === "json") texts.push(texts.length === 0 ? "[]\n" : "\n]\n");
      download(`events.${form}`, form === "csv" ? "text/csv" : "application/json", texts);
    } catch (error) {
      if (!end.signal.aborted) sayFailure(`Export failed. ${failureOfOneRead(error).message}`);
    }
    state.value = undefined;
  };
  // A disabled button would lose the focus.
  const running = state.value !== undefined;
  return (
    <span class={eventsLook.export}>
      <button type="button" aria-disabled={running} onClick={() => void run("csv")}>
        Export CSV
      </button>
      <button type="button" aria-disabled={running} onClick={() => void run("json")}>
        Export JSON
      </button>
    </span>
  );
}

/** Shows how far the export is, with the button that cancels it: outside the menu, which a press beside it closes. */
export function ExportProgress({ state }: { state: ExportState }) {
  const now = state.value;
  if (now === undefined) return null;
  return (
    <span class={eventsLook.export} role="status">
      {now.done.toLocaleString("en")} of {now.of.toLocaleString("en")} exported
      <button type="button" onClick={() => now.end.abort()}>
        Cancel export
      </button>
    </span>
  );
}
