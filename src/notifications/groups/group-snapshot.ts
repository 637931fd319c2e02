import type { JsonObject } from "@bufbuild/protobuf";
import { Severity, Status } from "#gen/belfry/events/v1/event_pb.ts";
import { idText } from "../../entities/identity.ts";
import type { Pace } from "../../event-loop.ts";
import { eventTexts } from "../../events/fields.ts";
import { annotationsOf, fingerprintOf, isAlert, keepShared, type LabelView, labelOf } from "../../events/labels.ts";
import { occurrenceIdText } from "../../events/occurrence-id.ts";
import type { AlertSnapshot, GroupSnapshot } from "../subject/notification.ts";
import type { Standing } from "./read-standing.ts";

/** How many members a message says, and how many bytes of them. */
const alertsMax = 100;
const bytesMax = 1024 * 1024;

/** A member that a message lists. */
export interface Listed {
  readonly standing: Standing;
  readonly resolved: boolean;
}

/**
 * Returns bytes that sort members as Alertmanager does: by `job`, then `instance`, those without it last; then by the number of
 * labels, then by all labels: at the first difference the one without the label, or with the smaller value, comes first.
 */
function sortKey({ standing: { labels } }: Listed): Buffer {
  const names = Object.keys(labels).sort();
  let length = 4;
  for (const name of [...names, "job", "instance"]) length += 3 * (name.length + labelOf(labels, name).length) + 2;
  const key = Buffer.allocUnsafe(length);
  let end = 0;
  const put = (text: string) => {
    end += key.write(text, end);
    end = key.writeUInt8(0, end);
  };
  for (const name of ["job", "instance"]) {
    const value = labelOf(labels, name);
    end = key.writeUInt8(value === "" ? 1 : 0, end);
    if (value !== "") put(value);
  }
  end = key.writeUInt32BE(names.length, end);
  for (const name of names) {
    // Of two names at one place the other set lacks the smaller one: the set that has it comes later.
    const begin = end;
    put(name);
    for (let i = begin; i < end; i++) key[i] = 255 - (key[i] as number);
    put(labels[name] as string);
  }
  return key.subarray(0, end);
}

/** Finds the first members in the order of their labels, in slices; those that fire before all others where not all have room. */
async function firstOf(listed: readonly Listed[], pace: Pace): Promise<Listed[]> {
  const isWhole = listed.length <= alertsMax;
  const first: { each: Listed; key: Buffer }[] = [];
  for (const each of listed) {
    const turn = pace();
    if (turn !== undefined) await turn;
    const key = sortKey(each);
    const isBefore = (other: { each: Listed; key: Buffer }) =>
      isWhole || each.resolved === other.each.resolved ? Buffer.compare(key, other.key) < 0 : other.each.resolved;
    const last = first[alertsMax - 1];
    if (last !== undefined && !isBefore(last)) continue;
    first.splice(placeOf(first, isBefore), 0, { each, key });
    if (first.length > alertsMax) first.pop();
  }
  return first.map(({ each }) => each);
}

/** Finds, in a list in its order, the first place before which something belongs. */
function placeOf<T>(sorted: readonly T[], isBefore: (other: T) => boolean): number {
  let [from, to] = [0, sorted.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if (isBefore(sorted[middle] as T)) to = middle;
    else from = middle + 1;
  }
  return from;
}

/** Returns what members have in common, in slices. */
async function commonOf(listed: readonly Listed[], of: (each: Listed) => LabelView, pace: Pace) {
  const [first, ...others] = listed;
  const shared = new Map(first === undefined ? [] : Object.entries(of(first)));
  for (const each of others) {
    if (shared.size === 0) break;
    const turn = pace();
    if (turn !== undefined) await turn;
    keepShared(shared, of(each));
  }
  return Object.fromEntries(shared);
}

/**
 * Returns what a message says of a group, and its members in their order: first those that it says, then the others as they come.
 * @param silenced those that fire, and that something holds back since they were sent
 */
