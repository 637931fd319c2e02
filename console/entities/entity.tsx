import { create } from "@bufbuild/protobuf";
import { useMemo } from "preact/hooks";
import { ClauseSchema, Operation } from "#gen/belfry/clause/v1/clause_pb.ts";
import type { Entity } from "#gen/belfry/entities/v1/entity_pb.ts";
import { EntityService } from "#gen/belfry/entities/v1/entity_service_pb.ts";
import { EventQueryService, SortOrder } from "#gen/belfry/events/v1/query_service_pb.ts";
import { MaintenanceWindowService } from "#gen/belfry/maintenance/v1/maintenance_window_service_pb.ts";
import { Aggregator } from "#gen/belfry/metrics/v1/metric_query_service_pb.ts";
import { SilenceService } from "#gen/belfry/notifications/v1/silence_service_pb.ts";
import { linkTo } from "../data/address.ts";
import { useAnswer } from "../data/answer.ts";
import { clientOf } from "../data/calls.ts";
import { useNews } from "../data/news.ts";
import { useOne } from "../data/one.ts";
import { periodOf, readSeries } from "../data/series.ts";
import { may } from "../data/session.ts";
import { SeverityMark, statusWord } from "../events/words.tsx";
import { nothing, readHappened } from "../metrics/happened.ts";
import { silenceLink } from "../silences/link.ts";
import { Facts } from "../ui/facts.tsx";
import { LastValue } from "../ui/last-value.tsx";
import { Plot } from "../ui/plot.tsx";
import { Problem } from "../ui/problem.tsx";
import { ScreenHead } from "../ui/screen-head.tsx";
import { nowMs, Time } from "../ui/time.tsx";
import ui from "../ui/ui.module.css";
import { windowsHolding } from "../windows/holding.ts";
import { CustomProperties } from "./custom-properties.tsx";
import { readEntity } from "./entity-by-id.ts";
import { stateText } from "./states.ts";

const entities = clientOf(EntityService);
const events = clientOf(EventQueryService);

/** One entity: what it is, what it belongs to, how it does. */
export function OneEntity({ id }: { id: string }) {
  const answer = useOne("entity", (signal) => {
    // Its state changes with windows, its last data with what is sent.
    nowMs.value;
    return readEntity(id, signal);
  });
  const { value, failure, again } = answer.value;
  return (
    <div class={ui.screen}>
      <ScreenHead
        title={value?.displayName ?? "Entity"}
        above={["Entities", linkTo(["entities"])]}
        tools={
          value && (
            <>
              {may(SilenceService.method.createSilence) && (
                <a class={ui.button} href={silenceLink({ entity: id })}>
                  Silence…
                </a>
              )}
              {may(MaintenanceWindowService.method.createMaintenanceWindow) && (
                <a class={ui.button} href={linkTo(["windows", "new"], { entity: id })}>
                  Put into maintenance…
                </a>
              )}
              <a href={linkTo(["metrics"], { entity: id })}>All metrics</a>
              <a href={linkTo(["events"], { status: "any", where: eventsOf(id) })}>All events</a>
            </>
          )
        }
      />
      <Problem failure={failure} again={again} />
      {value === null && <p class={ui.pad}>There is no such entity. It may have been deleted; its events stay.</p>}
      {value && (
        <div class={ui.scroll}>
          <div class={ui.twoWide}>
            <About entity={value} />
            <CustomProperties entity={value} changed={again} />
            <Family entity={value} />
            <OpenEvents id={id} />
            <Windows id={id} />
            <Series id={id} />
          </div>
        </div>
      )}
    </div>
  );
}

const eventsOf = (id: string) => JSON.stringify({ filter: { field: "entity", operation: "OP_EQUALS", value: id } });

function About({ entity }: { entity: Entity }) {
  return (
    <section class={ui.card} aria-labelledby="about">
      <h2 id="about">About</h2>
      <dl class={ui.facts}>
        <dt>State</dt>
        <dd>{stateText(entity.productionState)}</dd>
        <dt>Priority</dt>
        <dd>{String(entity.priority)}</dd>
        <dt>Last data</dt>
        <dd>{entity.livenessTime === 0n ? "–" : <Time at={entity.livenessTime} />}</dd>
        <dt>First seen</dt>
        <dd>
          <Time at={entity.createTime} />
        </dd>
        <dt>Types</dt>
        <dd>{entity.schemaIds.join(", ")}</dd>
        <dt>Id</dt>
        <dd>
          <code>{entity.id}</code>
        </dd>
      </dl>
      <Facts title="Dimensions" values={entity.dimensions} prefix="dimensions." />
      <Facts title="Core properties" values={entity.coreProperties ?? {}} folded />
    </section>
  );
}

const familyMax = 50;

/** Where the service keeps the ids of the parents, however a model names them. */
const parentIds = "_svc_parent_entity_id";

