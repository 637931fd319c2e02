import type { Config } from "../../config/settings.ts";
import type { EventItem } from "../../events/ingest.ts";
import type { LaneKind } from "../../receiver/ingest-queue.ts";
import { timesTaken } from "../../receiver/item.ts";
import { putItems } from "../../receiver/put-items.ts";
import type { Call } from "../integration.ts";
import { type Alert, brokenAlert } from "./alerts.ts";
import { type AlertTimes, eventOfAlert } from "./event-of-alert.ts";

/** Where alerts go, and what becomes of their labels. */
export interface AlertStore {
  config: Pick<Config, "eventRetentionSec" | "aheadSecMax" | "entityLabels">;
  lane: LaneKind<EventItem>;
}

/** When an alert fires, by what its request says and the time now. */
export type TimesOf = (alert: Alert, nowMs: number) => AlertTimes;

/**
 * Stores the alerts that are good; returns what is wrong with the others. A time that is older than the receiver takes, or too far
 * ahead, is moved to where it is taken. May be repeated.
 */
export async function storeAlerts(
  { config, lane }: AlertStore,
  alerts: readonly Alert[],
  timesOf: TimesOf,
  call: Call,
  bytes: number,
): Promise<string[]> {
  const nowMs = Math.floor(call.nowMs());
  const [oldest, newest] = timesTaken({ ageSecMax: config.eventRetentionSec, aheadSecMax: config.aheadSecMax }, nowMs);
  const mistakes: string[] = [];
  const items: EventItem[] = [];
  for (const alert of alerts) {
    const wait = call.pace();
    if (wait !== undefined) await wait;
    const mistake = brokenAlert(alert);
    if (mistake !== undefined) {
      mistakes.push(mistake);
      continue;
    }
    const times = timesOf(alert, nowMs);
    const timeMs = Math.floor(Math.min(newest, Math.max(oldest, times.timeMs)));
    items.push(eventOfAlert(alert, { ...times, timeMs }, config.entityLabels));
  }
  const refused = await putItems(lane, call.sender, items, bytes);
  mistakes.push(...refused.values());
  call.count("stored", items.length - refused.size);
  call.count("refused", alerts.length - items.length + refused.size);
  return mistakes;
}

const listedMax = 10;

/** The first mistakes in one text, and how many more there are. */
export function mistakesText(mistakes: readonly string[]): string {
  const more = mistakes.length - listedMax;
  return [...mistakes.slice(0, listedMax), ...(more > 0 ? [`and ${more} more`] : [])].join("; ");
}
