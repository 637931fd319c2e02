import type { Severity } from "#gen/belfry/events/v1/event_pb.ts";
import { displayName } from "../../entities/display-name.ts";
import type { AlertSnapshot, Notification } from "../subject/notification.ts";
import { visible } from "./markup.ts";
import { cutText } from "./template.ts";
import {
  groupParts,
  hasMembers,
  linesOf,
  type Measure,
  missed,
  seriesName,
  severityName,
  summaryText,
  utf8Bytes,
} from "./variables.ts";

type Entity = Notification["entity"];

/** Says what people call an entity in a message. */
export const calledOf = ({ name, dimensions }: Pick<Entity, "name" | "dimensions">) => displayName(name, dimensions);

/** One line that says what happens, where, and what it says of itself: `DiskFull on web-1: /var is 93 % full`. */
export const title = (notification: Notification, measure?: Measure): string =>
  withoutBreaks(titleOf(notification, measure));

/** A text without breaks and other control characters. */
export const withoutBreaks = (text: string) => text.replace(/[\p{Cc}\s]+/gu, " ").trim();

function titleOf(notification: Notification, measure?: Measure): string {
  const { summary, group, event, metric, entity, trigger } = notification;
  if (summary !== undefined) return summaryText(summary, measure);
  if (group !== undefined && hasMembers(notification)) return groupTitle(group);
  const place = calledOf(entity);
  if (event !== undefined) {
    const where = place === "" ? "" : ` on ${place}`;
    const more = event.summary === "" || event.summary === event.name ? "" : `: ${event.summary}`;
    return visible(`${event.name}${where}${more}`);
  }
  if (metric?.value !== undefined) return visible(`${seriesName(metric)} is ${metric.value} on ${place}`);
  return visible(`no data${missed(metric?.name, trigger.type)} from ${place}`);
}

/** A group by the name that its members share: `DiskFull: 2 firing, 1 resolved (cluster=eu-1)`, and `DiskFull: 3 alerts (cluster=eu-1)` at its end. */
function groupTitle(group: NonNullable<Notification["group"]>): string {
  const { alertname = "", ...labels } = group.labels;
  const name = visible(cutText(alertname, nameCharsMax));
  const { counts, shared, still } = groupParts({ ...group, labels });
  const { firing, resolved } = group;
  const all = firing > 0 ? counts : `${resolved} ${resolved === 1 ? "alert" : "alerts"}`;
  return `${name === "" ? "" : `${name}: `}${all}${shared === "" ? "" : ` (${shared})`}${still}`;
}

// With what `groupParts` makes still less than half of what a chat takes, escaped.
const nameCharsMax = 60;

const apartMax = 3;
const apartCharsMax = 60;

const saidNames = new Set(["alertname", "severity", "__name__"]);

/** Whether a label says no more than the rest of a message: its name, its severity, or what the entity is called by. */
function isSaid(name: string, value: string, { dimensions }: Pick<Entity, "dimensions">, place: string): boolean {
  if (saidNames.has(name)) return true;
  if (!Object.hasOwn(dimensions, name)) return false;
  return place.includes(value.replace(/:\d{1,5}$/, "")) || (name === "job" && value === "node");
}

/** The labels that a message has not said otherwise, but for those that are `known` to all that it lists. */
export function labelsApart(
  labels: Readonly<Record<string, string>>,
  entity: Pick<Entity, "name" | "dimensions">,
  known: Readonly<Record<string, string>> = {},
): [name: string, value: string][] {
  const place = calledOf(entity);
  return Object.entries(labels).filter(
    ([name, value]) => !isSaid(name, value, entity, place) && !(Object.hasOwn(known, name) && known[name] === value),
  );
}

/** A member of a group on a line of its own: `CRITICAL web-1: /var is 93 % full (mountpoint=/var)`. */
export function memberTitle(
  { resolved, severity, entity, headline, labels }: AlertSnapshot,
  common: AlertSnapshot["labels"],
) {
  const state = resolved ? "RESOLVED" : severityName(severity as Severity);
  const place = calledOf(entity);
  const apart = labelsApart(labels, entity, common).slice(0, apartMax);
  const pairs = apart.map(([name, value]) => cutText(`${name}=${value}`, apartCharsMax)).join(", ");
  const said = [" on ", " from "].reduce((text, word) => without(text, word + entity.name), headline);
  return `${state}${place === "" ? "" : ` ${place}`}: ${said}${pairs === "" ? "" : ` (${pairs})`}`;
}

const without = (text: string, end: string) => (text.endsWith(end) ? text.slice(0, -end.length) : text);

/** Names the members of a group as default messages do, a line each, as many as fit, and says how many more there are. */
export function titleLines(group: NonNullable<Notification["group"]>, max: number, measure: Measure = utf8Bytes) {
  return linesOf(group, (alert) => memberTitle(alert, group.commonLabels), max, measure);
}
