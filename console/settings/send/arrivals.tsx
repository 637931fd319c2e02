import { create } from "@bufbuild/protobuf";
import { useSignal, useSignalEffect } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import { ClauseSchema, Operation } from "#gen/belfry/clause/v1/clause_pb.ts";
import { EntityService, Order } from "#gen/belfry/entities/v1/entity_service_pb.ts";
import { EventQueryService, SortOrder } from "#gen/belfry/events/v1/query_service_pb.ts";
import { Aggregator } from "#gen/belfry/metrics/v1/metric_query_service_pb.ts";
import { linkTo } from "../../data/address.ts";
import { useAnswer } from "../../data/answer.ts";
import { clientOf } from "../../data/calls.ts";
import { inSight } from "../../data/in-sight.ts";
import { onNews } from "../../data/live.ts";
import { readSeries } from "../../data/series.ts";
import { calledOf } from "../../events/entity-names.ts";
import { Problem } from "../../ui/problem.tsx";
import { Time } from "../../ui/time.tsx";
import ui from "../../ui/ui.module.css";
import settingsLook from "../settings.module.css";

const events = clientOf(EventQueryService);
const entities = clientOf(EntityService);

const shownMax = 3;
const askEveryMs = 3000;
const newsWaitMs = 200;
const seriesSpanMs = 900_000;
const anything = create(ClauseSchema, { filter: { field: "id", operation: Operation.OP_EXISTS } });

/** Reads the counts of events, entities and metrics, with the newest of each. */
async function readNewest(signal: AbortSignal) {
  const newest = { byField: { field: "lastSeen", order: SortOrder.DESC } };
  const [found, models] = await Promise.all([
    events.searchEvents({ query: { sortBy: [newest], pageInput: { limit: shownMax } } }, { signal }),
    entities.searchEntities(
      {
        searchInput: {
          query: { clause: anything },
          sortby: [{ field: "livenessTime", order: Order.DESCENDING }],
          pageInput: { limit: shownMax },
        },
      },
      { signal },
    ),
  ]);
  const end = Date.now();
  const range = { start: end - seriesSpanMs, end, aggregator: Aggregator.LAST, period: "900s", pageSize: shownMax };
  const seen = models.entities?.entities ?? [];
  const series = await Promise.all(seen.map(({ id: entityId }) => readSeries({ ...range, entityId }, signal)));
  return {
    events: found.results,
    eventCount: found.pageInfo?.totalCount ?? 0n,
    entities: seen,
    entityCount: models.pageInfo?.totalCount ?? 0n,
    series: series
      .flatMap((each, at) => each.series.map(({ metric }) => ({ metric, entity: seen[at] })))
      .slice(0, shownMax),
  };
}

/** The first data as they arrive: events by the watch, entities and points by asking while the page is in sight. */
export function Arrivals() {
  const answer = useAnswer(readNewest);
  const due = useSignal(false);
  useEffect(() => {
    const asking = setInterval(() => {
      due.value = true;
    }, askEveryMs);
    const endNews = onNews(() => {
      due.value = true;
    });
    return () => {
      clearInterval(asking);
      endNews();
    };
  }, []);
  // The next question waits for the last answer: another one would cancel it, and while much arrives none would be answered.
  useSignalEffect(() => {
    if (!due.value || answer.value.loading) return;
    const soon = setTimeout(() => {
      due.value = false;
      if (inSight.peek()) answer.peek().again();
    }, newsWaitMs);
    return () => clearTimeout(soon);
  });
  const { value, failure, again } = answer.value;
  return (
    <section class={ui.card} aria-labelledby="arrivals">
      <h2 id="arrivals">What has arrived</h2>
      <Problem failure={failure} again={again} />
      {value && (
        <div class={settingsLook.arrivals}>
          <Kind name="Events" count={countText(value.eventCount)}>
            {value.events.map((event) => {
              const occurrence = event.occurrences.at(-1);
              return (
                <li key={event.id}>
                  <a href={linkTo(["occurrences", occurrence?.id ?? ""])}>{event.name}</a>
                  <span class={ui.quiet}> on {calledOf(event)}</span>
                  <span class={ui.push}>
                    <Time at={occurrence?.lastSeen} short />
                  </span>
                </li>
              );
            })}
          </Kind>
          <Kind name="Entities" count={countText(value.entityCount)}>
            {value.entities.map(({ id, displayName, livenessTime }) => (
              <li key={id}>
                <a href={linkTo(["entities", id])}>{displayName}</a>
                <span class={ui.push}>{livenessTime > 0n && <Time at={livenessTime} short />}</span>
              </li>
            ))}
          </Kind>
          <Kind name="Metrics" count={value.series.length === 0 ? "none of the last minutes" : "newest"}>
            {value.series.map(({ metric, entity }) => (
              <li key={`${entity?.id} ${metric}`}>
                <a href={linkTo(["metrics"], { entity: entity?.id ?? "", metric, range: "1h" })}>{metric}</a>
                <span class={ui.quiet}> of {entity?.displayName}</span>
              </li>
            ))}
          </Kind>
        </div>
      )}
    </section>
  );
}

const countText = (count: bigint) => (count === 0n ? "none yet" : `${count.toLocaleString("en")} in all`);

function Kind({ name, count, children }: { name: string; count: string; children: ComponentChildren }) {
  return (
    <div>
      <h3>
        {name} <span class={ui.quiet}>{count}</span>
      </h3>
      <ul class={ui.lines} aria-label={`Newest of ${name.toLowerCase()}`}>
        {children}
      </ul>
    </div>
  );
}
