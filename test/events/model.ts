import type { EventItem } from "../../src/events/ingest.ts";

/** What the documentation says becomes of an event, written as plainly as it can be: no database, one item at a time. */
export interface ModelOccurrence {
  number: number;
  status: number;
  severity: number;
  acknowledged: boolean;
  type: string;
  summary: string;
  body: string;
  metadata: Record<string, unknown>;
  start: number;
  lastSeen: number;
  end: number | null;
  instances: number;
  /** While it is open: when it expires; once it is closed: when it had, if that closed it. */
  expires: number | null;
  /** The latest time at which a report that is no instance said that it goes on. */
  kept: number;
  /** Who closed it, by the number of the API's enum; null while it is open. */
  by: number | null;
}

/** What the model calls an event. */
export const eventKey = (name: string, dimensions: Record<string, string>, dedupKey = "") =>
  JSON.stringify([name, Object.entries(dimensions).sort(), ...(dedupKey === "" ? [] : [dedupKey])]);

const CLOSED = 3;
const [ALERT, EVENT, EXPIRY] = [1, 2, 4];

export class EventModel {
  readonly events = new Map<string, ModelOccurrence[]>();
  readonly instances = new Set<string>();

  /** Closes what has expired by a time. */
  expire(nowMs: number): void {
    for (const latest of [...this.events.values()].map((all) => all.at(-1))) {
      if (!latest || latest.status === CLOSED || latest.expires === null || latest.expires > nowMs) continue;
      latest.status = CLOSED;
      latest.by = EXPIRY;
      latest.end = Math.max(latest.expires, latest.lastSeen);
    }
  }

  put(item: EventItem, nowMs = 0): void {
    const key = eventKey(item.name, item.dimensions, item.dedupKey);
    const sent = `${key} ${item.timeMs} ${item.severity} ${item.status}`;
    const occurrences = this.events.get(key) ?? [];
    const latest = occurrences.at(-1);
    const expires = item.expiresAtMs === undefined ? null : Number(item.expiresAtMs);
    const isKnown = this.instances.has(sent);
    const lastMs = Math.max(...occurrences.map((o) => o.lastSeen), latest?.end ?? 0);
    const isLate = latest !== undefined && item.timeMs < lastMs;
    if (item.onlyKeepsOpen && latest && latest.status !== CLOSED) {
      if (latest.expires !== null) latest.expires = Math.max(latest.expires, expires ?? 0);
      latest.kept = Math.max(latest.kept, Number(item.timeMs));
      Object.assign(latest, { summary: item.summary, body: item.body, metadata: item.metadata });
      return;
    }
    if ((isKnown || isLate) && latest && latest.status !== CLOSED && latest.expires !== null) {
      latest.expires = Math.max(latest.expires, expires ?? 0);
    }
    if (isKnown || (item.onlyKeepsOpen && latest && item.timeMs <= lastMs)) {
      const goesOn = latest?.by === EXPIRY || (latest?.by === ALERT && item.onlyKeepsOpen);
      if (!goesOn || item.status === CLOSED || (expires !== null && expires <= nowMs)) return;
      this.put({ ...item, onlyKeepsOpen: undefined, timeMs: BigInt(nowMs > lastMs ? nowMs : lastMs + 1) }, nowMs);
      return;
    }
    this.instances.add(sent);
    this.events.set(key, occurrences);
    const time = Number(item.timeMs);
    const by = item.closesOpen ? ALERT : EVENT;
    if (item.closesOpen && latest && latest.status !== CLOSED) {
      latest.end = Math.max(time, latest.lastSeen, latest.kept);
      latest.instances += 1;
      latest.lastSeen = Math.max(latest.lastSeen, time);
      latest.status = CLOSED;
      latest.by = by;
      latest.severity = item.severity || latest.severity;
      Object.assign(latest, saidTexts(item));
      latest.acknowledged = item.acknowledged ?? latest.acknowledged;
      latest.expires = null;
    } else if (isLate) {
      const begun = occurrences.filter((o) => o.start <= time).at(-1);
      if (begun) begun.instances += 1;
      if (begun === latest) latest.lastSeen = Math.max(latest.lastSeen, time);
      if (begun) return;
      if (occurrences[0]) {
        occurrences[0].instances += 1;
        occurrences[0].start = time;
      }
    } else if (latest && latest.status === CLOSED && item.status === CLOSED) {
      latest.instances += 1;
      latest.lastSeen = time;
      if (latest.by === EXPIRY) latest.by = by;
      latest.expires = null;
    } else if (!latest || latest.status === CLOSED) {
      occurrences.push(opened(occurrences.length + 1, item, by));
    } else {
      latest.instances += 1;
      latest.lastSeen = time;
      latest.status = item.status || latest.status;
      latest.severity = item.severity || latest.severity;
      Object.assign(latest, saidTexts(item));
      latest.acknowledged = item.acknowledged ?? latest.acknowledged;
      latest.expires = item.status === CLOSED ? null : (expires ?? latest.expires);
      if (item.status === CLOSED) {
        latest.end = time;
        latest.by = by;
      }
    }
  }
}

/** What a report says; what it leaves out stays as it is. */
const saidTexts = ({ type, summary, body, metadata }: EventItem) => ({
  ...(type !== "" && { type }),
  ...(summary !== "" && { summary }),
  ...(body !== "" && { body }),
  ...(Object.keys(metadata).length > 0 && { metadata }),
});

/** The occurrence that a report opens. */
function opened(number: number, item: EventItem, by: number) {
  const time = Number(item.timeMs);
  const closed = item.status === CLOSED;
  return {
    number,
    status: item.status,
    severity: item.severity,
    acknowledged: item.acknowledged === true,
    type: item.type,
    summary: item.summary,
    body: item.body,
    metadata: item.metadata,
    start: time,
    lastSeen: time,
    end: closed ? time : null,
    instances: 1,
    expires: closed || item.expiresAtMs === undefined ? null : Number(item.expiresAtMs),
    kept: 0,
    by: closed ? by : null,
  };
}
