import { type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { type Delivery, DeliveryService, DeliveryStatus } from "#gen/belfry/notifications/v1/delivery_service_pb.ts";
import { BreakerState } from "#gen/belfry/notifications/v1/destination_pb.ts";
import { linkTo } from "../data/address.ts";
import { type Failure, failureOf } from "../data/calls.ts";
import { askHealth, health } from "../data/health.ts";
import { may } from "../data/session.ts";
import { Problem } from "../ui/problem.tsx";
import { nowMs, Time } from "../ui/time.tsx";
import ui from "../ui/ui.module.css";
import deliveriesLook from "./deliveries.module.css";
import { DownReason, isDown } from "./health.tsx";
import { GroupMembers } from "./members.tsx";
import { lastAnswer, sendAgain } from "./send-again.ts";

export const statusWords: Readonly<Record<number, { word: string; sign: string; tone: string }>> = {
  [DeliveryStatus.DELIVERY_STATUS_UNSPECIFIED]: { word: "Any", sign: "", tone: "" },
  [DeliveryStatus.PENDING]: { word: "Pending", sign: "○", tone: "info" },
  [DeliveryStatus.SENT]: { word: "Sent", sign: "✓", tone: "good" },
  [DeliveryStatus.FAILED]: { word: "Failed", sign: "▲", tone: "critical" },
  [DeliveryStatus.CANCELLED]: { word: "Cancelled", sign: "–", tone: "quiet" },
  [DeliveryStatus.HELD]: { word: "Held by a silence", sign: "◌", tone: "quiet" },
  [DeliveryStatus.SUMMARISED]: { word: "In a summary", sign: "≡", tone: "good" },
};

export function DeliveryState({ status }: { status: DeliveryStatus }) {
  const { word, sign, tone } = statusWords[status] ?? { word: String(status), sign: "", tone: "" };
  return (
    <span class={ui.state} data-tone={tone}>
      <span aria-hidden="true">{sign}</span> {word}
    </span>
  );
}

const occasions: Readonly<Record<string, string>> = {
  first: "first notification",
  repeat: "repetition",
  acknowledged: "acknowledged",
  unacknowledged: "acknowledgement withdrawn",
  severity: "change of severity",
  members: "change of a group",
  clear: "clear",
};

/** A delivery with its attempts and the receiver's answers. With `subject` it stands alone, and names its rule and what it is about. */
export function DeliveryCard({
  delivery,
  changed,
  subject,
}: {
  delivery: Delivery;
  changed(): void;
  subject?: boolean;
}) {
  const failure = useSignal<Failure | undefined>(undefined);
  const came = useSignal("");
  const retry = async () => {
    failure.value = undefined;
    came.value = "Sending again…";
    try {
      const now = await sendAgain(delivery.id);
      const { word = "" } = statusWords[now?.status ?? 0] ?? {};
      came.value = `Sent again. ${word}: ${now && lastAnswer(now)}`;
    } catch (error) {
      came.value = "";
      failure.value = failureOf(error);
    }
    changed();
  };
  return (
    <article class={deliveriesLook.delivery}>
      <p class={deliveriesLook.deliveryHead}>
        {!subject && <span aria-hidden="true">→</span>}
        <a href={linkTo(["rules", "destinations", delivery.destination])}>{delivery.destination}</a>
        <DeliveryState status={delivery.status} />
        <span class={ui.quiet}>
          {occasions[delivery.occasion] ?? delivery.occasion}
          {subject && ` by rule ${delivery.rule}`}
          {delivery.trigger && `, trigger ${delivery.trigger}`}
        </span>
        <span class={ui.push}>
          <Time at={delivery.createTime} short />
        </span>
      </p>
      {subject && <Subject delivery={delivery} />}
      {lastAnswer(delivery) && <p class={ui.answer}>{lastAnswer(delivery)}</p>}
      {delivery.nextTryTime && <NextAttempt destination={delivery.destination} at={delivery.nextTryTime} />}
      {delivery.tries.length > 0 && (
        <details>
          <summary>
            {delivery.attempts} {delivery.attempts === 1 ? "attempt" : "attempts"}
          </summary>
          <ol class={deliveriesLook.tries}>
            {delivery.tries.map(({ time, reason, answer }) => (
              <li key={`${time ? timestampMs(time) : ""} ${reason}`}>
                <Time at={time} /> <strong>{reason}</strong> <span class={ui.answer}>{answer}</span>
              </li>
            ))}
          </ol>
        </details>
      )}
      {delivery.status === DeliveryStatus.FAILED && may(DeliveryService.method.retryDelivery) && (
        <button type="button" disabled={came.value.endsWith("…")} onClick={() => void retry()}>
          Send again
        </button>
      )}
      <p class={deliveriesLook.came} role="status">
        {came.value}
      </p>
      <Problem failure={failure.value} />
    </article>
  );
}

/** Says when the next attempt is due, or why and how long its destination holds it back. */
function NextAttempt({ destination: name, at }: { destination: string; at: Timestamp }) {
  // What was asked last may be older than the pause.
  useEffect(() => void askHealth(), [name]);
  const destination = health.value?.destinations.find((each) => each.name === name);
  const overdue = timestampMs(at) < nowMs.value;
  if (destination === undefined || !isDown(destination)) {
    return (
      <p class={ui.hint}>
        {overdue ? "Waiting its turn since " : "Next attempt "}
        <Time at={at} due />
      </p>
    );
  }
  const { disabledReason, breakerState, waitingCount } = destination;
  return (
    <p>
      <span class={ui.state} data-tone="critical">
        <span aria-hidden="true">▲</span> Held back
      </span>
      {overdue && (
        <>
          {" "}
          since <Time at={at} />
        </>
      )}
      : the destination <a href={linkTo(["rules", "destinations", name])}>{name}</a> is{" "}
      <DownReason destination={destination} />
      {waitingCount > 0n && `; ${waitingCount.toLocaleString("en")} waiting`}.{" "}
      {disabledReason !== ""
        ? "Waiting notifications fail unless the destination is enabled first."
        : breakerState === BreakerState.HALF_OPEN
          ? "It failed again and again: one notification is being tried; the others follow if it succeeds."
          : "It failed again and again; waiting notifications are sent once it answers."}
    </p>
  );
}

/** Names the subject of a delivery, linked to its screen. */
export function Subject({ delivery }: { delivery: Delivery }) {
  const { occurrenceId, entityId, metricName, subject, memberCount } = delivery;
  if (memberCount > 0) return <GroupMembers key={delivery.id} delivery={delivery} />;
  if (occurrenceId) return <a href={linkTo(["occurrences", occurrenceId])}>Occurrence {occurrenceId}</a>;
  if (entityId && metricName)
    return <a href={linkTo(["metrics"], { entity: entityId, metric: metricName })}>{metricName}</a>;
  if (entityId) return <a href={linkTo(["entities", entityId])}>Entity {entityId}</a>;
  return <span>{subject}</span>;
}
