import { toJson } from "@bufbuild/protobuf";
import { useSignal } from "@preact/signals";
import { type Event, EventSchema } from "#gen/belfry/events/v1/event_pb.ts";
import { EventQueryService } from "#gen/belfry/events/v1/query_service_pb.ts";
import { clientOf, failureOfAsking } from "../data/calls.ts";
import { byteOrderMark, csvLine, download } from "../data/download.ts";
import { fieldText, isoText, times } from "./columns.tsx";
import eventsLook from "./events.module.css";
import { type QueryInit, type Sort, sortBy } from "./query.ts";
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

/** Writes all that the list finds, not only what is loaded, to a file: page by page, with the progress shown, until it is cancelled. */
export function Export({
  query,
  sort,
  columns,
}: {
  query: () => QueryInit;
  sort: () => Sort;
  columns: readonly string[];
}) {
  const state = useSignal<{ done: number; of: number; end: AbortController } | undefined>(undefined);
  const failure = useSignal("");
  const run = async (form: "csv" | "json") => {
    const end = new AbortController();
    failure.value = "";
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
      if (!end.signal.aborted) failure.value = failureOfAsking(error).message;
    }
    state.value = undefined;
  };
  const now = state.value;
  if (now) {
    return (
      <span class={eventsLook.export} role="status">
        {now.done} of {now.of}
        <button type="button" onClick={() => now.end.abort()}>
          Cancel
        </button>
      </span>
    );
  }
  return (
    <span class={eventsLook.export}>
      <button type="button" onClick={() => void run("csv")}>
        Export CSV
      </button>
      <button type="button" onClick={() => void run("json")}>
        Export JSON
      </button>
      {failure.value && <span role="alert">{failure.value}</span>}
    </span>
  );
}
