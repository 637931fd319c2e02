import type { MetricThresholdSource } from "#gen/belfry/notifications/v1/trigger_pb.ts";
import type { DeliverySnapshot } from "../../subject/snapshot.ts";
import type { LoadedTrigger } from "../tenant-rules.ts";

/** Points lie at most so far ahead of the clock that they are looked for, ms. */
export const aheadMs = 400 * 86_400_000;

const sourceOf = ({ type }: LoadedTrigger) => type.source.value as MetricThresholdSource;

/** The bound that a value crosses; undefined: it is good. */
export function crossed(
  trigger: LoadedTrigger,
  value: number,
): Pick<DeliverySnapshot, "threshold" | "thresholdType"> | undefined {
  const { min, max } = sourceOf(trigger);
  if (min !== undefined && value < min) return { threshold: min, thresholdType: "min" };
  if (max !== undefined && value > max) return { threshold: max, thresholdType: "max" };
  return undefined;
}

/** The values from `low` to `high` are good for all of these triggers. */
export function boundsOf(triggers: readonly LoadedTrigger[]): { low: number; high: number } {
  let [low, high] = [-Infinity, Infinity];
  for (const trigger of triggers) {
    const { min, max } = sourceOf(trigger);
    low = Math.max(low, min ?? low);
    high = Math.min(high, max ?? high);
  }
  return { low, high };
}
