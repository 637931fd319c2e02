import { create } from "@bufbuild/protobuf";
import { TriggerTypeSchema } from "#gen/belfry/notifications/v1/trigger_pb.ts";
import { Problem } from "../../ui/problem.tsx";
import ui from "../../ui/ui.module.css";
import { Matched, usePreview } from "../triggers/preview.tsx";

const path = /^type\.event\.query\.matchers\[(\d+)\]/;

/** What matchers would have matched, asked as they are typed, and what is wrong with them, by their places. */
export function useMatched(matchers: readonly string[]) {
  const type = create(TriggerTypeSchema, {
    source: { case: "event", value: { query: { matchers: [...matchers] } } },
  });
  const { value, loading, failure, again } = usePreview(type);
  const mistakes = new Map(
    (failure?.fields ?? []).flatMap(({ field, description }) => {
      const at = path.exec(field)?.[1];
      return at === undefined ? [] : [[Number(at), description] as const];
    }),
  );
  return { value, loading, failure: mistakes.size > 0 ? undefined : failure, mistakes, again };
}

const shownMax = 10;

/** How many events of the last day matchers would have matched, and the latest of them. */
export function MatchedNow({ value, loading, failure, mistakes, again }: ReturnType<typeof useMatched>) {
  if (mistakes.size > 0) return null;
  if (value === undefined || value.count === 0n)
    return (
      <>
        <p role="status" class={ui.hint}>
          {loading ? "Looking…" : value && "No event of the last day matches. One that comes later may."}
        </p>
        <Problem failure={failure} again={again} />
      </>
    );
  const { count, events, partial } = value;
  const text = `${count.toLocaleString("en")} ${count === 1n ? "event" : "events"} of the last day`;
  return (
    <details>
      <summary>
        <span role="status">
          {partial && "At least "}
          {text} would have matched
        </span>
      </summary>
      <ul class={ui.lines} aria-label="Events that would have matched">
        {events.slice(0, shownMax).map((event) => (
          <Matched key={`${event.id} ${event.occurrences[0]?.id}`} event={event} />
        ))}
      </ul>
      {count > BigInt(shownMax) && <p class={ui.hint}>These are the latest {shownMax}.</p>}
    </details>
  );
}
