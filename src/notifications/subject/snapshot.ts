/** What was so when a delivery was decided; texts are read when it is sent. Times are ms since the epoch. */
export interface DeliverySnapshot {
  severity?: number;
  status?: number;
  acknowledged?: boolean;
  /** Of an update: what was reported before it. */
  since?: { severity: number; status: number; acknowledged: boolean };
  /** Of the event or point. */
  timeMs?: number;
  /** Of the occurrence's instances. */
  count?: number;
  value?: number;
  /** Of a series that has some. */
  labels?: Readonly<Record<string, string>>;
  /** The bound that was crossed and which it is. */
  threshold?: number;
  thresholdType?: string;
  clear?: boolean;
  /** The names of the rules that made the event, the latest last. */
  chain?: string[];
  /** What set off the rules: a report from outside, a call, a crossing, the end of a window. A UUID of its time. */
  root?: string;
  /** Of a summary's end: what the summary said. */
  summary?: SummarySnapshot;
  /** Of a message of a group. */
  group?: { readonly message: string; readonly firing: number; readonly resolved: number };
  /** A maintenance window that begins or ends, instead of an event. */
  window?: { id: string; name: string; message: string; what: "start" | "end"; atMs: number };
}

/** What a summary says, kept for its end: events and entities may be deleted by then. */
export interface SummarySnapshot {
  /** The delivery that was sent as the summary. */
  readonly id: string;
  readonly count: number;
  /** Its members, as many as are named. */
  readonly names: readonly string[];
  /** The worst of its members. */
  readonly severity: number;
  /** Of the delivery that was sent as the summary; empty for a series or an entity. */
  readonly eventId: string;
  readonly entity: {
    readonly id: string;
    readonly name: string;
    readonly dimensions: Readonly<Record<string, string>>;
  };
}
