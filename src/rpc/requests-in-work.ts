import { randomBytes } from "node:crypto";
import { openSync, readSync, unlinkSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { RequestRecord } from "./context.ts";

/*
 * A process notes each request that it begins in a file that outlives it: a line of fixed length in a ring of lines, overwritten in place, some
 * microseconds a request. The process that has started it reads them when it dies. The file has no name, and lies in memory where the system
 * has a place for that: a write to a disk may wait for the disk.
 */

const lineBytes = 160;
const linesMax = 64;
const textMax = lineBytes - 16;
const shownMax = 8;
/** For so long a request without an answer may still be at work. */
const unansweredMs = 60_000;
const [inWork, unanswered, over] = ["*", "~", " "];
/** Codes of requests that end before their handlers may: CANCELLED, DEADLINE_EXCEEDED. */
const early = [1, 4];

/** Where a process that serves has the file: behind its standard streams and the channel to its parent. */
export const requestsFd = 4;

/** Opens the file; returns its descriptor, or undefined where no file can be made. */
export function openRequestsInWork(): number | undefined {
  for (const dir of ["/dev/shm", tmpdir()]) {
    const path = join(dir, `belfry-${randomBytes(12).toString("hex")}`);
    try {
      const fd = openSync(path, "wx+", 0o600);
      unlinkSync(path);
      return fd;
    } catch {
      // The next place may do.
    }
  }
  return undefined;
}

const placeOf = (process: number) => process * linesMax * lineBytes;

/** Names a request and its caller, without anything of its content. */
function describe({ rpc, integration, principal }: RequestRecord): string {
  const name = rpc ?? `${integration?.name}/${integration?.operation}`;
  return principal === undefined ? name : `${name} by key ${principal.keyPrefix} of tenant ${principal.tenantId}`;
}

/** Notes the requests of a process under its number; does nothing without the file. */
export function noteRequests(fd: number | undefined, process = 0) {
  const holders = new Array<RequestRecord | undefined>(linesMax).fill(undefined);
  const line = Buffer.alloc(lineBytes);
  let next = 0;
  let broken = fd === undefined;

  function write(length: number, slot: number) {
    try {
      writeSync(fd as number, line, 0, length, placeOf(process) + slot * lineBytes);
    } catch {
      broken = true; // no request fails for it
    }
  }

  return {
    /** Notes a request that is admitted. Where more are in work than there are lines, the oldest is forgotten. */
    began(record: RequestRecord): void {
      if (broken) return;
      holders[next] = record;
      const text = describe(record)
        .slice(0, textMax)
        .replaceAll(/[^ -~]/g, "?");
      line.fill(32);
      line.write(`${inWork}${Date.now()} ${text}\n`, "latin1");
      write(lineBytes, next);
      next = (next + 1) % linesMax;
    },
    /** Notes that a request is over; its handler may go on where it was not answered. */
    ended(record: RequestRecord): void {
      if (broken) return;
      const slot = holders.indexOf(record);
      if (slot === -1) return;
      holders[slot] = undefined;
      line.write(record.code === undefined || early.includes(record.code) ? unanswered : over, "latin1");
      write(1, slot);
    },
  };
}

/** Returns the requests that a process which has died had in work, the latest first, and forgets them. */
export function takeRequestsInWork(fd: number | undefined, process: number, nowMs: number): string[] {
  if (fd === undefined) return [];
  const bytes = Buffer.alloc(linesMax * lineBytes);
  try {
    readSync(fd, bytes, 0, bytes.length, placeOf(process));
    writeSync(fd, Buffer.alloc(bytes.length), 0, bytes.length, placeOf(process));
  } catch {
    return [];
  }
  return Array.from({ length: linesMax }, (_, slot) => {
    const [line = ""] = bytes.toString("latin1", slot * lineBytes, (slot + 1) * lineBytes).split("\n");
    return { state: line[0], beganMs: Number(line.slice(1, 14)), text: line.slice(15) };
  })
    .filter(({ state, beganMs }) => state === inWork || (state === unanswered && nowMs - beganMs < unansweredMs))
    .sort((one, other) => other.beganMs - one.beganMs)
    .slice(0, shownMax)
    .map(({ beganMs, text }) => `${text}, for ${((nowMs - beganMs) / 1000).toFixed(1)} s`);
}
