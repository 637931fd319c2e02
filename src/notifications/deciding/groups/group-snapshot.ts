import type { JsonObject } from "@bufbuild/protobuf";
import { Severity, Status } from "#gen/belfry/events/v1/event_pb.ts";
import { idText } from "../../../entities/identity.ts";
import { eventTexts } from "../../../events/fields.ts";
import { annotationsOf, common, fingerprintOf, isAlert, type LabelView, labelOf } from "../../../events/labels.ts";
import { occurrenceIdText } from "../../../events/occurrence-id.ts";
import type { AlertSnapshot, GroupSnapshot } from "../../delivery-snapshot.ts";
import type { Standing } from "./read-standing.ts";

/** How many members a message says, and how many bytes of them. */
const alertsMax = 100;
const bytesMax = 1024 * 1024;

/** A member that a message lists. */
export interface Listed {
  readonly standing: Standing;
  readonly resolved: boolean;
}

/** Sorts members as Alertmanager does: by `job`, then `instance`, then all labels. */
export function byLabels({ standing: { labels: a } }: Listed, { standing: { labels: b } }: Listed): number {
  for (const name of ["job", "instance"]) {
    const [one, other] = [labelOf(a, name), labelOf(b, name)];
    if (one === other) continue;
    if (one === "" || other === "") return one === "" ? 1 : -1;
    return one < other ? -1 : 1;
  }
  return compareSets(a, b);
}

function compareSets(a: LabelView, b: LabelView): number {
  const [left, right] = [Object.keys(a), Object.keys(b)];
  if (left.length !== right.length) return left.length - right.length;
  for (const name of [...new Set([...left, ...right])].sort()) {
    if (!Object.hasOwn(a, name)) return -1;
    if (!Object.hasOwn(b, name)) return 1;
    const [one, other] = [a[name] as string, b[name] as string];
    if (one !== other) return one < other ? -1 : 1;
  }
  return 0;
}

/** Returns what a message says of a group. `silenced`: those that fire, and that something holds back since they were sent. */
export function groupSnapshot(
  group: { readonly labels: Readonly<Record<string, string>>; readonly beyond: boolean },
  listed: readonly Listed[],
  silenced: readonly Standing[],
): GroupSnapshot {
  const firing = listed.filter(({ resolved }) => !resolved);
  const judged = [firing.map(({ standing }) => standing), silenced, listed.map(({ standing }) => standing)];
  const severityOf = ({ found }: Standing) => found?.occurrence.severity ?? Severity.ERROR;
  const worst = judged.find(({ length }) => length > 0)?.reduce((max, each) => Math.max(max, severityOf(each)), 0) ?? 0;
  return {
    ...group,
    commonLabels: common(listed.map(({ standing }) => standing.labels)),
    commonAnnotations: common(listed.map((each) => annotationsIn(each))),
    firing: firing.length,
    resolved: listed.length - firing.length,
    ...(silenced.length > 0 && { silenced: silenced.length }),
    severity: worst,
    acknowledged: firing.length > 0 && firing.every(({ standing }) => standing.found?.occurrence.acknowledged === true),
    alerts: fitting(listed),
  };
}

const annotationsIn = ({ standing: { found } }: Listed) =>
  found === undefined ? {} : annotationsOf(found.event, found.occurrence).annotations;

/** The first members, those that fire first where not all are kept. */
function fitting(listed: readonly Listed[]): AlertSnapshot[] {
  const isWhole = listed.length <= alertsMax;
  const chosen = isWhole
    ? listed
    : [...listed.filter((each) => !each.resolved), ...listed.filter((each) => each.resolved)];
  const alerts: AlertSnapshot[] = [];
  let bytes = 0;
  for (const each of chosen.slice(0, alertsMax)) {
    const alert = alertOf(each, listed.length === 1);
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
