import { timestampMs } from "@bufbuild/protobuf/wkt";
import { useSignal } from "@preact/signals";
import { type Delivery, DeliveryService, DeliveryStatus } from "#gen/belfry/notifications/v1/delivery_service_pb.ts";
import { linkTo } from "../frame/address.ts";
import { clientOf, type Failure, failureOf } from "../frame/calls.ts";
import { may } from "../frame/session.ts";
import { Problem } from "../parts/problem.tsx";
import { Time } from "../parts/time.tsx";
import { GroupMembers } from "./members.tsx";

const deliveries = clientOf(DeliveryService);

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
    <span class={`state ${tone}`}>
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

/** A delivery with its attempts and the receiver's answers. */
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
  const retry = async () => {
    try {
      await deliveries.retryDelivery({ id: delivery.id });
      failure.value = undefined;
      changed();
    } catch (error) {
      failure.value = failureOf(error);
    }
  };
  return (
    <article class="delivery">
      <p class="delivery-head">
        <DeliveryState status={delivery.status} />
        <strong>{delivery.destination}</strong>
        <span class="quiet">
          {occasions[delivery.occasion] ?? delivery.occasion} by rule {delivery.rule}, trigger {delivery.trigger}
        </span>
        <span class="push">
          <Time at={delivery.createTime} short />
        </span>
      </p>
      {subject && <Subject delivery={delivery} />}
      {delivery.error && <p class="answer">{delivery.error}</p>}
      {delivery.nextTryTime && (
        <p class="hint">
          Next attempt <Time at={delivery.nextTryTime} />
        </p>
      )}
      {delivery.tries.length > 0 && (
        <details open={delivery.status === DeliveryStatus.FAILED}>
          <summary>
            {delivery.attempts} {delivery.attempts === 1 ? "attempt" : "attempts"}
          </summary>
          <ol class="tries">
            {delivery.tries.map(({ time, reason, answer }) => (
              <li key={`${time ? timestampMs(time) : ""} ${reason}`}>
                <Time at={time} /> <strong>{reason}</strong> <span class="answer">{answer}</span>
              </li>
            ))}
          </ol>
        </details>
      )}
      {delivery.status === DeliveryStatus.FAILED && may(DeliveryService.method.retryDelivery) && (
        <button type="button" onClick={() => void retry()}>
          Send again
        </button>
      )}
      <Problem failure={failure.value} />
    </article>
  );
}

/** What it is about, with the way there. */
export function Subject({ delivery }: { delivery: Delivery }) {
  const { occurrenceId, entityId, metricName, subject, memberCount } = delivery;
  if (memberCount > 0) return <GroupMembers key={delivery.id} delivery={delivery} />;
  if (occurrenceId) return <a href={linkTo(["occurrences", occurrenceId])}>Occurrence {occurrenceId}</a>;
  if (entityId && metricName)
    return <a href={linkTo(["metrics"], { entity: entityId, metric: metricName })}>{metricName}</a>;
  if (entityId) return <a href={linkTo(["entities", entityId])}>Entity {entityId}</a>;
  return <span>{subject}</span>;
}
