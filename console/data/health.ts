import { computed } from "@preact/signals";
import { DeliveryService } from "#gen/belfry/notifications/v1/delivery_service_pb.ts";
import { clientOf } from "./calls.ts";
import { polled } from "./polled.ts";
import { may } from "./session.ts";

const deliveries = clientOf(DeliveryService);

/** The health of notifying itself. */
export const {
  value: health,
  ask: askHealth,
  start: startHealth,
} = polled(
  () => deliveries.getNotificationHealth({}),
  () => may(DeliveryService.method.getNotificationHealth),
);

/** How many destinations take no notifications. */
export const destinationsDown = computed(() =>
  health.value ? health.value.disabledCount + health.value.pausedCount : 0n,
);
