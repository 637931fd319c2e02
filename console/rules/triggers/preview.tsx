import { fromJsonString, toJsonString } from "@bufbuild/protobuf";
import { useRef } from "preact/hooks";
import type { Event } from "#gen/belfry/events/v1/event_pb.ts";
import { type TriggerType, TriggerTypeSchema } from "#gen/belfry/notifications/v1/trigger_pb.ts";
import { type PreviewTriggerResponse, TriggerService } from "#gen/belfry/notifications/v1/trigger_service_pb.ts";
import type { ClauseErrors } from "../../clause/conditions.tsx";
import { address, linkTo, setParameters } from "../../data/address.ts";
import { useAnswer } from "../../data/answer.ts";
import { clientOf, type Failure } from "../../data/calls.ts";
import { useSettled } from "../../data/settled.ts";
import { calledOf } from "../../events/entity-names.ts";
import { SeverityMark } from "../../events/words.tsx";
import { Problem } from "../../ui/problem.tsx";
import { Time } from "../../ui/time.tsx";
import { TimeRangeChoice, timeRangeOf } from "../../ui/time-range.tsx";
import ui from "../../ui/ui.module.css";

const triggers = clientOf(TriggerService);

/** The range that previews look at: it is kept in the address. */
export const previewRange = () => address.value.parameters.get("range") || "24h";

interface Preview {
  readonly value: PreviewTriggerResponse | undefined;
  readonly loading: boolean;
  /** What is wrong elsewhere than in the clause. */
  readonly failure: Failure | undefined;
  /** What is wrong with the clause as it stands; undefined: nothing was asked. */
  readonly clauseErrors: ClauseErrors | undefined;
  again(): void;
}

const clausePath = "type.event.query.clause";

/** What a trigger on events would have matched, asked as it is typed: once it stands still, and the question before is cancelled. */
export function usePreview(type: TriggerType | undefined): Preview {
  const source = type?.source;
  const query = source?.case === "event" ? source.value.query : undefined;
  const asks = type !== undefined && (query?.clause !== undefined || (query?.matchers.length ?? 0) > 0);
  const text = asks ? toJsonString(TriggerTypeSchema, type) : "";
  const settled = useSettled(text);
  const answer = useAnswer(async (signal) => {
    const timeRange = timeRangeOf(previewRange());
    if (settled === "") return undefined;
    const asked = { type: fromJsonString(TriggerTypeSchema, settled), ...(timeRange && { timeRange }) };
    return await triggers.previewTrigger(asked, { signal });
  }, settled);
  const { value, failure, again } = answer.value;
  const loading = answer.value.loading || text !== settled;
  // While the next answer is awaited, what was wrong stays in sight.
  const errors = useRef<ClauseErrors | undefined>(undefined);
  if (!asks) errors.current = undefined;
  else if (!loading) {
    errors.current = (failure?.fields ?? [])
      .filter(({ field }) => field.startsWith(clausePath))
      .map(({ field, description }) => ({ field: field.slice(clausePath.length), description }));
  }
  const placed = (errors.current?.length ?? 0) > 0;
  return {
    value: asks && !placed ? value : undefined,
    loading: asks && loading,
    failure: placed ? undefined : failure,
    clauseErrors: errors.current,
    again,
  };
}

/** What it would have matched, beside the form. */
export function EventPreview({ value, loading, failure, clauseErrors, again }: Preview) {
  const wrong = (clauseErrors?.length ?? 0) > 0;
  return (
    <section class={`${ui.card} ${ui.preview}`} aria-labelledby="preview">
      <h2 id="preview">Would have matched</h2>
      <TimeRangeChoice value={previewRange()} change={(range) => setParameters({ range }, false)} />
      <p role="status">
        {loading
          ? "Looking…"
          : wrong
            ? "A condition is wrong: see the message beside it."
            : value
              ? foundText(value)
              : nothingAsked}
      </p>
      <Problem failure={failure} again={again} />
      {value?.partial && (
        <p class={ui.hint}>
          This time has more events than are looked at: the latest 50,000 were. Choose a shorter one.
        </p>
      )}
      <ul class={ui.lines} aria-label="Events that would have matched">
        {value?.events.map((event) => (
          <Matched key={`${event.id} ${event.occurrences[0]?.id}`} event={event} />
        ))}
      </ul>
    </section>
  );
}

const nothingAsked = "Set a condition to see which events meet it.";

function foundText({ count, events }: PreviewTriggerResponse): string {
  if (count === 0n) return "No event of this time.";
  const text = `${count.toLocaleString("en")} ${count === 1n ? "event" : "events"} of this time`;
  return BigInt(events.length) < count ? `${text}; the latest ${events.length} are:` : `${text}:`;
}

/** An event that would have matched. */
export function Matched({ event }: { event: Event }) {
  const { name, occurrences } = event;
  const [occurrence] = occurrences;
  if (occurrence === undefined) return null;
  return (
    <li>
      <SeverityMark value={occurrence.severity} />{" "}
      <a href={linkTo(["occurrences", occurrence.id])}>{name || "without a name"}</a>{" "}
      <span class={ui.quiet}>{calledOf(event)}</span>
      <span class={ui.push}>
        <Time at={occurrence.lastSeen} short />
      </span>
    </li>
  );
}
