import { useSignal } from "@preact/signals";
import type { Rule } from "#gen/belfry/notifications/v1/rule_pb.ts";
import type { PreviewMessageResponse } from "#gen/belfry/notifications/v1/rule_service_pb.ts";
import { linkTo, setParameters } from "../../data/address.ts";
import { Explanation } from "../../deliveries/explanation.tsx";
import { severityOf } from "../../events/words.tsx";
import { Problem } from "../../ui/problem.tsx";
import { agoText } from "../../ui/time.tsx";
import ui from "../../ui/ui.module.css";
import rulesLook from "../rules.module.css";
import { type Preview, renderedMax } from "./rendering.ts";
import type { Subjects } from "./subjects.ts";

interface MessagePreviewProps {
  readonly rule: Rule;
  /** Only what a stored rule did can be explained. */
  readonly isStored: boolean;
  readonly preview: Preview;
}

/** What the message says of an event, beside the form. */
export function MessagePreview({ rule, isStored, preview }: MessagePreviewProps) {
  const { value, isOfThis, loading, mistake, failure, again, occurrenceId } = preview;
  return (
    <section class={`${ui.card} ${ui.preview}`} aria-labelledby="says">
      <h2 id="says">What it says</h2>
      <EventChoice preview={preview} />
      <Problem failure={failure} again={again} />
      <p role="status">
        {loading
          ? "Rendering…"
          : mistake
            ? "The template has a mistake, which is shown beside it. This is what it said before."
            : ""}
      </p>
      {value && (
        <>
          {occurrenceId !== "" && isOfThis && <Matching value={value} rule={rule} isFound={isFound(preview)} />}
          <section aria-label="Rendered message">
            <pre class={rulesLook.rendered}>{value.text}</pre>
          </section>
          {value.emptyNames.length > 0 && (
            <p class={ui.hint}>
              Empty for this event: <code>{value.emptyNames.join(", ")}</code>
            </p>
          )}
          <Destinations value={value} more={rule.destinationNames.length - renderedMax} />
        </>
      )}
      {isStored && occurrenceId !== "" && <Why key={occurrenceId} rule={rule.name} occurrenceId={occurrenceId} />}
    </section>
  );
}

const how: Readonly<Record<Subjects["by"], string>> = {
  conditions: "The latest that the rule matches.",
  name: "The latest of this name.",
  "none match": "The rule matched no event of the last day: these are the latest of all.",
  time: "The latest of all.",
};

/** Which event it is shown for: of those that the rule matches, or of any that is found by name. */
function EventChoice({ preview: { subjects, occurrenceId, words, look } }: { preview: Preview }) {
  const found = subjects?.found ?? [];
  const listed = found.some(({ id }) => id === occurrenceId);
  const none = words === "" ? "There are no events yet: this is a made-up one." : "No event has this in its name.";
  return (
    <div class={rulesLook.eventChoice}>
      <label>
        For the event
        <select
          value={occurrenceId}
          onChange={({ currentTarget }) => setParameters({ event: currentTarget.value }, false)}
        >
          {!listed && <option value={occurrenceId}>{occurrenceId || "a made-up one"}</option>}
          {found.map(({ id, name, entityName, severity, lastSeen }) => (
            <option key={id} value={id}>
              {severityOf(severity).word}: {name || "without a name"} on {entityName}, {agoText(Number(lastSeen))}
            </option>
          ))}
        </select>
      </label>
      <label>
        or look for another
        <input
          type="search"
          placeholder="part of its name"
          value={words}
          onInput={({ currentTarget }) => look(currentTarget.value)}
        />
      </label>
      {subjects && <p class={ui.hint}>{found.length === 0 ? none : how[subjects.by]}</p>}
      {occurrenceId !== "" && (
        <p>
          <a href={linkTo(["occurrences", occurrenceId])}>Open this event</a>
        </p>
      )}
    </div>
  );
}

/** Tells whether the event is among those that the rule's conditions were found to match. */
const isFound = ({ subjects, occurrenceId }: Preview) =>
  subjects?.by === "conditions" && subjects.found.some(({ id }) => id === occurrenceId);

interface MatchingProps {
  readonly value: PreviewMessageResponse;
  readonly rule: Rule;
  readonly isFound: boolean;
}

/** Shows whether the event triggers the rule; nothing where that is not known, as of its matchers and an event found by name. */
function Matching({ value, rule, isFound: found }: MatchingProps) {
  const matches = value.matches || found;
  const { steps } = value;
  if (rule.triggerNames.length + rule.matchers.length === 0 || (!matches && rule.matchers.length > 0)) return null;
  return (
    <>
      <p>
        {matches ? (
          <span class={ui.state} data-tone="good">
            <span aria-hidden="true">✓</span> This event triggers the rule.
          </span>
        ) : (
          <span class={ui.state} data-tone="quiet">
            <span aria-hidden="true">–</span> This event does not trigger the rule.
          </span>
        )}
      </p>
      {!matches && (
        <ul class={ui.hint} aria-label="Why not">
          {steps.map(({ reason, path }) => (
            <li key={reason}>
              {reason} {path && <code>{path}</code>}
            </li>
          ))}
        </ul>
      )}
    </>
  );
}

function Destinations({ value: { previews }, more }: { value: PreviewMessageResponse; more: number }) {
  return (
    <>
      {previews.map(({ destination, subject, body }) => (
        <details key={destination}>
          <summary>What {destination} gets</summary>
          {subject && <p class={rulesLook.composedSubject}>{subject}</p>}
          <pre class={rulesLook.rendered}>{body}</pre>
        </details>
      ))}
      {more > 0 && <p class={ui.hint}>and {more} more destinations</p>}
    </>
  );
}

/** How the stored rule decided of the event: asked once it is opened. */
function Why({ rule, occurrenceId }: { rule: string; occurrenceId: string }) {
  const open = useSignal(false);
  return (
    <details
      onToggle={({ currentTarget }) => {
        open.value = currentTarget.open;
      }}
    >
      <summary>Why was I (not) notified?</summary>
      {open.value && <Explanation rule={rule} about={{ case: "occurrenceId", value: occurrenceId }} />}
    </details>
  );
}
