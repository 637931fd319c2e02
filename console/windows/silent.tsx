import { create } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import { ClauseSchema } from "#gen/belfry/clause/v1/clause_pb.ts";
import { Status } from "#gen/belfry/events/v1/event_pb.ts";
import { EventQueryService, SortOrder } from "#gen/belfry/events/v1/query_service_pb.ts";
import type { MaintenanceEntity } from "#gen/belfry/maintenance/v1/maintenance_run_pb.ts";
import { type MaintenanceWindow, RunState } from "#gen/belfry/maintenance/v1/maintenance_window_pb.ts";
import {
  DeliveryService,
  ExplainNotificationResponse_Outcome as Outcome,
} from "#gen/belfry/notifications/v1/delivery_service_pb.ts";
import type { ExplanationStep } from "#gen/belfry/notifications/v1/explanation_pb.ts";
import { RuleService } from "#gen/belfry/notifications/v1/rule_service_pb.ts";
import { linkTo } from "../frame/address.ts";
import { clientOf } from "../frame/calls.ts";
import { useAnswer } from "../parts/answer.ts";
import { Problem } from "../parts/problem.tsx";
import { Time } from "../parts/time.tsx";

const rules = clientOf(RuleService);
const events = clientOf(EventQueryService);
const deliveries = clientOf(DeliveryService);

const occurrencesMax = 10;
const rulesMax = 5;

/** An occurrence that a rule keeps silent about. */
interface Kept {
  readonly id: string;
  readonly name: string | undefined;
  readonly entity: string | undefined;
  readonly rule: string;
  /** What names the window. */
  readonly step: ExplanationStep | undefined;
}

/** The rules that keep silent about entities in maintenance, and what they keep silent about now. */
async function readSilent(held: readonly MaintenanceEntity[], signal: AbortSignal) {
  const { rules: all } = await rules.listRules({ pageSize: 1000 }, { signal });
  const muting = all.filter(({ enabled, muteDuringMaintenance }) => enabled && muteDuringMaintenance);
  const names = muting.map(({ name }) => name);
  if (held.length === 0 || names.length === 0) return { names, kept: [] };
  const values = held.map(({ id }) => create(ValueSchema, { kind: { case: "stringValue", value: id } }));
  const query = {
    clause: create(ClauseSchema, { oneOf: { field: "entity", values } }),
    statuses: [Status.OPEN],
    sortBy: [{ byField: { field: "lastSeen", order: SortOrder.DESC } }],
    pageInput: { limit: occurrencesMax },
  };
  const { results } = await events.searchEvents({ query }, { signal });
  const found = results.flatMap((event) =>
    event.occurrences.map(({ id }) => ({ id, name: event.name, entity: event.entityName })),
  );
  const kept: Kept[] = [];
  // One after another: of a page that stands open, a server has few questions at a time.
  for (const each of found.slice(0, occurrencesMax)) {
    for (const rule of names.slice(0, rulesMax)) {
      const about = { case: "occurrenceId", value: each.id } as const;
      const { outcome, steps } = await deliveries.explainNotification({ name: rule, about }, { signal });
      if (outcome === Outcome.MUTED) kept.push({ ...each, rule, step: steps.find(({ window }) => window !== "") });
    }
  }
  return { names, kept };
}

/** What rules keep silent about because of a window. */
export function SilentCard({ window, held }: { window: MaintenanceWindow; held: readonly MaintenanceEntity[] }) {
  const running = window.runState === RunState.IN_PROGRESS;
  const answer = useAnswer((signal) => readSilent(held, signal), `${window.id} ${window.runState} ${held.length}`);
  const { value, failure, again } = answer.value;
  return (
    <section class="card" aria-labelledby="silent">
      <h2 id="silent">Kept silent</h2>
      <Problem failure={failure} again={again} />
      {value?.names.length === 0 && (
        <p>
          No rule keeps silent during maintenance, so this window mutes nothing. A <a href={linkTo(["rules"])}>rule</a>{" "}
          does with <code>muteDuringMaintenance</code>.
        </p>
      )}
      {value && value.names.length > 0 && (
        <>
          <p>
            Rules that keep silent:{" "}
            {value.names.map((name, at) => (
              <span key={name}>
                {at > 0 && ", "}
                <a href={linkTo(["rules", "rules", name])}>{name}</a>
              </span>
            ))}
          </p>
          {!running && <p class="quiet">It does not run now, so nothing is kept silent because of it.</p>}
          {running && value.kept.length === 0 && <p class="quiet">They keep silent about nothing now.</p>}
          <ul class="lines" aria-label="Kept silent now">
            {value.kept.map(({ id, name, entity, rule, step }) => (
              <li key={`${id} ${rule}`}>
                <span>
                  <a href={linkTo(["occurrences", id])}>{name}</a> on {entity}, by the rule {rule}
                  {step && step.window !== window.name && ` (the window "${step.window}" lasts longer)`}
                  {step?.untilTime && (
                    <>
                      , until <Time at={step.untilTime} />
                    </>
                  )}
                </span>
              </li>
            ))}
          </ul>
        </>
      )}
      <p class="hint">
        Looked at: the newest {occurrencesMax} open occurrences of the first 100 entities that it holds, by the first{" "}
        {rulesMax} of these rules. What was kept silent in runs that are over is not kept: when a run ends, rules send
        what still stands. The page of an occurrence says it rule by rule.
      </p>
    </section>
  );
}
