import { closeSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import { create, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import type { EventSchema, MetricSchema } from "#gen/belfry/receiver/v1/receiver_pb.ts";
import { PutEventsRequestSchema, PutMetricsRequestSchema } from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import { makeOwn, ownFolder, readOwn } from "./own-files.ts";
import { type Batch, frameBytes, openQueue } from "./queue.ts";

/** What waits to be sent, on disk, within a bound. */
export interface Buffer {
  addEvents(events: MessageInitShape<typeof EventSchema>[]): void;
  addPoints(points: MessageInitShape<typeof MetricSchema>[]): void;
  /** What to send next, of about so many bytes: events before points, each in their order. The bytes are a request of their own. */
  next(bytesMax: number): (Batch & { kind: "events" | "points" }) | undefined;
  /** Bytes on disk, never more than `bytesMax`. */
  bytes(): number;
  close(): void;
}

/**
 * Opens the buffer in a folder, which it makes. When it is full the oldest points go first, then those that come; events go
 * only when nothing else is left. `lost` gets each loss, `damaged` the bytes of a file that are no records.
 * @throws Error when another agent uses the folder, or another account can write to it
 */
export function openBuffer(
  folder: string,
  bytesMax: number,
  lost: (items: number, what: string) => void,
  damaged?: (bytes: number) => void,
): Buffer {
  ownFolder(folder);
  const lock = join(folder, "agent.pid");
  takeLock(lock);
  const segmentBytes = Math.min(1024 * 1024, Math.ceil(bytesMax / 16));
  const events = openQueue(folder, "events", segmentBytes, damaged);
  const points = openQueue(folder, "points", segmentBytes, damaged);
  const bytes = () => events.bytes() + points.bytes();

  function makeRoom(wanted: number): boolean {
    while (bytes() + wanted > bytesMax) {
      const items = points.dropOldest();
      if (items === undefined) return false;
      lost(items, "metric points");
    }
    return true;
  }

  return {
    bytes,
    addEvents(added) {
      const record = toBinary(PutEventsRequestSchema, create(PutEventsRequestSchema, { events: added }));
      while (!makeRoom(frameBytes(record))) {
        const items = events.dropOldest();
        if (items === undefined) return lost(added.length, "events"); // larger than the whole buffer
        lost(items, "events");
      }
      events.append(record, added.length, true);
    },
    addPoints(added) {
      const record = toBinary(PutMetricsRequestSchema, create(PutMetricsRequestSchema, { metrics: added }));
      if (makeRoom(frameBytes(record))) points.append(record, added.length);
      else lost(added.length, "metric points");
    },
    next(bytesMax) {
      // Encoded messages laid end to end are one message that has the items of all: so records need not be taken apart.
      const waiting = events.oldest(bytesMax);
      if (waiting !== undefined) return { ...waiting, kind: "events" };
      const rest = points.oldest(bytesMax);
      return rest && { ...rest, kind: "points" };
    },
    close: () => rmSync(lock, { force: true }),
  };
}

function takeLock(file: string) {
  // Empty where the disk was full: 0, which no agent has.
  const pid = Number(readOwn(file, 100) ?? 0);
  if (Number.isSafeInteger(pid) && pid > 0 && pid !== process.pid && runs(pid))
    throw new Error(`the agent with process id ${pid} uses ${file.replace(/[^/\\]+$/, "")}`);
  rmSync(file, { recursive: true, force: true });
  const fd = makeOwn(file);
  try {
    writeSync(fd, String(process.pid));
  } catch {
    // The disk is full: an empty lock keeps nobody out, as little as one of a killed agent does.
  } finally {
    closeSync(fd);
  }
}

function runs(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