/** Its parents, and the entities whose parent it is. */
function Family({ entity }: { entity: Entity }) {
  const parents = useMemo(
    () => [...textsOf(entity.coreProperties?.[parentIds]), ...textsOf(entity.dimensions[parentIds])],
    [entity],
  );
  const answer = useAnswer(
    async (signal) => {
      const anyOf = (field: string, texts: readonly string[]) =>
        create(ClauseSchema, {
          oneOf: { field, values: texts.map((value) => ({ kind: { case: "stringValue" as const, value } })) },
        });
      const search = async (clause: ReturnType<typeof anyOf>) =>
        (
          await entities.searchEntities(
            { searchInput: { query: { clause }, pageInput: { limit: familyMax } } },
            { signal },
          )
        ).entities?.entities ?? [];
      const [above, below] = await Promise.all([
        parents.length === 0 ? [] : search(anyOf("id", parents)),
        search(anyOf(`coreProperties.${parentIds}`, [entity.id])),
      ]);
      return { above, below };
    },
    undefined,
    "family",
  );
  const { value, failure, again } = answer.value;
  const list = (title: string, found: readonly Entity[]) =>
    found.length > 0 && (
      <>
        <h3>{title}</h3>
        <ul class={ui.links}>
          {found.map(({ id, name }) => (
            <li key={id}>
              <a href={linkTo(["entities", id])}>{name}</a>
            </li>
          ))}
          {found.length === familyMax && <li class={ui.quiet}>and perhaps more</li>}
        </ul>
      </>
    );
  return (
    <section class={ui.card} aria-labelledby="family">
      <h2 id="family">Parent and children</h2>
      <Problem failure={failure} again={again} />
      {value && list("Parent", value.above)}
      {value && list("Children", value.below)}
      {value && value.above.length + value.below.length === 0 && <p class={ui.quiet}>None is known.</p>}
    </section>
  );
}

function textsOf(value: unknown): string[] {
  const values: unknown[] = Array.isArray(value) ? value : [value];
  return values.filter((each) => typeof each === "string");
}

/** The shortest time between two questions while events change. */
const askAgainMs = 2000;

function OpenEvents({ id }: { id: string }) {
  const news = useNews(askAgainMs);
  const answer = useAnswer(
    (signal) => {
      news.value;
      const clause = create(ClauseSchema, {
        filter: {
          field: "entity",
          operation: Operation.OP_EQUALS,
          value: { kind: { case: "stringValue", value: id } },
        },
      });
      const sortBy = [
        { byField: { field: "status", order: SortOrder.ASC } },
        { byField: { field: "lastSeen", order: SortOrder.DESC } },
      ];
      return events.searchEvents({ query: { clause, sortBy, pageInput: { limit: 20 } } }, { signal });
    },
    undefined,
    "occurrences",
  );
  const { value, failure, again } = answer.value;
  const rows = value?.results.flatMap((event) => event.occurrences.map((occurrence) => ({ event, occurrence }))) ?? [];
  return (
    <section class={ui.card} aria-labelledby="its-events">
      <h2 id="its-events">Events</h2>
      <Problem failure={failure} again={again} />
      {value && rows.length === 0 && <p class={ui.quiet}>Nothing has happened to it.</p>}
      <ul class={ui.lines}>
        {rows.slice(0, 20).map(({ event, occurrence }) => (
          <li key={occurrence.id}>
            <SeverityMark value={occurrence.severity} />
            <a href={linkTo(["occurrences", occurrence.id])}>{event.name}</a>
            <span class={ui.quiet}>{statusWord(occurrence.status)}</span>
            <span class={ui.push}>
              <Time at={occurrence.lastSeen} short />
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}

/** The windows in progress that hold it. */
function Windows({ id }: { id: string }) {
  const answer = useAnswer(
    (signal) => {
      nowMs.value;
      return windowsHolding(id, signal);
    },
    undefined,
    "windows",
  );
  const { value, failure, again } = answer.value;
  return (
    <section class={ui.card} aria-labelledby="windows">
      <h2 id="windows">Maintenance windows that hold it now</h2>
      <Problem failure={failure} again={again} />
      {value?.length === 0 && <p class={ui.quiet}>None names it.</p>}
      <ul class={ui.lines}>
        {value?.map(({ id: windowId, name, description }) => (
          <li key={windowId}>
            <a href={linkTo(["windows", windowId])}>{name}</a> <span class={ui.quiet}>{description}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}

const seriesMax = 12;

function Series({ id }: { id: string }) {
  const read = async (signal: AbortSignal) => {
    const end = Date.now();
    const start = end - 21_600_000;
    const asked = {
      entityId: id,
      start,
      end,
      aggregator: Aggregator.MEAN,
      period: periodOf(start, end, 120),
      pageSize: seriesMax,
    };
    const [read, happened] = await Promise.all([
      readSeries(asked, signal),
      // Without what happened the series are shown all the same.
      readHappened(id, start, end, signal).catch(() => nothing),
    ]);
    return { start, end, happened, ...read };
  };
  const answer = useAnswer(read, undefined, "series");
  const { value, failure, again } = answer.value;
  return (
    <section class={`${ui.card} ${ui.wide}`} aria-labelledby="series">
      <h2 id="series">Series of the last 6 hours</h2>
      <Problem failure={failure} again={again} />
      {value?.series.length === 0 && <p class={ui.quiet}>It sent no metric in that time.</p>}
      <div class={ui.smallPlots}>
        {value?.series.map((each) => (
          <figure key={each.key}>
            <figcaption>
              <a href={linkTo(["metrics"], { entity: id, metric: each.metric, range: "6h" })}>{each.name}</a>
              <span class={ui.quiet}>
                {" "}
                <LastValue series={each} end={value.end} />
              </span>
            </figcaption>
            <Plot
              name={each.name}
              series={[each]}
              start={value.start}
              end={value.end}
              height={110}
              marks={value.happened.marks}
              bands={value.happened.bands}
            />
          </figure>
        ))}
      </div>
      {value?.more && <a href={linkTo(["metrics"], { entity: id, range: "6h" })}>All its series</a>}
    </section>
  );
}
