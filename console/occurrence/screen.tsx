import { useEffect, useRef } from "preact/hooks";
import type { Event, Occurrence } from "#gen/belfry/events/v1/event_pb.ts";
import { EventQueryService } from "#gen/belfry/events/v1/query_service_pb.ts";
import { address, linkTo } from "../data/address.ts";
import { clientOf } from "../data/calls.ts";
import { onNews } from "../data/live.ts";
import { useOne } from "../data/one.ts";
import { Actions } from "../events/actions.tsx";
import { calledOf } from "../events/entity-names.ts";
import eventsLook from "../events/events.module.css";
import { useFocusKept } from "../ui/focus-kept.ts";
import { narrow } from "../ui/narrow.ts";
import { Problem } from "../ui/problem.tsx";
import { countText } from "../ui/quantity.ts";
import { ScreenHead } from "../ui/screen-head.tsx";
import { Time } from "../ui/time.tsx";
import ui from "../ui/ui.module.css";
import { TextWithLinks } from "../ui/web-address.tsx";
import { EntityMetrics } from "./entity-metrics.tsx";
import { HeadLine } from "./head.tsx";
import { Labels } from "./labels.tsx";
import { LifeCycle } from "./life-cycle.tsx";
import { LinksOut } from "./links-out.tsx";
import { WhoWasNotified } from "./notified.tsx";
import occurrenceLook from "./occurrence.module.css";
import { OccurrenceSilences } from "./silences.tsx";

const events = clientOf(EventQueryService);

export function OccurrenceScreen() {
  const id = address.value.path[1] ?? "";
  return <OneOccurrence key={id} id={id} />;
}

/** One occurrence: its life, what it caused, and what surrounds it. */
function OneOccurrence({ id }: { id: string }) {
  const answer = useOne("occurrence", async (signal) => {
    const { result } = await events.getEvent({ id: id.replace(/:\d+$/, ""), occurrenceIds: [id] }, { signal });
    return result && { event: result, occurrence: result.occurrences[0] };
  });
  const { value, loading, failure, again } = answer.value;
  const eventId = value?.event.id;
  const screen = useRef<HTMLDivElement>(null);
  useFocusKept(
    screen,
    () => screen.current?.querySelector<HTMLElement>("[data-filters] button, [data-actions] button") ?? null,
  );
  useEffect(
    () =>
      onNews((news) => ("missed" in news || news.eventIds.some((each) => each === eventId)) && answer.peek().again()),
    [eventId],
  );
  return (
    <div class={ui.screen} ref={screen}>
      {value?.occurrence ? (
        <Found event={value.event} occurrence={value.occurrence} again={again} />
      ) : (
        <ScreenHead
          title="Occurrence"
          above={["Events", linkTo(["events"])]}
          count={loading && value === undefined && "Loading…"}
        />
      )}
      <Problem failure={failure} again={again} />
      {value !== undefined && !value?.occurrence && (
        <p class={ui.pad}>
          This occurrence is not stored any more. <a href={linkTo(["events"], { status: "any" })}>To the events</a>
        </p>
      )}
    </div>
  );
}

function Found({ event, occurrence, again }: { event: Event; occurrence: Occurrence; again(): void }) {
  const actions = <Actions main rows={[{ event, occurrence }]} reread={again} />;
  return (
    <>
      <ScreenHead
        title={event.name ?? ""}
        pageTitle={`${event.name} on ${calledOf(event)}`}
        above={[
          "Events",
          linkTo(["events"]),
          `/ occurrence ${countText(Number(occurrence.id.split(":").at(-1)))} of ${countText(event.count ?? 1n)}`,
        ]}
        tools={!narrow.value && actions}
      />
      <HeadLine event={event} occurrence={occurrence} />
      <div class={ui.scroll}>
        <div class={occurrenceLook.halves}>
          <div class={occurrenceLook.half}>
            <About occurrence={occurrence} />
            <WhoWasNotified occurrenceId={occurrence.id} eventId={event.id} />
          </div>
          <div class={occurrenceLook.half}>
            <LifeCycle event={event} occurrence={occurrence} />
            <Labels event={event} occurrence={occurrence} />
            <OccurrenceSilences occurrenceId={occurrence.id} event={event} />
          </div>
          {event.entity && <EntityMetrics event={event} occurrence={occurrence} />}
        </div>
      </div>
      {/* At the thumb. */}
      {narrow.value && (
        <div class={eventsLook.bar} data-actions>
          {actions}
        </div>
      )}
    </>
  );
}

/** Shows the summary and body of an occurrence, the pages about it, and when it was seen. */
function About({ occurrence }: { occurrence: Occurrence }) {
  return (
    <section class={ui.card} aria-labelledby="about">
      <h2 id="about">About</h2>
      {occurrence.summary && (
        <p class={occurrenceLook.summary}>
          <TextWithLinks text={occurrence.summary} />
        </p>
      )}
      {occurrence.body && occurrence.body !== occurrence.summary && (
        <p class={occurrenceLook.bodyText}>
          <TextWithLinks text={occurrence.body} />
        </p>
      )}
      <LinksOut occurrence={occurrence} />
      <dl class={ui.facts}>
        <dt>First seen</dt>
        <dd>
          <Time at={occurrence.startTime} />
        </dd>
        <dt>Last seen</dt>
        <dd>
          <Time at={occurrence.lastSeen} />
        </dd>
        {occurrence.expiresAt !== undefined && (
          <>
            <dt>Expires</dt>
            <dd>
              <Time at={occurrence.expiresAt} due />
            </dd>
          </>
        )}
        {occurrence.type && (
          <>
            <dt>Type</dt>
            <dd>{occurrence.type}</dd>
          </>
        )}
      </dl>
    </section>
  );
}
