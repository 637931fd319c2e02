import type { EventItem } from "../../src/events/ingest.ts";

/** What the documentation says becomes of an event, written as plainly as it can be: no database, one item at a time. */
export interface ModelOccurrence {
  number: number;
  status: number;
  severity: number;
  acknowledged: boolean;
  summary: string;
  start: number;
  lastSeen: number;
  end: number | null;
  instances: number;
}

const CLOSED = 3;

export class EventModel {
  readonly events = new Map<string, ModelOccurrence[]>();
  readonly instances = new Set<string>();

  put(item: EventItem): void {
    const key = JSON.stringify([item.name, Object.entries(item.dimensions).sort()]);
    const sent = `${key} ${item.timeMs} ${item.severity} ${item.status}`;
    if (this.instances.has(sent)) return;
    this.instances.add(sent);
    const occurrences = this.events.get(key) ?? [];
    this.events.set(key, occurrences);
    const time = Number(item.timeMs);
    const latest = occurrences.at(-1);
    if (latest && time < Math.max(...occurrences.map((o) => o.lastSeen))) {
      const begun = occurrences.filter((o) => o.start <= time).at(-1);
      if (begun) begun.instances += 1;
      else if (occurrences[0]) {
        occurrences[0].instances += 1;
        occurrences[0].start = time;
      }
    } else if (latest && latest.status === CLOSED && item.status === CLOSED) {
      latest.instances += 1;
      latest.lastSeen = time;
    } else if (!latest || latest.status === CLOSED) {
      occurrences.push({
        number: occurrences.length + 1,
        status: item.status,
        severity: item.severity,
        acknowledged: item.acknowledged === true,
        summary: item.summary,
        start: time,
        lastSeen: time,
        end: item.status === CLOSED ? time : null,
        instances: 1,
      });
    } else {
      latest.instances += 1;
      latest.lastSeen = time;
      latest.status = item.status || latest.status;
      latest.severity = item.severity || latest.severity;
      latest.summary = item.summary || latest.summary;
      latest.acknowledged = item.acknowledged ?? latest.acknowledged;
      if (item.status === CLOSED) latest.end = time;
    }
  }
}
