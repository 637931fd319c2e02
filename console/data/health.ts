import { computed, effect, signal } from "@preact/signals";
import {
  DeliveryService,
  type GetNotificationHealthResponse,
} from "#gen/belfry/notifications/v1/delivery_service_pb.ts";
import { clientOf } from "./calls.ts";
import { inSight } from "./in-sight.ts";
import { may, session } from "./session.ts";

const deliveries = clientOf(DeliveryService);
const askAgainMs = 20_000;

/** How notifying itself is, as the server said last; undefined until then. */
export const health = signal<GetNotificationHealthResponse | undefined>(undefined);

/** How many destinations take no notifications. */
export const destinationsDown = computed(() =>
  health.value ? health.value.disabledCount + health.value.pausedCount : 0n,
);

/** Asks at once how notifying is. What is known stays if there is no answer. */
export async function askHealth(): Promise<void> {
  const of = session.peek()?.id;
  const answer = await deliveries.getNotificationHealth({}).catch(() => undefined);
  if (answer !== undefined && session.peek()?.id === of) health.value = answer;
}

/** Asks again and again while there is a session that may, and the page is in sight. Called once, at the start. */
export function startHealth(): void {
  const allowed = computed(() =>
    session.value != null && may(DeliveryService.method.getNotificationHealth) ? session.value.id : undefined,
  );
  effect(() => {
    health.value = undefined;
    if (allowed.value === undefined) return;
    void askHealth();
    const asking = setInterval(() => {
      if (inSight.peek()) void askHealth();
    }, askAgainMs);
    return () => clearInterval(asking);
  });
}
