/** What was so when a delivery was decided; texts are read when it is sent. Times are ms since the epoch. */
export interface DeliverySnapshot {
  severity?: number;
  status?: number;
  acknowledged?: boolean;
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
  /** A maintenance window that begins or ends, instead of an event. */
  window?: { id: string; name: string; message: string; what: "start" | "end"; atMs: number };
}
