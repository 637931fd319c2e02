import { useSignal } from "@preact/signals";
import { Operation } from "#gen/belfry/clause/v1/clause_pb.ts";
import { Severity, Status } from "#gen/belfry/events/v1/event_pb.ts";
import { EventQueryService } from "#gen/belfry/events/v1/query_service_pb.ts";
import { TriggerService } from "#gen/belfry/notifications/v1/trigger_service_pb.ts";
import { DataReceiverService } from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import { linkTo } from "../../data/address.ts";
import { useAnswer } from "../../data/answer.ts";
import { clientOf, type Failure, failureOf } from "../../data/calls.ts";
import { say } from "../../data/notice.ts";
import { may } from "../../data/session.ts";
import { Explanation } from "../../deliveries/explanation.tsx";
import { severities } from "../../events/words.tsx";
import formLook from "../../form/form.module.css";
import { Problem } from "../../ui/problem.tsx";
import ui from "../../ui/ui.module.css";
import { findSubjects } from "../rules/subjects.ts";
import rulesLook from "../rules.module.css";

const receiver = clientOf(DataReceiverService);
const events = clientOf(EventQueryService);
const triggers = clientOf(TriggerService);

interface Draft {
  readonly name: string;
  readonly source: string;
  readonly severity: Severity;
  readonly summary: string;
}

/** Sends an event as agents do, and shows what the rule made of it. */
export function RealEvent({ rule, trigger }: { rule: string; trigger: string }) {
  const like = useAnswer(async (signal) => {
    const { trigger: stored } = await triggers.getTrigger({ name: trigger }, { signal });
    return { source: stored?.type?.source.case, ...(await findSubjects([trigger], "", signal)) };
  });
  const draft = useSignal<Partial<Draft>>({});
  const sent = useSignal<{ readonly id: string; readonly round: number } | undefined>(undefined);
  const failure = useSignal<Failure | undefined>(undefined);
  if (!may(DataReceiverService.method.putEvents)) return null;
  const { found = [], by, source } = like.value.value ?? {};
  if (like.value.value && source !== "event") {
    return <p>The trigger looks at metrics or at data that stay away: no event sets it off.</p>;
  }
  // What the trigger has matched before, it matches again.
  const [latest] = by === "triggers" ? found : [];
  const summary = "Sent by hand from the console, to try a rule";
  const first = {
    name: latest?.name ?? "a try",
    source: "console",
    severity: latest?.severity ?? Severity.CRITICAL,
    summary,
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
        Write one that the trigger matches.
      </p>
      <form class={formLook.form} onSubmit={send} aria-label="Event to send">
        <EventFields value={value} change={change} />
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

async function put({ name, source, severity, summary }: Draft, status: Status): Promise<void> {
  const event = { name, severity, summary, status, timestamp: BigInt(Date.now()), dimensions: { source } };
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