export async function groupSnapshot(
  group: { readonly labels: Readonly<Record<string, string>>; readonly beyond: boolean },
  listed: readonly Listed[],
  pace: Pace,
  silenced: readonly Standing[] = [],
): Promise<{ told: GroupSnapshot; listed: readonly Listed[] }> {
  const firing = listed.filter(({ resolved }) => !resolved);
  const severityOf = ({ found }: Standing) => found?.occurrence.severity ?? Severity.ERROR;
  const judged = [firing.map(({ standing }) => standing), silenced, listed.map(({ standing }) => standing)];
  const worst = judged.find(({ length }) => length > 0)?.reduce((max, each) => Math.max(max, severityOf(each)), 0) ?? 0;
  const first = await firstOf(listed, pace);
  const said = new Set(first);
  const told = {
    ...group,
    commonLabels: await commonOf(listed, ({ standing }) => standing.labels, pace),
    commonAnnotations: await commonOf(listed, annotationsIn, pace),
    firing: firing.length,
    resolved: listed.length - firing.length,
    ...(silenced.length > 0 && { silenced: silenced.length }),
    severity: worst,
    acknowledged: firing.length > 0 && firing.every(({ standing }) => standing.found?.occurrence.acknowledged === true),
    alerts: await fitting(first, listed.length === 1, pace),
  };
  return { told, listed: [...first, ...listed.filter((each) => !said.has(each))] };
}

const annotationsIn = ({ standing: { found } }: Listed) =>
  found === undefined ? {} : annotationsOf(found.event, found.occurrence).annotations;

/** As many of the first members as a message holds. */
async function fitting(first: readonly Listed[], isAlone: boolean, pace: Pace): Promise<AlertSnapshot[]> {
  const alerts: AlertSnapshot[] = [];
  let bytes = 0;
  for (const each of first) {
    await pace();
    const alert = alertOf(each, isAlone);
    bytes += Buffer.byteLength(JSON.stringify(alert));
    if (bytes > bytesMax) break;
    alerts.push(alert);
  }
  return alerts;
}

function alertOf({ standing, resolved }: Listed, isAlone: boolean): AlertSnapshot {
  const { match, found, entity, labels, startMs } = standing;
  const { subject, triggerNames, value, valueMs } = match;
  const { metricName, metricLabels } = subject;
  const cameAsAlert = found !== undefined && isAlert(found.event, found.occurrence);
  const place = {
    id: idText(subject.entityId),
    name: entity?.name ?? "",
    dimensions: (entity?.dimensions ?? {}) as Record<string, string>,
  };
  const metric =
    metricName === undefined ? undefined : { name: metricName, ...(metricLabels && { labels: metricLabels }) };
  const shared = {
    resolved,
    labels,
    entity: place,
    triggerName: triggerNames[0] ?? "",
    ...(metric && {
      metric: { ...metric, ...(value !== undefined && { value }), ...(valueMs !== undefined && { timeMs: valueMs }) },
    }),
  };
  if (found === undefined)
    return {
      ...shared,
      subjectId: subject.key.toString("base64url"),
      headline: value === undefined ? `no data from ${place.name}` : `${metricName} is ${value} on ${place.name}`,
      severity: Severity.ERROR,
      annotations: {},
      startMs,
      endMs: resolved ? Math.max(match.lastMs, startMs) : null,
      generatorURL: "",
      fingerprint: subject.key.toString("hex").slice(0, 16),
    };
  const { event, occurrence } = found;
  return {
    ...shared,
    subjectId: occurrenceIdText(event.id, occurrence.number),
    headline: occurrence.summary || event.name,
    severity: occurrence.severity,
    ...annotationsOf(event, occurrence),
    startMs: Number(occurrence.startMs),
    endMs: resolved ? Number(occurrence.endMs ?? occurrence.lastSeenMs) : null,
    fingerprint: fingerprintOf(event, cameAsAlert),
    ...(isAlone && {
      event: {
        id: idText(event.id),
        ...eventTexts(event),
        type: occurrence.type,
        summary: occurrence.summary,
        body: occurrence.body,
        severity: occurrence.severity as Severity,
        status: resolved ? Status.CLOSED : (occurrence.status as Status),
        acknowledged: occurrence.acknowledged,
        timeMs: Number(occurrence.lastSeenMs),
        startMs: Number(occurrence.startMs),
        count: String(occurrence.instanceCount),
        metadata: occurrence.metadata as JsonObject,
        ...(occurrence.expiresMs !== null && { expiresMs: Number(occurrence.expiresMs) }),
      },
    }),
  };
}
