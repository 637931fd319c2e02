import { useSignal } from "@preact/signals";
import { Operation } from "#gen/belfry/clause/v1/clause_pb.ts";
import { Severity, Status } from "#gen/belfry/events/v1/event_pb.ts";
import { EventQueryService } from "#gen/belfry/events/v1/query_service_pb.ts";
import type { Rule } from "#gen/belfry/notifications/v1/rule_pb.ts";
import { RuleService } from "#gen/belfry/notifications/v1/rule_service_pb.ts";
import { TriggerService } from "#gen/belfry/notifications/v1/trigger_service_pb.ts";
import { DataReceiverService } from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import { linkTo } from "../../data/address.ts";
import { useAnswer } from "../../data/answer.ts";
import { clientOf, type Failure, failureOf } from "../../data/calls.ts";
import { dimensionsText } from "../../data/dimensions.ts";
import { say } from "../../data/notice.ts";
import { may } from "../../data/session.ts";
import { Explanation } from "../../deliveries/explanation.tsx";
import { severities } from "../../events/words.tsx";
import formLook from "../../form/form.module.css";
import { partsOf } from "../../form/matcher-parts.ts";
import { Problem } from "../../ui/problem.tsx";
import ui from "../../ui/ui.module.css";
import { findSubjects } from "../rules/subjects.ts";
import rulesLook from "../rules.module.css";

const receiver = clientOf(DataReceiverService);
const events = clientOf(EventQueryService);
const rules = clientOf(RuleService);
const triggers = clientOf(TriggerService);

interface Draft {
  readonly name: string;
  readonly source: string;
  readonly severity: Severity;
  readonly summary: string;
  /** More labels, which its matchers ask for. */
  readonly labels: Readonly<Record<string, string>>;
}

/** The labels whose values the matchers name. */
const labelsAsked = (matchers: readonly string[]): Record<string, string> =>
  Object.fromEntries(
    matchers.flatMap((text) => {
      const { name = "", operator, value = "" } = partsOf(text) ?? {};
      return operator === "=" && value !== "" ? [[name, value]] : [];
    }),
  );

/** Reads what the rule asks for: events that it has matched, and labels; whether an event can set it off at all. */
async function readAsked(name: string, signal: AbortSignal) {
  const { rule } = await rules.getRule({ name }, { signal });
  const { matchers, triggerNames }: Pick<Rule, "matchers" | "triggerNames"> = rule ?? {
    matchers: [],
    triggerNames: [],
  };
  const all = await Promise.all(triggerNames.map((each) => triggers.getTrigger({ name: each }, { signal })));
  const byEvents = matchers.length > 0 || all.some(({ trigger }) => trigger?.type?.source.case === "event");
  return { ...(await findSubjects({ matchers, triggerNames }, "", signal)), byEvents, labels: labelsAsked(matchers) };
}

/** Sends an event as agents do, and shows what the rule made of it. */
export function RealEvent({ rule }: { rule: string }) {
  const like = useAnswer((signal) => readAsked(rule, signal), rule);
  const draft = useSignal<Partial<Draft>>({});
  const sent = useSignal<{ readonly id: string; readonly round: number } | undefined>(undefined);
  const failure = useSignal<Failure | undefined>(undefined);
  if (!may(DataReceiverService.method.putEvents)) return null;
  const { found = [], by, byEvents, labels: asked = {} } = like.value.value ?? {};
  if (byEvents === false) return <p>The rule looks at metrics or at data that stay away: no event sets it off.</p>;
  // What the rule has matched before, it matches again.
  const [latest] = by === "conditions" ? found : [];
  const { alertname, severity, source = "console", ...labels } = asked;
  const first = {
    name: alertname ?? latest?.name ?? "a try",
    source,
    severity: severityCalled(severity) ?? latest?.severity ?? Severity.CRITICAL,
    summary: "Sent by hand from the console, to try a rule",
    labels,
  };
  const value: Draft = { ...first, ...draft.value };
  const change = (part: Partial<Draft>) => {
    draft.value = { ...draft.peek(), ...part };
  };
  const send = async (event: Event) => {
    event.preventDefault();
    try {
      await put(value, Status.OPEN);
      failure.value = undefined;
      sent.value = { id: await occurrenceOf(value), round: 0 };
      say("The event was sent.", () => put(value, Status.CLOSED));
    } catch (error) {
      failure.value = failureOf(error);
    }
  };
  return (
    <section class={rulesLook.try} aria-label="A real event">
      <h3>Does the rule notify of an event?</h3>
      <p>
        This sends an event as agents do. It is in the list of events until it is closed, and other rules see it too.
        Write one that the rule matches.
      </p>
      <form class={formLook.form} onSubmit={send} aria-label="Event to send">
        <EventFields value={value} change={change} />
        {Object.keys(labels).length > 0 && (
          <p class={ui.hint}>
            It also has the labels that the rule asks for: <code>{dimensionsText(labels)}</code>
          </p>
        )}
        <Problem failure={failure.value ?? like.value.failure} />
        <div class={ui.buttons}>
          <button type="submit">Send the event</button>
        </div>
      </form>
      {sent.value && (
        <div>
          <p>
            <a href={linkTo(["occurrences", sent.value.id])}>Open the event</a>{" "}
            <button
              type="button"
              onClick={() => {
                if (sent.value) sent.value = { ...sent.value, round: sent.value.round + 1 };
              }}
            >
              Look again
            </button>
          </p>
          <Explanation key={sent.value.round} rule={rule} about={{ case: "occurrenceId", value: sent.value.id }} />
        </div>
      )}
    </section>
  );
}

/** The severity of a label's value, such as `critical`. */
const severityCalled = (label = "") => severities.find(({ word }) => word.toLowerCase() === label.toLowerCase())?.value;

function EventFields({ value, change }: { value: Draft; change(part: Partial<Draft>): void }) {
  const texts = [
    ["name", "Name"],
    ["source", "Entity (its dimension source)"],
    ["summary", "Summary"],
  ] as const;
  return (
    <>
      {texts.map(([key, label]) => (
        <label key={key} class={formLook.field}>
          {label}
          <input required value={value[key]} onInput={({ currentTarget }) => change({ [key]: currentTarget.value })} />
        </label>
      ))}
      <label class={formLook.field}>
        Severity
        <select
          value={String(value.severity)}
          onChange={({ currentTarget }) => change({ severity: Number(currentTarget.value) as Severity })}
        >
          {severities
            .filter((each) => each.value !== Severity.DEFAULT)
            .map((each) => (
              <option key={each.value} value={String(each.value)}>
                {each.word}
              </option>
            ))}
        </select>
      </label>
    </>
  );
}

async function put({ name, source, severity, summary, labels }: Draft, status: Status): Promise<void> {
  const about = { name, severity, summary, status, metadataFields: labels };
  const event = { ...about, timestamp: BigInt(Date.now()), dimensions: { source } };
  const { failed, message } = await receiver.putEvents({ events: [event] });
  if (failed > 0) throw new Error(message);
}

/** The latest occurrence of this name at this entity: the one that was sent. */
async function occurrenceOf({ name, source }: Draft): Promise<string> {
  const equal = (field: string, value: string) => ({
    filter: { field, operation: Operation.OP_EQUALS, value: { kind: { case: "stringValue" as const, value } } },
  });
  const clause = { allOf: { clauses: [equal("name", name), equal("dimensions.source", source)] } };
  const { results } = await events.searchEvents({ query: { clause, pageInput: { limit: 1 } } });
  return results[0]?.occurrences[0]?.id ?? "";
}
