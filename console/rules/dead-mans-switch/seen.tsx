import { create } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import { type Clause, ClauseSchema, Operation } from "#gen/belfry/clause/v1/clause_pb.ts";
import { EventQueryService } from "#gen/belfry/events/v1/query_service_pb.ts";
import { linkTo } from "../../data/address.ts";
import { useAnswer } from "../../data/answer.ts";
import { clientOf } from "../../data/calls.ts";
import { useSettled } from "../../data/settled.ts";
import { calledOf } from "../../events/entity-names.ts";
import { Lines } from "../../ui/lines.tsx";
import { Problem } from "../../ui/problem.tsx";
import { Sign } from "../../ui/sign.tsx";
import { Time } from "../../ui/time.tsx";
import ui from "../../ui/ui.module.css";
import { clauseText, findEntities } from "../triggers/names.ts";
import { watchdog } from "./switch.ts";

const events = clientOf(EventQueryService);

const askedMax = 100;

interface Seen {
  readonly id: string;
  readonly called: string;
  readonly last: bigint;
}

/** The entities on which an event of this name was seen, the latest first. */
async function readSeen(name: string, signal: AbortSignal): Promise<readonly Seen[]> {
  if (name === "") return [];
  const value = { kind: { case: "stringValue" as const, value: name } };
  const clause = { filter: { field: "name", operation: Operation.OP_EQUALS, value } };
  const { results } = await events.searchEvents({ query: { clause, pageInput: { limit: askedMax } } }, { signal });
  return results
    .map((event) => ({ id: event.entity ?? "", called: calledOf(event), last: event.occurrences[0]?.lastSeen ?? 0n }))
    .sort((a, b) => Number(b.last - a.last));
}

/** The entities of these ids. */
const anyOf = (ids: readonly string[]) =>
  create(ClauseSchema, {
    oneOf: { field: "id", values: ids.map((value) => create(ValueSchema, { kind: { case: "stringValue", value } })) },
  });

interface SeenProps {
  readonly eventName: string;
  /** The entities that are watched; undefined: all. */
  readonly clause: Clause | undefined;
  watch(clause: Clause): void;
}

/** Shows beside the form which entities have sent the event. */
export function SeenEvents({ eventName, clause, watch }: SeenProps) {
  const name = useSettled(eventName);
  const { value, failure, again } = useAnswer((signal) => readSeen(name, signal), name).value;
  return (
    <section class={`${ui.card} ${ui.preview}`} aria-labelledby="seen">
      <h2 id="seen">Has it come?</h2>
      <Problem failure={failure} again={again} />
      {value && <SeenOn name={name} seen={value} clause={clause} watch={(ids) => watch(anyOf(ids))} />}
    </section>
  );
}

interface SeenOnProps {
  readonly name: string;
  readonly seen: readonly Seen[];
  readonly clause: Clause | undefined;
  watch(ids: readonly string[]): void;
}

const shownMax = 10;

/** Lists the entities that have sent the event, to be watched with a press; without any, shows the rule for Prometheus. */
function SeenOn({ name, seen, clause, watch }: SeenOnProps) {
  const ids = [...new Set(seen.map(({ id }) => id))];
  const text = useSettled(clauseText(clause));
  const found = useAnswer(async (signal) => (await findEntities(text, askedMax, signal)).entities, text).value.value;
  const isWatched = (id: string) => found?.some((entity) => entity.id === id) ?? true;
  if (ids.length === 0)
    return (
      <>
        <p role="status">{name === "" ? "Name an event." : `No event ${name} has come yet.`}</p>
        <p>Add this rule to Prometheus, which then sends the alert every minute; kube-prometheus brings one:</p>
        <Lines title="Rule for Prometheus" where="in a file of rule_files" text={ruleOf(name || watchdog)} />
      </>
    );
  return (
    <>
      <p role="status">
        {name} has come of {ids.length === 1 ? "one entity" : `${ids.length} entities`}:
      </p>
      <ul class={ui.lines} aria-label="Entities that sent it">
        {seen.slice(0, shownMax).map(({ id, called, last }) => (
          <li key={id}>
            <a href={linkTo(["entities", id])}>{called}</a>
            <span class={ui.push}>
              <Time at={last} short />
            </span>
          </li>
        ))}
      </ul>
      {ids.every(isWatched) ? (
        <p class={ui.hint}>{ids.length === 1 ? "It is watched." : "Each of them is watched by itself."}</p>
      ) : (
        <>
          <p>
            <span class={ui.state} data-tone="warning">
              <Sign tone="warning" /> {ids.length === 1 ? "This entity is" : "Not all of them are"}
              {ids.length === 1 && " not"} watched.
            </span>
          </p>
          <div class={ui.buttons}>
            <button type="button" onClick={() => watch(ids)}>
              {ids.length === 1 ? "Watch it" : "Watch each of them"}
            </button>
          </div>
        </>
      )}
    </>
  );
}

const ruleOf = (name: string) => `groups:
  - name: watchdog
    rules:
      - alert: ${name}
        expr: vector(1)
        labels: { severity: none }
        annotations: { summary: Alerts reach Belfry }
`;
