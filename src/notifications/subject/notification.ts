import type { JsonObject } from "@bufbuild/protobuf";
import type { Severity, Status } from "#gen/belfry/events/v1/event_pb.ts";
import type { TriggerType } from "#gen/belfry/notifications/v1/trigger_pb.ts";
import { idText } from "../../entities/identity.ts";
import type { StoredOccurrence } from "../../events/columns.ts";
import { type EventTexts, type IdentityColumns, toTexts } from "../../events/fields.ts";

/** Why a notification is sent: the first of a match, again because it goes on, or because something changed. */
export type Occasion = "first" | "repeat" | "acknowledged" | "unacknowledged" | "severity" | "members" | "clear";

/** How many rules may cause each other: an event that the last of them makes starts no further one. */
export const chainRulesMax = 5;

/** An event as a notification says it. */
export interface NotifiedEvent extends EventTexts {
  readonly id: string;
  readonly type: string;
  readonly summary: string;
  readonly body: string;
  readonly severity: Severity;
  readonly status: Status;
  readonly acknowledged: boolean;
  readonly timeMs: number;
  /** When its occurrence began; absent: it has none. */
  readonly startMs?: number;
  /** Of the occurrence's instances. */
  readonly count: bigint;
  readonly metadata: JsonObject;
  /** When its occurrence expires; absent: never. */
  readonly expiresMs?: number;
}

/** Returns the event of a row as notifications say it. */
export function notifiedEvent(row: StoredOccurrence & IdentityColumns): NotifiedEvent {
  const { type, summary, body, acknowledged } = row;
  return {
    id: idText(row.event_id),
    ...toTexts(row),
    type,
    summary,
    body,
    metadata: row.metadata as JsonObject,
    severity: row.severity as Severity,
    status: row.status as Status,
    acknowledged,
    timeMs: Number(row.last_seen_ms),
    count: row.instance_count,
    startMs: Number(row.start_ms),
    ...(row.expires_ms !== null && { expiresMs: Number(row.expires_ms) }),
  };
}

/** What a notification reports: the same for all destinations of a rule. Times are ms since the epoch. */
export interface Notification {
  /** The delivery's id, the same for all its tries; no full stop in it. */
  readonly id: string;
  readonly occasion: Occasion;
  /** Whether the condition is over. */
  readonly clear: boolean;
  readonly timeMs: number;
  readonly tenant: { readonly id: string; readonly name: string };
  readonly rule: {
    readonly name: string;
    readonly message: string;
    readonly enabled: boolean;
    readonly repeatIntervalSec: bigint;
    readonly triggerNames: readonly string[];
    readonly destinationNames: readonly string[];
  };
  readonly trigger: {
    readonly name: string;
    readonly type: TriggerType;
    /** The bound that was crossed and which it is, for a metric: `min`, `max`; for data that stay away: seconds, `duration`. */
    readonly threshold?: number;
    readonly thresholdType?: string;
  };
  /** What is reported, across all its notifications: an occurrence's id, at most 100 characters. */
  readonly subjectId: string;
  /** Names the match that it belongs to, within its subject; absent in tests and previews. */
  readonly match?: string;
  /** Of a summary, and of its end: how many notifications it stands for, and as many of their names as are known. */
  readonly summary?: { readonly id: string; readonly count: number; readonly names: readonly string[] };
  /** Of a group: what its message says of its members. The event and entity are its only member's, or stand for all of them. */
  readonly group?: GroupSnapshot & { readonly key: string };
  /** Absent for a metric, or data that stay away. */
  readonly event?: NotifiedEvent;
  readonly entity: {
    readonly id: string;
    readonly name: string;
    readonly dimensions: Readonly<Record<string, string>>;
  };
  /** Of a metric's last point; without value when there never was one. */
  readonly metric?: {
    readonly name: string;
    /** Absent: the series has none. */
    readonly labels?: Readonly<Record<string, string>>;
    readonly value?: number;
    readonly timeMs?: number;
  };
  /**
   * The rules that led to this: of an event that the `event` kind made, those that led to its notification and that
   * notification's own, the latest last. The event starts none of them again. Empty for what came from outside.
   */
  readonly chain: readonly string[];
  /** What set them off, a UUID: the same for all that follows from it. Absent: nothing else follows from it. */
  readonly root?: string;
}

/** What the message of a group says, kept for its deliveries: what it is about may have changed or gone when they are sent. */
export interface GroupSnapshot {
  /** What its members share. */
  readonly labels: Readonly<Record<string, string>>;
  /** What the labels, and annotations, of all of its members have in common. */
  readonly commonLabels: Readonly<Record<string, string>>;
  readonly commonAnnotations: Readonly<Record<string, string>>;
  /** Whether it is the group of those beyond the bound of groups. */
  readonly beyond: boolean;
  readonly firing: number;
  readonly resolved: number;
  /** How many more fire that were sent to the same destinations, and that something holds back; absent: none. */
  readonly silenced?: number;
  /** The worst of its firing members, of the silenced ones where none is listed as firing, or of all where none fires. */
  readonly severity: number;
  readonly acknowledged: boolean;
  /** The first of its members, as many as are kept. */
  readonly alerts: readonly AlertSnapshot[];
}

/** A member of a group, as a message says it. Times are ms since the epoch. */
export interface AlertSnapshot {
  readonly subjectId: string;
  readonly resolved: boolean;
  readonly headline: string;
  readonly severity: number;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly startMs: number;
  /** Null: it has not ended. */
  readonly endMs: number | null;
  readonly generatorURL: string;
  readonly fingerprint: string;
  readonly entity: {
    readonly id: string;
    readonly name: string;
    readonly dimensions: Readonly<Record<string, string>>;
  };
  readonly triggerName: string;
  /** Of a member that is the only one. */
  readonly event?: Omit<NotifiedEvent, "count"> & { readonly count: string };
  readonly metric?: Notification["metric"];
}

/** The entity that stands for those of a group's members. */
export const standInEntity = (rule: string) => ({ name: rule, dimensions: { source: "belfry", rule } });
