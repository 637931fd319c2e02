import { useEffect } from "preact/hooks";
import type { Occurrence } from "#gen/belfry/events/v1/event_pb.ts";
import { DeliveryService, DeliveryStatus } from "#gen/belfry/notifications/v1/delivery_service_pb.ts";
import { useAnswer } from "../data/answer.ts";
import { clientOf } from "../data/calls.ts";
import { DeliveryCard } from "../deliveries/card.tsx";
import { Problem } from "../ui/problem.tsx";
import { nowMs } from "../ui/time.tsx";
import ui from "../ui/ui.module.css";
import occurrenceLook from "./occurrence.module.css";

const deliveries = clientOf(DeliveryService);

/** What was sent of an occurrence, and what came back. */
export function OccurrenceDeliveries({ occurrence }: { occurrence: Occurrence }) {
  const eventId = occurrence.id;
  const answer = useAnswer((signal) => deliveries.listDeliveries({ eventId, pageSize: 50 }, { signal }), occurrence);
  const { value, failure, again } = answer.value;
  // What waits goes out, or is held back, without news of the occurrence.
  const waits = value?.deliveries.some(({ status }) => status === DeliveryStatus.PENDING) ?? false;
  const now = waits ? nowMs.value : 0;
  useEffect(() => {
    if (now > 0) again();
  }, [now]);
  return (
    <section class={ui.card} aria-labelledby="sent">
      <h2 id="sent">Deliveries</h2>
      <Problem failure={failure} again={again} />
      {value?.deliveries.length === 0 && <p class={ui.quiet}>Nothing was sent for it. The section below says why.</p>}
      <ul class={occurrenceLook.cards}>
        {value?.deliveries.map((delivery) => (
          <li key={delivery.id}>
            <DeliveryCard delivery={delivery} changed={again} />
          </li>
        ))}
      </ul>
    </section>
  );
}
