import { setTimeout as sleep } from "node:timers/promises";
import { silencePlace } from "../silences/place.ts";

type Json = Record<string, unknown>;

/** A tenant whose receiver keeps whole bodies. */
export async function groupPlace() {
  const place = await silencePlace();
  const { receiver, ok } = place;
  const bodies = () =>
    receiver.received.map(({ body }) => JSON.parse(body) as Json & { alerts: Json[]; event: Json | null });
  return {
    ...place,
    bodies,
    /** Waits until so many messages have arrived. */
    async arrive(count: number) {
      while (receiver.received.length < count) await sleep(20);
      return bodies();
    },
    reportAll: (names: readonly string[], more: Json = {}) =>
      ok("POST", "/v1/data-receiver/events", {
        events: names.map((name) => ({
          name,
          // Ahead, so that no wait is over however late it is looked at.
          timestamp: String(Date.now() + 60_000),
          dimensions: { source: "web" },
          severity: "SEVERITY_ERROR",
          status: "STATUS_OPEN",
          ...more,
        })),
      }),
  };
}
