import type { MessageInitShape } from "@bufbuild/protobuf";
import { Severity, Status } from "#gen/belfry/events/v1/event_pb.ts";
import type { EventSchema } from "#gen/belfry/receiver/v1/receiver_pb.ts";
import { type Dimensions, filesystemOf, hostOf } from "./entities.ts";
import { readOwn, replaceOwn } from "./own-files.ts";
import type { Reading } from "./reading.ts";

type Event = MessageInitShape<typeof EventSchema>;

/** From which value on an event is opened. */
export interface Limits {
  /** Used share of a file system. */
  filesystem: number;
  /** Used share of the memory. */
  memory: number;
  /** Load of five minutes by the number of processors. */
  load: number;
}

/** A value that is watched. It opens an event at `warning`, raises its severity at `error`, and closes it below `recovered`. */
interface Watched {
  name: string;
  dimensions: Dimensions;
  value: number;
  warning: number;
  error: number;
  recovered: number;
  summary: string;
}

const percent = (share: number) => `${Math.round(share * 100)} %`;
/** Of a share: the error lies half-way to all of it, and what comes back has to fall by a twentieth first. */
const share = (warning: number) => ({ warning, error: (warning + 1) / 2, recovered: warning * 0.95 });

function watchedIn(source: string, { filesystems, memory, load, cpu }: Reading, limits: Limits): Watched[] {
  const used = 1 - memory.available / memory.limit;
  const watched: Watched[] = filesystems.map((files) => ({
    name: "file system nearly full",
    dimensions: filesystemOf(source, files),
    value: files.utilization,
    ...share(limits.filesystem),
    summary: `${percent(files.utilization)} of ${files.mountpoint} is used`,
  }));
  watched.push({
    name: "memory nearly used up",
    dimensions: hostOf(source),
    value: used,
    ...share(limits.memory),
    summary: `${percent(used)} of the memory is used`,
  });
  if (load !== undefined) {
    watched.push({
      name: "load high",
      dimensions: hostOf(source),
      value: load[1] / cpu.count,
      warning: limits.load,
      error: limits.load * 2,
      recovered: limits.load * 0.8,
      summary: `load ${load[1].toFixed(2)} on ${cpu.count} processors`,
    });
  }
  return watched;
}

/**
 * Follows what passes its threshold. What is open is kept in a file, so that it is closed even when the value fell while
 * the agent was not running.
 */
export function thresholds(source: string, limits: Limits, file: string) {
  const open = new Map<string, Severity>(read(file));

  return {
    /** The events of a reading: what opens, grows worse, or is over. Call `keep` when they are safe. */
    eventsOf(reading: Reading): Event[] {
      const timestamp = BigInt(reading.timeMs);
      const events: Event[] = [];
      const seen = new Set<string>();
      for (const { name, dimensions, value, warning, error, recovered, summary } of watchedIn(
        source,
        reading,
        limits,
      )) {
        const key = JSON.stringify([name, dimensions]);
        seen.add(key);
        const before = open.get(key);
        const severity = value >= error ? Severity.ERROR : value >= warning ? Severity.WARNING : undefined;
        const event = {
          name,
          type: name.replaceAll(" ", "-"),
          dimensions,
          timestamp,
          summary,
          metadataFields: { value },
        };
        if (severity !== undefined && severity > (before ?? Severity.DEFAULT)) {
          open.set(key, severity);
          events.push({ ...event, severity, status: Status.OPEN });
        } else if (before !== undefined && value < recovered) {
          open.delete(key);
          events.push({ ...event, status: Status.CLOSED });
        }
      }
      // A file system that was unmounted is full no longer.
      for (const key of [...open.keys()].filter((key) => !seen.has(key))) {
        const [name, dimensions] = JSON.parse(key) as [string, Dimensions];
        open.delete(key);
        events.push({ name, dimensions, timestamp, status: Status.CLOSED, summary: "it is there no longer" });
      }
      return events;
    },
    keep() {
      replaceOwn(file, JSON.stringify([...open]));
    },
  };
}

/** What is open, as far as the file holds that. */
function read(file: string): [string, Severity][] {
  try {
    const found: unknown = JSON.parse(readOwn(file) ?? "[]");
    return Array.isArray(found) ? found.filter(isOpen) : [];
  } catch {
    return [];
  }
}

function isOpen(entry: unknown): entry is [string, Severity] {
  if (!Array.isArray(entry) || typeof entry[0] !== "string" || typeof entry[1] !== "number") return false;
  const [name, dimensions] = JSON.parse(entry[0]) as [unknown, unknown];
  const isText = (value: unknown) => typeof value === "string";
  return isText(name) && typeof dimensions === "object" && Object.values(dimensions ?? {}).every(isText);
}
